"""The definitions of an agent that were in force one after another, and what changed between two of them."""

import difflib
import json
from collections.abc import Iterator
from typing import Any

from wakeful.contracts.errors import ForTheCaller, InvalidRequest
from wakeful.engine.run_request import Engine
from wakeful.ports.agent_figures import AgentRevisionRow
from wakeful.service.commands.agents import agent_named
from wakeful.service.queries.record_names import meant
from wakeful.views.runtime_records import AgentRevision

_PREFIX = "sha256:"


async def revisions_of(engine: Engine, name: str) -> list[AgentRevision]:
    """The newest first, each with the turns that began with it. Raises AgentNotFound."""
    await agent_named(engine.store, name)
    rows = await engine.store.agent_revisions(name)
    ends = [(await engine.store.figures_of(name)).turns, *(row.turns_before for row in rows)]
    return [
        AgentRevision(
            revision=row.revision,
            at=row.revised_at / 1e6,
            source=row.source,
            place=row.place,
            turns=end - row.turns_before,
            in_force=row is rows[0],
        )
        for row, end in zip(rows, ends, strict=False)
    ]


async def difference(engine: Engine, name: str, old: str | None, new: str | None) -> str:
    """What changed from one revision to another, line by line; without names, with the newest change.

    Blank: nothing did. Raises AgentNotFound, or InvalidRequest for a revision that is not there.
    """
    await agent_named(engine.store, name)
    rows = await engine.store.agent_revisions(name)
    if not rows:
        raise InvalidRequest(f"agent {name!r} has no definition yet", "Start a runtime that has its code.")
    later = _find(rows, name, new) if new is not None else rows[0]
    earlier = _find(rows, name, old) if old is not None else _before(rows, later)
    if earlier is None:
        raise InvalidRequest(f"agent {name!r} was never changed", "There is one revision, and nothing to compare.")
    was, became = await _lines(engine, earlier), await _lines(engine, later)
    names = short(earlier.revision), short(later.revision)
    return "\n".join(difflib.unified_diff(was, became, *names, lineterm=""))


async def revision_named(engine: Engine, name: str, wanted: str | None) -> str:
    """A revision of an agent by its name, or enough of its beginning; None: the one in force. It is one of this agent:
    a store has more under names of that kind, the arguments of calls among it.

    Raises AgentNotFound, or InvalidRequest for a revision that is not there.
    """
    row = await agent_named(engine.store, name)
    if wanted is None:
        return row.revision
    return _find(await engine.store.agent_revisions(name), name, wanted).revision


def short(revision: str) -> str:
    """A revision as people name it."""
    return revision.removeprefix(_PREFIX)[:12]


def _find(rows: list[AgentRevisionRow], name: str, wanted: str) -> AgentRevisionRow:
    newest = {row.revision: row for row in reversed(rows)}
    found = newest.get(meant(wanted, newest, _PREFIX, "revisions"))
    if found is None:
        known = ", ".join(short(revision) for revision in [*reversed(newest)][:10])
        raise InvalidRequest(f"agent {name!r} has no revision {wanted!r}", f"It has: {known}.")
    return found


def _before(rows: list[AgentRevisionRow], later: AgentRevisionRow) -> AgentRevisionRow | None:
    return next((row for row in rows if row.number < later.number and row.revision != later.revision), None)


async def _lines(engine: Engine, row: AgentRevisionRow) -> list[str]:
    try:
        data = json.loads(await engine.store.get_blob(row.revision))
    except ForTheCaller:
        hint = "It was loaded by an older version of wakeful, which kept no description of code."
        raise InvalidRequest(f"nothing is kept of revision {short(row.revision)}", hint) from None
    return [line for key in sorted(data) for line in _field(key, data[key])]


def _field(key: str, value: Any) -> Iterator[str]:
    """A field, one line for each line of its text."""
    if isinstance(value, str) and "\n" in value:
        yield f"{key}:"
        yield from (f"  {line}" for line in value.splitlines())
    elif isinstance(value, list) and value:
        yield f"{key}:"
        yield from (f"  - {json.dumps(each, ensure_ascii=False, sort_keys=True)}" for each in value)
    else:
        yield f"{key}: {json.dumps(value, ensure_ascii=False, sort_keys=True)}"
