"""Memory: the working memory of each agent, what its threads were shown of it, episodes, and what people corrected."""

from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from wakeful.contracts.memory import EpisodeBoundary, MemoryKind
from wakeful.ports.tables import RowQuery, Rows, Table, TableIndex

ChangeState: TypeAlias = Literal["edited", "forgotten"]


class WorkingMemoryRow(NamedTuple):
    """An agent's working memory, by revision."""

    agent_id: str
    revision: int
    """Of `current`; it grows by one with every change."""
    compression_epoch: int
    """How often a conversation of the agent was folded."""
    current: dict[str, Any]
    """A `WorkingMemorySnapshot`."""
    field_revisions: dict[str, int]
    """By field: the revision that changed it last."""
    snapshot_revision: int
    """The revision that prompts begin with."""
    snapshot: dict[str, Any]
    pending_delta: dict[str, Any] | None
    """A `WorkingMemoryDelta`: what no prompt has shown yet."""
    last_prompted_revision: int | None
    turn_index: int
    """Turns that were recorded."""
    message_count: int
    """Messages that they took."""
    active_episode: dict[str, Any] | None
    """An `EpisodeBuilder`."""
    archived_episodes: int
    updated_at: int


class PromptedMemoryRow(NamedTuple):
    """What the newest turn of a thread was shown of working memory."""

    agent_id: str
    thread_id: str
    snapshot_revision: int
    revision: int


class EpisodeRow(NamedTuple):
    """A stretch of work that is over. It never changes."""

    episode_id: str
    agent_id: str
    finalized_seq: int
    """The event that ended it."""
    thread_id: str
    workspace_id: str
    principal: str
    created_at: int
    finalized_at: int
    start_turn_index: int
    end_turn_index: int
    start_message_count: int
    end_message_count: int
    boundary_reason: EpisodeBoundary
    current_work_item_id: str
    """Blank: there was none."""
    objective: str
    work_summary: str
    working_set_files: tuple[str, ...]
    commands: tuple[str, ...]
    verification: tuple[str, ...]
    decisions: tuple[dict[str, Any], ...]
    carry_forward: tuple[dict[str, Any], ...]
    waiting_on: tuple[dict[str, Any], ...]
    """Of these three: a `MemoryLine` each."""
    untrusted: str
    """Why its words are no instruction; blank: they are trusted."""


class MemoryChangeRow(NamedTuple):
    """What a person made of an entry."""

    agent_id: str
    entry: str
    kind: MemoryKind
    state: ChangeState
    text: str
    """Of one that was edited: what it says since."""
    changed_by: str
    changed_seq: int
    changed_at: int


class MemoryUseRow(NamedTuple):
    """When a model was last shown an entry."""

    agent_id: str
    ref: str
    """The entry's opaque handle."""
    turn_id: str
    uses: int
    used_at: int


WORKING_MEMORY = Table("working_memory", WorkingMemoryRow, key=("agent_id",))
PROMPTED_MEMORY = Table("prompted_memory", PromptedMemoryRow, key=("agent_id", "thread_id"))
EPISODES_OF_AGENT = RowQuery(("finalized_seq",), equal=("agent_id",), served_by="episodes_of_agent")
EPISODES = Table(
    "episodes",
    EpisodeRow,
    key=("episode_id",),
    indexes=(TableIndex("episodes_of_agent", ("agent_id", "finalized_seq")),),
    queries=(EPISODES_OF_AGENT,),
)
CHANGES_OF_AGENT = RowQuery(("changed_seq",), equal=("agent_id",), served_by="memory_changes_of_agent")
MEMORY_CHANGES = Table(
    "memory_changes",
    MemoryChangeRow,
    key=("agent_id", "entry"),
    indexes=(TableIndex("memory_changes_of_agent", ("agent_id", "changed_seq")),),
    queries=(CHANGES_OF_AGENT,),
)
MEMORY_USES = Table("memory_uses", MemoryUseRow, key=("agent_id", "ref"))


class MemoryRows(Rows, Protocol):
    """Reads what is on record of agents' memory."""

    async def working_memory(self, agent_id: str) -> WorkingMemoryRow | None:
        return await self.get_row(WORKING_MEMORY, agent_id)

    async def prompted_memory(self, agent_id: str, thread_id: str) -> PromptedMemoryRow | None:
        return await self.get_row(PROMPTED_MEMORY, agent_id, thread_id)

    async def episodes(self, agent_id: str, *, after: int = 0, limit: int | None = None) -> list[EpisodeRow]:
        """The oldest first, of those that ended after an event."""
        return await self.list_rows(EPISODES, EPISODES_OF_AGENT, agent_id, after=(after,), limit=limit)

    async def memory_changes(self, agent_id: str, *, after: int = 0) -> list[MemoryChangeRow]:
        """What people corrected, the oldest first."""
        return await self.list_rows(MEMORY_CHANGES, CHANGES_OF_AGENT, agent_id, after=(after,))

    async def memory_change(self, agent_id: str, entry: str) -> MemoryChangeRow | None:
        return await self.get_row(MEMORY_CHANGES, agent_id, entry)

    async def memory_use(self, agent_id: str, ref: str) -> MemoryUseRow | None:
        return await self.get_row(MEMORY_USES, agent_id, ref)
