"""Holding a log, or an export of one, to the published schema: each mistake with its event and its place in it."""

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import NamedTuple

from wakeful.contracts.envelope import event_id, published
from wakeful.contracts.errors import StoreDamaged
from wakeful.contracts.schema import validate_event
from wakeful.ports import Store
from wakeful.service.queries.turns import wire


class CheckedEvent(NamedTuple):
    """One event that was looked at, and what is wrong with it."""

    event: str
    """Its id; a line number where it has none."""
    problems: tuple[tuple[str, str], ...]
    """Path and message."""


async def check_store(store: Store) -> AsyncIterator[CheckedEvent]:
    """Every event of every agent. Where bytes are not what was written, that is said, and the next agent follows."""
    for agent_id in await store.agents():
        try:
            log = await store.read(agent_id)
        except StoreDamaged as damage:
            yield CheckedEvent(event_id(agent_id, damage.sequence), (("", damage.message),))
            continue
        for recorded in log:
            event = published(recorded, store.runtime_id)
            yield CheckedEvent(event.event_id, tuple((p.path, p.message) for p in validate_event(wire(event))))


def check_lines(lines: Iterable[str]) -> Iterator[CheckedEvent]:
    """An export: one JSON object a line. Numbers have to grow within an agent's stream."""
    newest: dict[object, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except ValueError as error:
            yield CheckedEvent(f"line {number}", (("", f"not JSON: {error}"),))
            continue
        if not isinstance(event, dict):
            yield CheckedEvent(f"line {number}", (("", f"an event is an object, not a {type(event).__name__}"),))
            continue
        problems = [(problem.path, problem.message) for problem in validate_event(event)]
        agent, sequence = event.get("agent_id"), event.get("sequence")
        if isinstance(agent, str) and isinstance(sequence, int):
            if sequence <= newest.get(agent, 0):
                problems.append(("sequence", f"{sequence} does not follow {newest[agent]}"))
            newest[agent] = sequence
        yield CheckedEvent(str(event.get("event_id") or f"line {number}"), tuple(problems))
