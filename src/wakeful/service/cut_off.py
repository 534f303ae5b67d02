"""What a process left behind when it died: calls of other turns of the agent, of which nobody knows what they did.

They are closed before anything else of that agent runs, so that no turn of it begins while the log still says that such
a call is under way. It takes none of the agent's code. The rest of such a turn waits for whoever takes it up.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from wakeful.agents.folding import fold
from wakeful.agents.known_facts import KnownFacts
from wakeful.agents.recovery import closed_beforehand
from wakeful.agents.work import TurnWork
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.errors import AgentBusy, StoreProblem
from wakeful.decisions.conversation_export import turn_facts
from wakeful.mediation.gate import GateParts
from wakeful.ports import Claim, Store, TurnRow
from wakeful.service.preparing import safe_keeping
from wakeful.service.requests import Runtime

_log = logging.getLogger("wakeful.recovery")


@dataclass(slots=True)
class _Agent:
    """The turns of one agent that run here."""

    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    turns: int = 0
    looked: bool = False
    """What was cut off before the first of them is closed."""


_here: "WeakKeyDictionary[Store, dict[str, _Agent]]" = WeakKeyDictionary()


@asynccontextmanager
async def after_what_was_cut_off(runtime: Runtime, row: TurnRow) -> AsyncIterator[None]:
    """Around a turn that is run here. While one of its agent runs here, no other of its turns can be cut off."""
    if row.agent_id != row.agent_name:  # made for this one turn, which settles what is its own
        yield
        return
    agents = _here.setdefault(runtime.store, {})
    agent = agents.setdefault(row.agent_id, _Agent())
    agent.turns += 1
    try:
        async with agent.looking:
            if not agent.looked:
                await _close_others(runtime, row)
                agent.looked = True
        yield
    finally:
        agent.turns -= 1
        if not agent.turns:
            agents.pop(row.agent_id, None)


async def _close_others(runtime: Runtime, row: TurnRow) -> None:
    for other in await runtime.store.turns(open_only=True, agent_id=row.agent_id):
        if other.state != "running" or other.turn_id == row.turn_id:
            continue
        try:
            claim = await runtime.store.claim(other.turn_id)
        except AgentBusy as busy:
            if busy.here:
                continue  # somebody looks at it at this moment
            return  # the agent runs elsewhere: nothing is cut off, and whoever wants to run a turn of it is told
        try:
            await _close(runtime, await runtime.store.turn(other.turn_id) or other, claim)
        except StoreProblem as problem:
            _log.warning("what was cut off in turn %s cannot be closed: %s", other.turn_id, problem)
        finally:
            await runtime.store.release(claim)


async def _close(runtime: Runtime, row: TurnRow, claim: Claim) -> None:
    work = await work_without_code(runtime, row, claim)
    if work.state.config is not None and (facts := closed_beforehand(work)):
        await runtime.store.append(claim, facts, barrier=True)


async def work_without_code(runtime: Runtime, row: TurnRow, claim: Claim) -> TurnWork:
    """A turn as its log knows it: without models and without tools, and without what cannot be read any more."""
    store = runtime.store
    recorded = await store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    folded = await fold(store, row, recorded, lost=True)
    state = folded.state
    claim.seen = max(claim.seen, folded.last_seq)
    return TurnWork(
        store=store,
        claim=claim,
        row=row,
        state=state,
        config=state.config or TurnConfig(agent_name=row.agent_name, model_ref=""),
        models=(),
        tools={},
        clock=runtime.clock,
        ids=runtime.ids,
        jitter=runtime.jitter,
        call_ids=folded.call_ids,
        known=KnownFacts(row.agent_id, turn_facts(recorded, row.turn_id), store.reader(row.agent_id, row.turn_id)),
        # Children that had come to a result have it, however long it is.
        gate=GateParts(keep=safe_keeping(store, runtime.keys), fetch=store.get_blob, keys=runtime.keys),
    )
