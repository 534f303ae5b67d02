"""An agent's memory as values: entries that can be found again, and the working memory that every turn begins with.

Entries are curated files of the agent's home and what the runtime has on record: briefs, work items, episodes. Working
memory is derived from records alone; no model writes it.
"""

from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wakeful.contracts.values import Value

MemoryKind: TypeAlias = Literal["self", "operator", "brief", "work_item", "episode"]
"""self, operator: a section of `memory/self.md` or `memory/operator.md`. brief: what the agent told its people.
work_item: an objective, and its report. episode: what a stretch of work came to."""
MemoryScope: TypeAlias = Literal["agent", "workspace"]
MemoryUse: TypeAlias = Literal["search", "get", "recall"]
EpisodeBoundary: TypeAlias = Literal["work_switched", "result", "waiting", "task_rejoined", "turn_cap"]
"""Why an episode is over. work_switched: another item is current. result: a work item was completed. waiting: the agent
waits or sleeps. task_rejoined: a background task came back. turn_cap: it has as many turns as an episode may have."""

MEMORY_SEARCH: Final = "memory_search"
MEMORY_GET: Final = "memory_get"
SELF_FILE: Final = "memory/self.md"
OPERATOR_FILE: Final = "memory/operator.md"
"""In the agent's home."""
OPERATOR: Final = "operator"
"""Whom `operator.md` belongs to: the chats of others do not find it."""

SHOWN_RESULTS: Final = 10
MAX_RESULTS: Final = 50
SHOWN_CHARS: Final = 12_000
MAX_CHARS: Final = 50_000
MAX_QUERY: Final = 2_000
RECALLED_ENTRIES: Final = 5
RECALLED_TOKENS: Final = 2_000
MAX_ENTRY: Final = 100_000
"""Characters that a person may give an entry."""
EPISODE_TURNS: Final = 12
EPISODE_FILES: Final = 10
EPISODE_LINES: Final = 8
EPISODE_SUMMARY: Final = 2_000
"""What an episode holds at most; of text, characters."""


class MemoryEntry(NamedTuple):
    """Something that can be found again, with where it is from."""

    key: str
    """Its kind and its name there: `brief:brief_7`. Readers are given an opaque handle instead."""
    kind: MemoryKind
    title: str
    body: str
    """The original words."""
    updated_at: int
    """Unix microseconds."""
    workspace_id: str = ""
    """Where the agent worked when the record was written; blank: it belongs to the agent, wherever it works."""
    principal: str = ""
    """Whom it came from; blank: it is the agent's own."""
    untrusted: str = ""
    """Why its words are no instruction; blank: they are trusted."""
    source_path: str = ""
    """The file of the agent's home that it is a section of."""
    metadata: dict[str, Any] = {}

    @property
    def scope_kind(self) -> MemoryScope:
        return "workspace" if self.workspace_id else "agent"


class MemoryLine(Value):
    """A line of working memory or of an episode, and the entry that its words are from."""

    text: str
    source: str = ""
    """The key of that entry; blank: the words are in no other."""
    principal: str = ""
    """Whom the words came from; blank: they are the agent's own."""


class WorkingMemorySnapshot(Value):
    """What an agent knows of its own work without looking anything up."""

    current_work_item_id: str | None = None
    work_principal: str = ""
    """Whom the current item came from; blank: it is the agent's own."""
    objective: str = ""
    work_summary: str = ""
    plan: str = ""
    todo_list: tuple[str, ...] = ()
    working_set_files: tuple[str, ...] = ()
    recent_decisions: tuple[MemoryLine, ...] = ()
    pending_followups: tuple[MemoryLine, ...] = ()
    waiting_on: tuple[MemoryLine, ...] = ()


class WorkingMemoryDelta(Value):
    """What changed between two revisions."""

    from_revision: int
    to_revision: int
    created_at_turn: int
    reason: str
    changed_fields: tuple[str, ...]
    summary_lines: tuple[str, ...]


class TurnMemoryDelta(Value):
    """What one turn adds to the episode it belongs to."""

    turn_index: int
    messages: int = 0
    """How many messages the turn took."""
    current_work_item_id: str | None = None
    objective: str = ""
    active_work_changed: bool = False
    plan_changed: bool = False
    todo_list_changed: bool = False
    touched_files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    verification: tuple[str, ...] = ()
    decisions: tuple[MemoryLine, ...] = ()
    pending_followups: tuple[MemoryLine, ...] = ()
    waiting_on: tuple[MemoryLine, ...] = ()
    untrusted: str = ""
    """The turn had untrusted input, by its first cause: its words are no instruction."""


class EpisodeBuilder(Value):
    """An episode that is not over."""

    id: str
    thread_id: str
    workspace_id: str = ""
    principal: str = ""
    created_at: int
    start_turn_index: int
    end_turn_index: int
    start_message_count: int
    end_message_count: int
    turns: int = 1
    current_work_item_id: str | None = None
    objective: str = ""
    working_set_files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    verification: tuple[str, ...] = ()
    decisions: tuple[MemoryLine, ...] = ()
    carry_forward: tuple[MemoryLine, ...] = ()
    waiting_on: tuple[MemoryLine, ...] = ()
    untrusted: str = ""
