"""Why a call ended as it did: the call found by its name, its way through the gate read from the log."""

from difflib import get_close_matches
from shlex import quote
from typing import Any

from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import CallNotFound
from wakeful.contracts.events import MessageAdmitted, ToolCatalogResolved, TurnConfigChanged, TurnStarted
from wakeful.contracts.policies import Rule
from wakeful.contracts.tool_catalog import OFFERED, CatalogEntry, ToolCatalog
from wakeful.engine.state_loader import load_config
from wakeful.engine.turn_messages import read_turn
from wakeful.ports import Blobs, Store, TurnRow
from wakeful.service.queries.record_names import SHORTEST, several
from wakeful.service.queries.turns import EventReader, find_turn
from wakeful.views.explanation import CallExplanation, explained, rules_by_ref
from wakeful.views.message_envelope import labels_of

LOOKED_THROUGH = 200
"""Among how many of the newest turns a call is looked for that comes without its turn."""
MOST = 5
"""How many turns with a call of that name are listed."""


async def why_call(store: Store, call: str) -> CallExplanation:
    """A call by its id, the beginning of it, or `TURN/CALL`. Raises CallNotFound, saying what there is."""
    turn_id, _, given = call.rpartition("/")
    here = f"--store {quote(store.location)}"
    rows = [await find_turn(store, turn_id)] if turn_id else await store.turns(limit=LOOKED_THROUGH)
    found: list[tuple[TurnRow, str, list[StoredFact]]] = []
    whole: list[tuple[TurnRow, str, list[StoredFact]]] = []
    seen: list[str] = []
    for row in rows:
        facts = await store.read(row.agent_id, turn_id=row.turn_id)
        names = {entry.fact.call_id for entry in facts if entry.fact.call_id is not None}
        seen.extend(sorted(names))
        fitting = [given] if given in names else sorted(name for name in names if _is_beginning(given, name))
        found += [(row, name, facts) for name in fitting]
        whole = [each for each in found if each[1] == given]
        if len(whole) >= MOST:  # a whole id is never the beginning of another one: every turn is looked at for it
            break
    found = whole or found
    if len(found) > 1:
        candidates = [f"{row.turn_id}/{name}  {row.agent_name}: {row.prompt_preview[:30]!r}" for row, name, _ in found]
        message, hint = several(given, "calls", candidates)
        raise CallNotFound(message, f"{hint}\nFor example: wakeful why {found[0][0].turn_id}/{found[0][1]} {here}")
    if not found:
        near = get_close_matches(given, dict.fromkeys(seen), n=3, cutoff=0.5)
        where = f"turn {turn_id}" if turn_id else f"the newest {len(rows)} turns of {store.location}"
        hint = f"Did you mean {' or '.join(near)}?" if near else f"List the calls of a turn: wakeful tree TURN {here}"
        raise CallNotFound(f"there is no call {given!r} in {where}", hint)
    row, call_id, facts = found[0]
    rules, withheld = await _rules(store, facts), await _withheld(store, facts)
    reader = EventReader(store)
    await reader.learn(facts)
    explanation = explained(row.turn_id, row.agent_name, call_id, facts, rules, withheld, reader.secrets)
    assert explanation is not None
    began = [entry.fact.event for entry in await read_turn(store, row)]
    labels = tuple(labels_of(event) for event in began if isinstance(event, MessageAdmitted))
    return explanation.model_copy(update={"messages": labels})


def _is_beginning(given: str, name: str) -> bool:
    return len(given) >= SHORTEST and name.startswith(given)


async def _withheld(store: Blobs, facts: list[StoredFact]) -> dict[str, CatalogEntry]:
    """Every tool that the turn was not to have at some time, by its name."""
    found: dict[str, CatalogEntry] = {}
    for entry in facts:
        event = entry.fact.event
        if isinstance(event, ToolCatalogResolved) and event.withheld:
            catalog = ToolCatalog.model_validate_json(await store.get_blob(event.catalog_ref.digest))
            found.update({each.tool_name: each for each in catalog.entries if each.policy not in OFFERED})
    return found


async def _rules(store: Blobs, facts: list[StoredFact]) -> dict[str, Rule]:
    """Every rule that held at some time in the turn."""
    known: dict[str, Any] = {}
    for entry in facts:
        event = entry.fact.event
        if isinstance(event, TurnStarted | TurnConfigChanged):
            known.update(rules_by_ref((await load_config(store, event.config_ref.digest)).policy.rules))
    return known
