"""Scenarios as they were played in this process: each once, for all tests that look at it."""

from pathlib import Path
from typing import Any, NamedTuple

from pins.scenarios import SCENARIOS
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.envelope import published


class Played(NamedTuple):
    """What is left of a scenario."""

    events: list[dict[str, Any]]
    """All that its store published, agent by agent."""
    results: list[dict[str, Any]]


_PLAYED: dict[str, Played] = {}


async def played(name: str, folder: Path) -> Played:
    """Play a scenario on a store in this folder, unless it was played before."""
    if name not in _PLAYED:
        async with opened_store(str(folder / f"{name}.db")) as store:
            results = [result.to_dict() for result in await SCENARIOS[name](store)]
            events = [
                published(entry, "runtime").model_dump(mode="json", exclude_none=True)
                for agent_id in await store.agents()
                for entry in await store.read(agent_id)
            ]
        _PLAYED[name] = Played(events, results)
    return _PLAYED[name]
