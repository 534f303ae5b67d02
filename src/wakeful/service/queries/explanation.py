"""Why a call ended as it did: the call found by its name, its way through the gate read from the log."""

from difflib import get_close_matches
from shlex import quote
from typing import Any

from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import CallNotFound
from wakeful.contracts.events import ToolCatalogResolved, TurnConfigChanged, TurnStarted
from wakeful.contracts.policies import Rule
from wakeful.contracts.tool_catalog import OFFERED, CatalogEntry, ToolCatalog
from wakeful.engine.state_loader import load_config
from wakeful.ports import Store, TurnRow
from wakeful.service.queries.turns import EventReader, find_turn
from wakeful.views.explanation import CallExplanation, explained, rules_by_ref

LOOKED_THROUGH = 200
"""Among how many of the newest turns a call is looked for that comes without its turn."""
MOST = 5
"""How many turns with a call of that name are listed."""


async def why_call(store: Store, call: str) -> CallExplanation:
    """A call by its id or as `TURN/CALL`. Raises CallNotFound, saying what there is."""
    turn_id, _, call_id = call.rpartition("/")
    here = f"--store {quote(store.location)}"
    rows = [await find_turn(store, turn_id)] if turn_id else await store.turns(limit=LOOKED_THROUGH)
    found: list[tuple[TurnRow, list[StoredFact]]] = []
    seen: list[str] = []
    for row in rows:
        facts = await store.read(row.agent_id, turn_id=row.turn_id)
        names = {entry.fact.call_id for entry in facts if entry.fact.call_id is not None}
        seen.extend(sorted(names))
        if call_id in names:
            found.append((row, facts))
        if len(found) == MOST:
            break
    if len(found) > 1:
        choices = "\n".join(f"  {row.turn_id}/{call_id}  {row.agent_name}: {row.prompt_preview!r}" for row, _ in found)
        raise CallNotFound(
            f"several turns have a call {call_id!r}; say which one:\n{choices}",
            f"for example: wakeful why {found[0][0].turn_id}/{call_id} {here}",
        )
    if not found:
        near = get_close_matches(call_id, dict.fromkeys(seen), n=3, cutoff=0.5)
        where = f"turn {turn_id}" if turn_id else f"the newest {len(rows)} turns of {store.location}"
        hint = f"did you mean {' or '.join(near)}?" if near else f"a turn's calls: wakeful events TURN {here}"
        raise CallNotFound(f"there is no call {call_id!r} in {where}", hint)
    row, facts = found[0]
    rules, withheld = await _rules(store, facts), await _withheld(store, facts)
    reader = EventReader(store)
    await reader.learn(facts)
    explanation = explained(row.turn_id, row.agent_name, call_id, facts, rules, withheld, reader.secrets)
    assert explanation is not None
    return explanation


async def _withheld(store: Store, facts: list[StoredFact]) -> dict[str, CatalogEntry]:
    """Every tool that the turn was not to have at some time, by its name."""
    found: dict[str, CatalogEntry] = {}
    for entry in facts:
        event = entry.fact.event
        if isinstance(event, ToolCatalogResolved) and event.withheld:
            catalog = ToolCatalog.model_validate_json(await store.get_blob(event.catalog_ref.digest))
            found.update({each.tool_name: each for each in catalog.entries if each.policy not in OFFERED})
    return found


async def _rules(store: Store, facts: list[StoredFact]) -> dict[str, Rule]:
    """Every rule that held at some time in the turn."""
    known: dict[str, Any] = {}
    for entry in facts:
        event = entry.fact.event
        if isinstance(event, TurnStarted | TurnConfigChanged):
            known.update(rules_by_ref((await load_config(store, event.config_ref.digest)).policy.rules))
    return known
