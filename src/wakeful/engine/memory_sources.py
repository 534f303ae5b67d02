"""Where an agent's memory comes from, read in steps: files of its home, briefs, work items, episodes, corrections.

Marks say up to where each was read. The log moves past a mark with every record that is written: that is what makes an
index out of date. Ordinary files of a workspace are no memory and are not looked at.
"""

import asyncio
import hashlib
import hmac
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.contracts.memory import OPERATOR, MemoryEntry, MemoryKind, MemoryLine
from wakeful.contracts.work_items import WorkItem
from wakeful.decisions.memory.episodes import episode_text
from wakeful.decisions.memory.working_memory import brief_key, item_key, line_of
from wakeful.decisions.policy.provenance import is_instruction
from wakeful.engine.brief_texts import brief_text
from wakeful.engine.memory_files import FILES, read_file, sections
from wakeful.engine.prepare.file_taint import why_untrusted
from wakeful.engine.work_items import report_of
from wakeful.ports import BriefRow, Store
from wakeful.ports.memory import EpisodeRow, MemoryChangeRow

PAGE = 500
"""How many records are read at a time."""
TITLE = 120
LOOK_BACK = 2 * 3600 * 1_000_000
"""Work items are read in the order of their times: those that changed so shortly before the mark are read again."""


class SourceStep(NamedTuple):
    """A page of what is new."""

    entries: list[MemoryEntry]
    gone: list[str]
    """Keys of entries that are no more."""
    marks: dict[str, Any]
    """Up to where everything was read with it."""
    files: MemoryKind | None = None
    """These are all entries of one file: what else there is of its kind is gone."""
    problem: str = ""
    """Why the file is left out, though something is there."""


def ref_of(store: Store, agent_id: str, key: str) -> str:
    """The opaque handle of an entry: only this store can make it."""
    said = f"memory/{agent_id}/{key}".encode()
    return "mem_" + hmac.new(store.secret, said, hashlib.sha256).hexdigest()[:20]


async def fits(store: Store, agent_id: str, marks: Mapping[str, Any]) -> bool:
    """Does the log still hold what was read up to these marks? A store that was restored from a copy may not."""
    if not marks.get("briefs"):
        return True
    found = await store.briefs_after(agent_id, marks["briefs"] - 1, limit=1)
    return bool(found) and found[0].brief_id == marks["brief"]


async def steps_after(
    store: Store, agent_id: str, agent_home: Path, before: Mapping[str, Any]
) -> AsyncIterator[SourceStep]:
    """Everything that is new since these marks, a page at a time. Corrections come first: they hold for the rest."""
    marks = dict(before)
    corrected = {row.entry: row for row in await store.memory_changes(agent_id)}
    newest = max((row.changed_seq for row in corrected.values()), default=0)
    if newest > marks.get("corrections", 0):
        new = [row for row in corrected.values() if row.changed_seq > marks.get("corrections", 0)]
        marks |= {"corrections": newest, "episodes": 0}  # they may have the words of what was taken back
        gone = [row.entry for row in new if row.state == "forgotten" and row.kind not in FILES]  # a file says itself
        yield SourceStep([], gone, dict(marks))
        yield SourceStep(await _edited(store, agent_id, new), [], dict(marks))
    async for step in _briefs(store, agent_id, marks, corrected):
        yield step
    async for step in _episodes(store, agent_id, marks, corrected):
        yield step
    async for step in _work_items(store, agent_id, marks, corrected):
        yield step
    for kind, name in FILES.items():
        found = await _file(store, agent_home, kind, name, marks)
        if found is not None:
            yield found


# --- records ------------------------------------------------------------------------------------------------------


async def _briefs(
    store: Store, agent_id: str, marks: dict[str, Any], corrected: Mapping[str, MemoryChangeRow]
) -> AsyncIterator[SourceStep]:
    while rows := await store.briefs_after(agent_id, marks.get("briefs", 0), limit=PAGE):
        entries = [found for row in rows if (found := await _brief(store, row, corrected)) is not None]
        marks |= {"briefs": rows[-1].created_seq, "brief": rows[-1].brief_id}
        yield SourceStep(entries, [], dict(marks))


async def _brief(store: Store, row: BriefRow, corrected: Mapping[str, MemoryChangeRow]) -> MemoryEntry | None:
    key = brief_key(row.brief_id)
    text = _corrected(key, corrected, await brief_text(store, row.text_event_id))
    if not text.strip():
        return None
    return MemoryEntry(
        key=key,
        kind="brief",
        title=line_of(text, TITLE),
        body=text,
        updated_at=row.created_at,
        workspace_id=row.workspace_id,
        principal=row.principal,
        untrusted=_why(row.derived_from, f"brief {row.brief_id}"),
        metadata={
            "brief_kind": row.kind,
            "turn_id": row.turn_id,
            "thread": row.thread_id,
            **({"work_item_id": row.work_item_id} if row.work_item_id else {}),
        },
    )


async def _episodes(
    store: Store, agent_id: str, marks: dict[str, Any], corrected: Mapping[str, MemoryChangeRow]
) -> AsyncIterator[SourceStep]:
    while rows := await store.episodes(agent_id, after=marks.get("episodes", 0), limit=PAGE):
        made = [_episode(row, corrected) for row in rows]
        marks["episodes"] = rows[-1].finalized_seq
        yield SourceStep([each for each in made if each is not None], [], dict(marks))


