"""Trying a failed turn again: the same turn goes on at the step in which it failed, and what happened in it stands.

Whatever ended it has to be over, or more is allowed now. A turn that its thread has gone on from cannot be opened
again: the message that can be sent in its place says what it asked and what it had done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wakeful.contracts.budgets import Budget, Limits
from wakeful.contracts.conversation import AssistantItem, ToolItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused, RetryRefused, TurnNotFound
from wakeful.contracts.events import EventExpired, MessageAdmitted, StopCause, TurnFailed, TurnInterjected, TurnRetried
from wakeful.decisions.grants import given_back
from wakeful.decisions.state import TurnState
from wakeful.decisions.turn_retry import RAISED, is_raised
from wakeful.engine.run_request import Engine
from wakeful.engine.state_loader import fold
from wakeful.engine.turn_messages import read_turn
from wakeful.ports import Store, TurnRow

RESULT_CHARS = 2_000
"""Of each finished call, what is said in a message that takes a turn's place."""
OPTIONS: Final[Mapping[str, str]] = {
    "llm_calls": "--budget-calls",
    "tool_calls": "--budget-tool-calls",
    "wall_clock": "--budget-seconds",
    "tokens": "--budget-tokens",
    "cost": "--budget-usd",
    "subtasks": "--budget-subtasks",
    "max_steps": "--max-steps",
    "iterations": "--max-steps",
}
"""The option of the command line that raises each limit."""


@dataclass(frozen=True, slots=True)
class FailedTurn:
    """A turn that failed, and why."""

    row: TurnRow
    state: TurnState
    message_ids: tuple[str, ...]
    """Those with which it began."""
    asked: str
    """What people said to it, in their own words."""
    reason: StopCause
    message: str
    retryable: bool
    speak: str
    """The command that sends its agent a message."""


async def retry_turn(
    engine: Engine,
    turn_id: str,
    *,
    requested_by: str = "caller",
    budget: Budget | None = None,
    max_steps: int | None = None,
) -> TurnRow:
    """Open a failed turn again; whoever runs its agent goes on with it. `budget` says what it may use in all.

    Raises TurnNotFound, or RetryRefused for a turn that cannot go on: `in_its_place` is the message to send then.
    """
    failed = await failed_turn(engine.store, turn_id)
    limits = _raised(failed, budget, max_steps)
    if (later := await _later_turn(engine.store, failed.row)) is not None:
        raise _gone_on(failed, later)
    await _check_agent(engine.store, failed)
    event = TurnRetried(requested_by=requested_by, message_ids=failed.message_ids, limits=limits)
    row = failed.row
    try:
        await engine.store.admit(row.agent_id, [Fact(event, engine.clock.now(), row.thread_id, row.turn_id)])
    except EventRefused:  # something came between: what, is said now
        failed = await failed_turn(engine.store, turn_id)
        if (later := await _later_turn(engine.store, failed.row)) is not None:
            raise _gone_on(failed, later) from None
        raise
    return await engine.store.turn(turn_id) or row


async def _check_agent(store: Store, failed: FailedTurn) -> None:
    """Raises RetryRefused where nobody would go on with the turn."""
    agent = await store.runtime_agent(failed.row.agent_id)
    if agent is None or agent.control != "stopped":
        return
    if agent.ownership == "parent_supervised":
        raise RetryRefused(
            f"agent {failed.row.agent_name} was made for one task, which is over: its parent was told that it failed",
            f'tell its parent: wakeful send {agent.parent} "try it again"',
            in_its_place=message_in_place(failed),
        )
    name = failed.row.agent_name
    raise RetryRefused(f"agent {name} is stopped, so its turns do not go on", f"wakeful agent resume {name}")


