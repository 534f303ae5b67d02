"""Steering a turn that is under way: let it rest, let it go on, say something to it.

All three are facts that somebody outside writes; whoever runs the turn sees them at its next append, and a turn cannot
end or rest without having seen them. What is said to a turn is safe before it is acknowledged.
"""

from collections.abc import Sequence

from wakeful.contracts.content import Prompt
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import TurnNotFound, TurnOver
from wakeful.contracts.events import Terminal, TurnInterjected, TurnPauseLifted, TurnPauseRequested
from wakeful.contracts.events.holds import EVERYTHING
from wakeful.engine.admission import prompt_parts
from wakeful.engine.run_request import Engine
from wakeful.gate.large_content import offload
from wakeful.ports import TurnRow


async def pause_turn(engine: Engine, turn_id: str, *, requested_by: str = "caller") -> bool:
    """Ask a turn to rest once nothing of it is under way. False when it is over, or was asked already."""
    row = await _turn(engine, turn_id)
    if not row.is_open or is_paused(await engine.store.read(row.agent_id, turn_id=turn_id)):
        return False
    await _write(engine, row, TurnPauseRequested(requested_by=requested_by))
    return True


async def unpause_turn(engine: Engine, turn_id: str, *, requested_by: str = "caller") -> bool:
    """Let a turn go on, or ask the provider that it waits for at once. One that rests already has to be taken up by
    somebody. False when it was not paused, and waits for none."""
    row = await _turn(engine, turn_id)
    if not row.is_open:
        return False
    wake = await engine.store.wake(row.agent_id, row.thread_id, turn_id)
    is_away = wake is not None and wake.cause == "provider"
    if not is_away and not is_paused(await engine.store.read(row.agent_id, turn_id=turn_id)):
        return False
    await _write(engine, row, *await pause_lifted(engine, row.agent_id, requested_by))
    return True


async def pause_lifted(
    engine: Engine, agent_id: str, requested_by: str, *, with_agent: bool = False
) -> list[TurnPauseLifted | TurnPauseRequested]:
    """What lets a turn go on. While its agent is paused, or everything is, a turn of a runtime rests on until that is
    taken back: one that is under way would not ask whether it may. `with_agent`: the agent is let run with it."""
    found: list[TurnPauseLifted | TurnPauseRequested] = [TurnPauseLifted(requested_by=requested_by)]
    agent, hold = await engine.store.runtime_agent(agent_id), await engine.store.runtime_hold()
    if agent is None:
        return found
    if hold is not None and hold.control == "paused":
        found.append(TurnPauseRequested(requested_by=EVERYTHING))
    elif agent.control == "paused" and not with_agent:
        found.append(TurnPauseRequested(requested_by=agent.changed_by))
    return found


async def interject(engine: Engine, turn_id: str, prompt: Prompt, *, said_by: str = "caller") -> str:
    """Say something to a turn that is under way: its next request takes it along. Returns the message's id.

    Raises TurnOver when the turn has ended: nothing would ever read it.
    """
    row = await _turn(engine, turn_id)
    if not row.is_open:
        raise _over(row)
    item = await offload(UserItem(parts=prompt_parts(prompt)), engine.store.put_blob)
    assert isinstance(item, UserItem)
    message_id = engine.ids.new("msg")
    await _write(engine, row, TurnInterjected(message_id=message_id, item=item, said_by=said_by))
    row = await _turn(engine, turn_id)
    if not row.is_open and not await _was_in_time(engine, row, message_id):
        raise _over(row)
    return message_id


def is_paused(facts: Sequence[StoredFact]) -> bool:
    """Did somebody ask the turn of these facts to rest, and nobody since that it may go on?"""
    paused = False
    for one in facts:
        if isinstance(one.fact.event, TurnPauseRequested | TurnPauseLifted):
            paused = isinstance(one.fact.event, TurnPauseRequested)
    return paused


async def _was_in_time(engine: Engine, row: TurnRow, message_id: str) -> bool:
    """The turn has ended meanwhile: had it seen the message?"""
    for one in await engine.store.read(row.agent_id, turn_id=row.turn_id):
        if isinstance(one.fact.event, Terminal):
            return False
        if isinstance(one.fact.event, TurnInterjected) and one.fact.event.message_id == message_id:
            return True
    return False


def _over(row: TurnRow) -> TurnOver:
    return TurnOver(
        f"turn {row.turn_id} of agent {row.agent_name!r} is over ({row.state}): nothing would read the message",
        f"send it as a new message: run(agent, ..., thread={row.thread_id!r}), or wakeful send to an agent of a daemon",
    )


async def _turn(engine: Engine, turn_id: str) -> TurnRow:
    row = await engine.store.turn(turn_id)
    if row is None:
        raise TurnNotFound(f"there is no turn {turn_id} in {engine.store.location}")
    return row


async def _write(engine: Engine, row: TurnRow, *events: TurnInterjected | TurnPauseRequested | TurnPauseLifted) -> None:
    now = engine.clock.now()
    await engine.store.admit(row.agent_id, [Fact(event, now, row.thread_id, row.turn_id) for event in events])
