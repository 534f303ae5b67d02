"""Trying a failed turn again: the same turn goes on at the step in which it failed, and what happened in it stands.

Whatever ended it has to be over, or more is allowed now. A turn that its thread has gone on from cannot be opened
again: the message that can be sent in its place says what it asked and what it had done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, Final, NamedTuple

from wakeful.contracts.budgets import Budget, Limits
from wakeful.contracts.conversation import AssistantItem, ToolItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused, RetryRefused, TurnNotFound
from wakeful.contracts.events import (
    AgentStateChanged,
    EventExpired,
    MessageAdmitted,
    StopCause,
    TurnFailed,
    TurnInterjected,
    TurnRetried,
)
from wakeful.decisions.grants import given_back
from wakeful.decisions.spawn_terms import task_of
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


MOST_TRIES = 3
"""To open a turn of a child whose runtime is about to end it."""


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
    place: str
    """The option that names its store to a command."""
    speak: str
    """The command that sends its agent a message."""


class _Opening(NamedTuple):
    """What is written so that a failed turn goes on."""

    failed: FailedTurn
    limits: Limits | None
    agent_runs: AgentStateChanged | None
    """Of the agent of a child, which was stopped when its turn had failed."""


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
    for tries_left in reversed(range(MOST_TRIES)):
        failed, limits, agent_runs = await check_retry(engine.store, turn_id, requested_by, budget, max_steps)
        row, now = failed.row, engine.clock.now()
        event = TurnRetried(requested_by=requested_by, message_ids=failed.message_ids, limits=limits)
        facts = [] if agent_runs is None else [Fact(agent_runs, now)]
        try:
            await engine.store.admit(row.agent_id, [*facts, Fact(event, now, row.thread_id, row.turn_id)])
        except EventRefused:  # something came between: what, is said at the next look
            if not tries_left:
                raise
        else:
            break
    return await engine.store.turn(turn_id) or row


async def check_retry(
    store: Store,
    turn_id: str,
    requested_by: str = "",
    budget: Budget | None = None,
    max_steps: int | None = None,
) -> _Opening:
    """What is to be written so that a failed turn goes on. Raises TurnNotFound, or RetryRefused where it cannot."""
    failed = await failed_turn(store, turn_id)
    limits = _raised(failed, budget, max_steps)
    if (later := await _later_turn(store, failed.row)) is not None:
        raise _gone_on(failed, later)
    return _Opening(failed, limits, await _agent_runs(store, failed, requested_by))


async def _agent_runs(store: Store, failed: FailedTurn, requested_by: str) -> AgentStateChanged | None:
    """That the agent of a child runs again, with the turn. Raises RetryRefused where nobody would go on with it."""
    agent = await store.runtime_agent(failed.row.agent_id)
    if agent is None:
        return None
    name, place = agent.agent_id, failed.place
    if agent.ownership != "parent_supervised":
        if agent.control != "stopped":
            return None
        hint = f"let it run again first: wakeful agent resume {name}{place}"
        raise RetryRefused(f"agent {name} is stopped, so its turns do not go on", hint)
    task = await store.task(task_of(name))
    parent = await store.runtime_agent(agent.parent) if agent.parent is not None else None
    anew = f"send what it asked to the agent that it was asked by: {_send(failed)}"
    if task is not None and task.status in ("cancelling", "cancelled"):
        words = f"agent {name} was made for one task, which was stopped"
        raise RetryRefused(words, anew, in_its_place=message_in_place(failed))
    if parent is not None and parent.control == "stopped":
        is_over = parent.ownership == "parent_supervised"
        raise RetryRefused(
            f"agent {name} works for {parent.agent_id}, which is {'over' if is_over else 'stopped'}",
            anew if is_over else f"let it run again first: wakeful agent resume {parent.agent_id}{place}",
            in_its_place=message_in_place(failed),
        )
    if agent.control == "paused" and agent.cause != "failure":
        return None  # it goes on with the pause's end
    # Also of one that runs: whoever is about to stop it, because its turn had failed, sees that somebody came between.
    return AgentStateChanged(
        control="running",
        changed_by=requested_by,
        reason="its failed turn is tried again",
        instead_of=agent.changed_at,
    )


async def failed_turn(store: Store, turn_id: str) -> FailedTurn:
    """A turn that failed, as its log has it. Raises TurnNotFound or RetryRefused."""
    row, place = await store.turn(turn_id), f" --store {quote(store.location)}"
    if row is None or row.deleted_at is not None:
        raise TurnNotFound(f"there is no turn {turn_id} in {store.location}")
    if row.is_open:
        rests = row.state == "suspended"
        hint = f"go on with it: wakeful resume {turn_id}" if rests else f"look: wakeful why {turn_id}"
        raise RetryRefused(f"turn {turn_id} has not failed: it is {row.state}", hint + place)
    speak = await _speak(store, row)
    again = f'send it again: {speak} "..."{place}'
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
    return FailedTurn(
        row, state, started.message_ids, asked, ended.stop_reason, ended.message, ended.retryable, place, speak
    )


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
                f"wakeful retry {turn_id} {OPTIONS[reason]} NUMBER{failed.place}",
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
    return f'{failed.speak} "$(wakeful retry {failed.row.turn_id} --message{failed.place})"{failed.place}'


async def _speak(store: Store, row: TurnRow) -> str:
    """An agent of single runs has no mailbox, and people speak to a private child through whom it works for."""
    agent = await store.runtime_agent(row.agent_id)
    while agent is not None and agent.ownership == "parent_supervised":
        agent = await store.runtime_agent(agent.parent or "")
    return "wakeful run" if agent is None else f"wakeful send {agent.agent_id}"


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
