"""An agent's memory for people: entries with their source and last use, and working memory."""

import logging
from pathlib import Path

from wakeful.contracts.errors import AgentNotFound, CursorGone, InvalidRequest
from wakeful.contracts.memory import EpisodeBuilder, MemoryEntry, WorkingMemoryDelta, WorkingMemorySnapshot
from wakeful.engine.agent_memory import AgentMemory
from wakeful.ports import Store
from wakeful.ports.runtime_agents import RUNTIME_AGENTS
from wakeful.retrieval.memory_index import EVERYTHING, MOST_RANKED
from wakeful.service.queries.known_agents import check_known
from wakeful.service.queries.record_names import SHORTEST, several
from wakeful.settings.agent_homes import agent_home, home_of_store
from wakeful.views.memory_records import MemoryRecord, WorkingMemoryState

LOG = logging.getLogger(__name__)


async def memory_of_agent(store: Store, agent: str) -> AgentMemory:
    """Raises AgentNotFound for an agent that the store has nothing of, or that was deleted, and its memory with it."""
    await check_known(store, agent)
    row = await store.get_row(RUNTIME_AGENTS, agent)
    if row is not None and row.deleted_at is not None:
        raise AgentNotFound(f"agent {agent!r} was deleted", "Its log stays in the store: wakeful store export FILE")
    return AgentMemory(store, agent, home_of_agent(store, agent))


def home_of_agent(store: Store, agent: str) -> Path:
    """Where the memory files of an agent of this store are."""
    return agent_home(home_of_store(store.location), agent)


async def memory_entries(
    store: Store, agent: str, *, find: str | None = None, limit: int = 100, after: str | None = None
) -> list[MemoryRecord]:
    """The newest entries; with `find`, those nearest to these words. `after`: behind that entry.

    Raises CursorGone for an entry that is forgotten, or that is no answer to the words any more.
    """
    memory = await memory_of_agent(store, agent)
    gone = CursorGone(f"agent {agent!r} has no entry {after} to continue after", "Begin again without a cursor.")
    if find is not None:
        most = limit if after is None else MOST_RANKED
        answer = await memory.search(find, EVERYTHING, most)
        found, problem = [(each.ref, each.entry) for each in answer.found], answer.problem
        refs = [ref for ref, _ in found]
        if after is not None and after not in refs:
            raise gone
        begin = 0 if after is None else refs.index(after) + 1
        found = found[begin : begin + limit]
    else:
        if after is not None and await memory.get(after, EVERYTHING) is None:
            raise gone
        found, problem = await memory.newest(limit, after)
    if problem:
        LOG.warning("memory of %s: %s", agent, problem)
    return [await _record(store, agent, ref, entry) for ref, entry in found]


async def memory_entry(store: Store, agent: str, ref: str) -> MemoryRecord:
    """One entry by its handle, or the beginning of it. Raises InvalidRequest, saying what there is."""
    found, entry = await entry_of(store, agent, ref)
    return await _record(store, agent, found, entry)


async def entry_of(store: Store, agent: str, ref: str) -> tuple[str, MemoryEntry]:
    memory = await memory_of_agent(store, agent)
    entry = await memory.get(ref, EVERYTHING)
    if entry is not None:
        return ref, entry
    near = await memory.refs(ref, 5) if len(ref) >= SHORTEST else []
    if len(near) > 1:
        raise InvalidRequest(*several(ref, "memory entries", near))
    entry = await memory.get(near[0], EVERYTHING) if near else None
    if entry is None:
        _, problem = await memory.newest(1)
        raise InvalidRequest(
            f"agent {agent!r} has no memory entry {ref!r}{f' ({problem})' if problem else ''}",
            f"List what it remembers: wakeful memory list {agent}",
        )
    return near[0], entry


async def working_memory(store: Store, agent: str) -> WorkingMemoryState:
    """Working memory with its revisions; the empty one of an agent that has no turn behind it."""
    await memory_of_agent(store, agent)
    row = await store.working_memory(agent)
    if row is None:
        return WorkingMemoryState(agent=agent)
    builder = EpisodeBuilder.model_validate(row.active_episode) if row.active_episode is not None else None
    pending = WorkingMemoryDelta.model_validate(row.pending_delta) if row.pending_delta is not None else None
    return WorkingMemoryState(
        agent=agent,
        working_memory_revision=row.revision,
        compression_epoch=row.compression_epoch,
        current_working_memory=WorkingMemorySnapshot.model_validate(row.current),
        snapshot_revision=row.snapshot_revision,
        pending_working_memory_delta=pending,
        last_prompted_working_memory_revision=row.last_prompted_revision,
        active_episode_id=builder.id if builder is not None else None,
        active_episode_builder=builder,
        archived_episode_count=row.archived_episodes,
    )


async def _record(store: Store, agent: str, ref: str, entry: MemoryEntry) -> MemoryRecord:
    used, change = await store.memory_use(agent, ref), await store.memory_change(agent, entry.key)
    return MemoryRecord(
        source_ref=ref,
        agent=agent,
        kind=entry.kind,
        title=entry.title,
        text=entry.body,
        source_path=entry.source_path or None,
        workspace_id=entry.workspace_id or None,
        principal=entry.principal or None,
        untrusted=entry.untrusted,
        metadata=entry.metadata,
        updated_at=entry.updated_at / 1e6,
        edited_by=change.changed_by if change is not None and change.state == "edited" else None,
        uses=used.uses if used is not None else 0,
        last_used_at=used.used_at / 1e6 if used is not None else None,
        last_used_in=used.turn_id if used is not None else None,
    )
