"""Memory for readers: an entry with where it is from and when it was last used, and working memory by revision.

Times are Unix seconds.
"""

from typing import Any

from wakeful.contracts.memory import EpisodeBuilder, MemoryKind, WorkingMemoryDelta, WorkingMemorySnapshot
from wakeful.contracts.values import Value


class MemoryRecord(Value):
    """One entry of an agent's memory."""

    source_ref: str
    """Its handle: what `show`, `edit` and `forget` take."""
    agent: str
    kind: MemoryKind
    title: str
    text: str
    source_path: str | None = None
    """The file of the agent's home that it is a section of."""
    workspace_id: str | None = None
    principal: str | None = None
    """Whom it came from; None: it is the agent's own."""
    untrusted: str = ""
    """Why its words are no instruction; blank: they are trusted."""
    metadata: dict[str, Any] = {}
    """Ids of what it is from: turn, work item, thread."""
    updated_at: float
    edited_by: str | None = None
    """Who corrected what it says."""
    uses: int = 0
    """How often a model was shown it."""
    last_used_at: float | None = None
    last_used_in: str | None = None
    """The turn."""


class WorkingMemoryState(Value):
    """An agent's working memory, and how far prompts know it."""

    agent: str
    working_memory_revision: int = 0
    compression_epoch: int = 0
    current_working_memory: WorkingMemorySnapshot = WorkingMemorySnapshot()
    snapshot_revision: int = 0
    """The revision that prompts begin with."""
    pending_working_memory_delta: WorkingMemoryDelta | None = None
    last_prompted_working_memory_revision: int | None = None
    active_episode_id: str | None = None
    active_episode_builder: EpisodeBuilder | None = None
    archived_episode_count: int = 0