async def failed_turn(store: Store, turn_id: str) -> FailedTurn:
    """A turn that failed, as its log has it. Raises TurnNotFound or RetryRefused."""
    row = await store.turn(turn_id)
    if row is None or row.deleted_at is not None:
        raise TurnNotFound(f"there is no turn {turn_id} in {store.location}")
    if row.is_open:
        rests = row.state == "suspended"
        hint = f"go on with it: wakeful resume {turn_id}" if rests else f"look: wakeful why {turn_id}"
        raise RetryRefused(f"turn {turn_id} has not failed: it is {row.state}", hint)
    speak = await _speak(store, row)
    again = f'send it again: {speak} "..."'
    if row.state not in ("failed", "incomplete"):
        raise RetryRefused(f"turn {turn_id} was {row.state}, so there is nothing to try again", again)
    recorded = await store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    own = [entry.fact.event for entry in recorded if entry.fact.turn_id == turn_id]
    if any(isinstance(event, EventExpired) for event in own):
        raise RetryRefused(
            f"turn {turn_id} is older than what is kept, so it cannot go on",
            again,
        )
    state, started = (await fold(store, row, recorded, lost=True))[:2]
    ended = next(event for event in reversed(own) if isinstance(event, TurnFailed))
    if started is None:
        raise RetryRefused(
            f"turn {turn_id} failed before it began: {ended.message}",
            again,
        )
    said = [entry.fact.event for entry in await read_turn(store, row)]
    asked = "\n".join(event.item.text for event in said if isinstance(event, MessageAdmitted | TurnInterjected))
    return FailedTurn(row, state, started.message_ids, asked, ended.stop_reason, ended.message, ended.retryable, speak)


def _raised(failed: FailedTurn, budget: Budget | None, max_steps: int | None) -> Limits | None:
    """The turn's limits from here on. Raises RetryRefused where it would end at once as it did before."""
    reason, turn_id = failed.reason, failed.row.turn_id
    before = failed.state.limits
    for grant in failed.state.grants.values():
        before = given_back(before, grant)
    said: dict[str, Any] = {}
    if budget is not None:
        said = budget.model_dump(exclude={"profile", "final_answer_reserve", "per_tool"}, exclude_none=True)
        said |= {"per_tool": {**before.per_tool, **budget.per_tool}} if budget.per_tool else {}
    if max_steps is not None:
        said["max_steps"] = max_steps
    now = before.model_copy(update=said)
    if reason in RAISED:
        if not is_raised(reason, before, now):
            raise RetryRefused(
                f"turn {turn_id} would end at once as before: {failed.message}",
                "say what it may use in all, what it has used included: "
                f"wakeful retry {turn_id} {OPTIONS[reason]} NUMBER",
            )
    elif not failed.retryable:
        raise RetryRefused(
            f"turn {turn_id} ended with {reason}: trying it again comes to the same ({failed.message})",
            f"change what it met, and send the message again: {_send(failed)}",
            in_its_place=message_in_place(failed),
        )
    return now if said else None


async def _later_turn(store: Store, row: TurnRow) -> TurnRow | None:
    """A turn of the thread that began after this one."""
    of_thread = await store.turns_of_thread(row.agent_id, row.thread_id)
    return next((each for each in of_thread if each.first_seq > row.first_seq and each.turn_index), None)


def _gone_on(failed: FailedTurn, later: TurnRow) -> RetryRefused:
    row = failed.row
    return RetryRefused(
        f"thread {row.thread_id} has gone on since turn {row.turn_id} failed: turn {later.turn_id} rests on that",
        f"send what it asked, with what it had done: {_send(failed)}",
        in_its_place=message_in_place(failed),
    )


def _send(failed: FailedTurn) -> str:
    return f'{failed.speak} "$(wakeful retry {failed.row.turn_id} --message)"'


async def _speak(store: Store, row: TurnRow) -> str:
    """An agent of single runs has no mailbox."""
    is_alive = await store.runtime_agent(row.agent_id) is not None
    return f"wakeful send {row.agent_name}" if is_alive else "wakeful run"


def message_in_place(failed: FailedTurn) -> str:
    """What can be sent when the turn itself cannot go on: what it asked, and which calls have happened."""
    state = failed.state
    done = _finished(state.conversation.items[_beginning(state) :])
    if not done:
        return failed.asked
    calls = "\n".join(f"- {call}" for call in done)
    before = f"This was begun before and failed ({failed.message})."
    return f"{failed.asked}\n\n{before} These calls have finished; do not make them again:\n{calls}"


def _beginning(state: TurnState) -> int:
    return state.thread.begins[-1].place if state.thread.begins else 0


def _finished(items: Sequence[object]) -> list[str]:
    """Each call that has a result, with it."""
    parts = {part.call_id: part for item in items if isinstance(item, AssistantItem) for part in item.calls}
    found = []
    for item in items:
        if isinstance(item, ToolItem) and not item.is_error and (part := parts.get(item.call_id)) is not None:
            told = ", ".join(f"{name}={value!r}" for name, value in (part.arguments or {}).items())
            found.append(f"{part.name}({told}) -> {item.text[:RESULT_CHARS]}")
    return found