def _episode(row: EpisodeRow, corrected: Mapping[str, MemoryChangeRow]) -> MemoryEntry | None:
    key = f"episode:{row.episode_id}"
    text = _corrected(key, corrected, episode_words(row, corrected))
    if not text:
        return None
    return MemoryEntry(
        key=key,
        kind="episode",
        title=line_of(text, TITLE),
        body=text,
        updated_at=row.finalized_at,
        workspace_id=row.workspace_id,
        principal=row.principal,
        untrusted=f"episode {row.episode_id}: {row.untrusted}" if row.untrusted else "",
        metadata={
            "turns": [row.start_turn_index, row.end_turn_index],
            "messages": [row.start_message_count, row.end_message_count],
            "boundary_reason": row.boundary_reason,
            "thread": row.thread_id,
            **({"work_item_id": row.current_work_item_id} if row.current_work_item_id else {}),
        },
    )


def episode_words(row: EpisodeRow, corrected: Mapping[str, MemoryChangeRow]) -> str:
    """An episode in words, without those that a person took back."""
    return episode_text(
        row.objective,
        row.current_work_item_id,
        row.work_summary,
        row.boundary_reason,
        row.working_set_files,
        row.commands,
        row.verification,
        [MemoryLine(**line) for line in row.decisions],
        [MemoryLine(**line) for line in row.carry_forward],
        [MemoryLine(**line) for line in row.waiting_on],
        corrected,
    )


async def _work_items(
    store: Store, agent_id: str, marks: dict[str, Any], corrected: Mapping[str, MemoryChangeRow]
) -> AsyncIterator[SourceStep]:
    for state in ("open", "completed"):
        # Two changes may have the same time, and a change after the clock was set back has an earlier one.
        since = marks.get(state, 0) - LOOK_BACK
        while rows := await store.work_items_since(agent_id, state == "open", since, limit=PAGE):
            entries = [await _work_item(store, item, corrected) for item in rows]
            marks[state] = max(rows[-1].updated_at, marks.get(state, 0))
            yield SourceStep([each for each in entries if each is not None], [], dict(marks))
            if len(rows) < PAGE:
                break
            since = rows[-1].updated_at


async def _work_item(store: Store, item: WorkItem, corrected: Mapping[str, MemoryChangeRow]) -> MemoryEntry | None:
    key = item_key(item.work_item_id)
    lines = [item.objective, *(f"- {each['text']} ({each['state']})" for each in item.todo_list)]
    if item.blocked_by:
        lines.append(f"Blocked by: {item.blocked_by}")
    if report := await report_of(store, item):
        lines.append(f"Report: {report}")
    text = _corrected(key, corrected, "\n".join(lines))
    if not text:
        return None
    return MemoryEntry(
        key=key,
        kind="work_item",
        title=line_of(text, TITLE),
        body=text,
        updated_at=item.updated_at,
        workspace_id=item.workspace_id,
        principal=item.principal,
        untrusted=_why(item.derived_from, f"work item {item.work_item_id}"),
        metadata={"work_item_id": item.work_item_id, "state": item.state, "plan_status": item.plan_status},
    )


async def _edited(store: Store, agent_id: str, rows: list[MemoryChangeRow]) -> list[MemoryEntry]:
    """Records that say something else since somebody corrected them."""
    by_key = {row.entry: row for row in rows if row.state == "edited"}
    found: list[MemoryEntry | None] = []
    for key, row in by_key.items():
        name = key.partition(":")[2]
        if row.kind == "brief":
            brief = await store.brief(name)
            found.append(await _brief(store, brief, by_key) if brief is not None else None)
        elif row.kind == "work_item":
            item = await store.work_item(name)
            found.append(await _work_item(store, item, by_key) if item is not None else None)
    return [each for each in found if each is not None]


def _corrected(key: str, corrected: Mapping[str, MemoryChangeRow], text: str) -> str:
    row = corrected.get(key)
    return text if row is None else row.text


def _why(derived_from: str, what: str) -> str:
    return "" if is_instruction(derived_from) else f"{what}, derived from {derived_from}"


# --- files --------------------------------------------------------------------------------------------------------


async def _file(
    store: Store, agent_home: Path, kind: MemoryKind, name: str, marks: dict[str, Any]
) -> SourceStep | None:
    """A file's entries, where it is another one than it was. One that cannot be read has none, and says so."""
    text, changed, problem = await asyncio.to_thread(read_file, agent_home, name)
    root = await asyncio.to_thread(os.path.realpath, agent_home)
    why = await why_untrusted(store, root, [name]) if text else ""
    mark = [hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(), why]
    if not problem and marks.get(kind, [hashlib.sha256(b"").hexdigest(), ""]) == mark:
        return None
    marks[kind] = mark
    entries = [
        MemoryEntry(
            key=f"{kind}:{section.name}",
            kind=kind,
            title=section.title or name,
            body=section.body,
            updated_at=changed,
            principal=OPERATOR if kind == "operator" else "",
            untrusted=why,
            source_path=name,
        )
        for section in sections(text)
    ]
    return SourceStep(entries, [], dict(marks), kind, f"left out: {problem}" if problem else "")
