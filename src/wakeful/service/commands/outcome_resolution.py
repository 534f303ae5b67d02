"""Outcomes that nobody knew, and the word of a person who found out.

The word is appended like any outsider's fact, with a barrier, whether or not the turn is over. Said once: whoever comes
second is told what was said.
"""

from difflib import get_close_matches
from shlex import quote

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import CallNotFound
from wakeful.contracts.events import UnknownResolved
from wakeful.engine.run_request import Engine
from wakeful.ports import Store, UnknownRow
from wakeful.service.queries.record_names import SHORTEST, several
from wakeful.service.queries.turns import find_turn, turn_events

LOOKED_THROUGH = 1_000
"""How many of the newest turns are looked through for a call that is closed already."""


async def resolve_unknown(
    engine: Engine, call: str, *, happened: bool, result: str = "", by: str = "program"
) -> UnknownRow:
    """Close a call, named by its id or as `TURN/CALL`. Raises CallNotFound, saying what there is."""
    store = engine.store
    row = await _find(store, call)
    event = UnknownResolved(
        call_id=row.call_id,
        tool_name=row.tool,
        happened=happened,
        result=result,
        source="operator",
        resolved_by=by,
    )
    fact = Fact(event, engine.clock.now(), row.thread_id, row.turn_id, row.step, row.call_id)
    await store.admit(row.agent_id, [fact])
    return row


async def _find(store: Store, call: str) -> UnknownRow:
    named, _, call_id = call.rpartition("/")
    turn_id = (await find_turn(store, named)).turn_id if named else ""
    here = f"--store {quote(store.location)}"
    rows = await store.unknown()
    mine = [row for row in rows if turn_id in ("", row.turn_id)]
    found = [row for row in mine if row.call_id == call_id]
    # A whole id is never the beginning of another one: whoever says something twice does not mean another call.
    said = None if found else await _said_before(store, turn_id, call_id)
    if not found and said is None and len(call_id) >= SHORTEST:
        found = [row for row in mine if row.call_id.startswith(call_id)]
    if len(found) == 1:
        return found[0]
    if found:
        message, hint = several(call_id, "calls", [f"{row.turn_id}/{row.call_id}  {row.tool}" for row in found])
        example = f"wakeful resolve {found[0].turn_id}/{found[0].call_id} --did-not-happen {here}"
        raise CallNotFound(message, f"{hint}\nFor example: {example}")
    if said is not None:
        turn, event = said
        what = f"it happened: {event.result}" if event.happened else "it did not happen"
        raise CallNotFound(
            f"the outcome of call {call_id} ({event.tool_name}) is known already: {what} (by {event.resolved_by})",
            f"nothing was changed; it is {turn}/{call_id}",
        )
    names = [name for row in rows for name in (row.call_id, f"{row.turn_id}/{row.call_id}")]
    near = get_close_matches(call, names, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"List unknown outcomes: wakeful unknown {here}"
    raise CallNotFound(f"there is no call {call!r} with an unknown outcome in {store.location}", hint)


async def _said_before(store: Store, turn_id: str, call_id: str) -> tuple[str, UnknownResolved] | None:
    """The newest turn in which somebody has said what became of a call of that id, and what was said."""
    rows = [await store.turn(turn_id)] if turn_id else await store.turns(limit=LOOKED_THROUGH)
    for row in rows:
        if row is None:
            continue
        for recorded in await turn_events(store, row):
            event = recorded.fact.event
            if isinstance(event, UnknownResolved) and event.call_id == call_id:
                return row.turn_id, event
    return None
