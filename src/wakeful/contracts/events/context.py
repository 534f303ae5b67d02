"""Facts about what a model is shown: what was chosen, what was left out, and what was folded into a summary."""

from typing import ClassVar, Literal, TypeAlias

from wakeful.contracts.content import BlobRef
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.events.base import Event, Preview
from wakeful.contracts.skills import ActiveSkill, LoadReason, SkillScope
from wakeful.contracts.values import Value

OmissionReason: TypeAlias = Literal[
    "budget_limit",
    "low_relevance",
    "duplicate",
    "stale",
    "policy_blocked",
    "permission_missing",
    "unsupported_media",
    "too_large",
    "sensitive",
    "superseded_by_summary",
    "not_visible_to_target",
    "custom",
]
MissingStatus: TypeAlias = Literal["open", "requested", "waiting", "resolved", "declined", "blocked", "expired"]
CompactionTrigger: TypeAlias = Literal[
    "manual",
    "token_pressure",
    "context_budget",
    "context_exceeded",
    "session_length",
    "task_boundary",
    "handoff",
    "custom",
]
CompactionError: TypeAlias = Literal["summarizer_failed", "conservation_violated", "still_too_large", "cancelled"]


class ContextItem(Value):
    """One thing that went into a request."""

    ref: str
    kind: Literal[
        "memory",
        "knowledge",
        "workspace",
        "file",
        "browser",
        "session",
        "policy",
        "instruction",
        "history",
        "plan",
        "skill",
        "custom",
    ]
    digest: str | None = None
    tokens: int | None = None
    freshness: Literal["current", "stale", "unknown"] = "current"
    trust: str | None = None


class ContextOmission(Value):
    """One thing that could have, and did not."""

    ref: str
    reason: OmissionReason
    high_impact: bool = False
    """It could change the answer."""
    detail: str = ""
    """The reason in words, where the word for it does not say enough."""


class MissingFact(Value):
    """Something that nobody knows yet."""

    fact: str
    status: MissingStatus
    needed_for: str | None = None


class ContextResolved(Event):
    """What the turn's requests rest on. Contents are referred to, not copied."""

    kind: ClassVar[str] = "context.resolved"
    aliases: ClassVar[tuple[str, ...]] = ("turn_context_built",)

    context_id: str
    revision: int = 1
    memory_refs: tuple[ContextItem, ...] = ()
    knowledge_refs: tuple[ContextItem, ...] = ()
    workspace_refs: tuple[ContextItem, ...] = ()
    browser_refs: tuple[ContextItem, ...] = ()
    policy_facts: tuple[ContextItem, ...] = ()
    instruction_refs: tuple[ContextItem, ...] = ()
    history_refs: tuple[ContextItem, ...] = ()
    omissions: tuple[ContextOmission, ...] = ()
    missing: tuple[MissingFact, ...] = ()
    token_limit: int | None = None
    tokens_used: int
    tokens_are_estimate: bool
    compaction_id: str | None = None
    """The latest boundary this context rests on."""
    untrusted_refs: tuple[str, ...] = ()
    """Files among the instructions and skills that the owner has not accepted: the turn has untrusted input."""
    reason: str = ""
    """Why it was resolved again, when it was."""
    context_build_ms: float
    """How long assembling it took."""


class KnowledgeRetrieved(Event):
    """Passages were looked up for the turn's message. In the conversation they follow it."""

    kind: ClassVar[str] = "context.retrieved"

    collections: tuple[str, ...]
    query_preview: Preview = ""
    passages: tuple[ContextItem, ...]
    item: UserItem
    """What the model is shown of them."""
    untrusted: bool = False
    """Anybody may have written them: the turn has seen untrusted input."""
    duration_ms: float


class SkillActivated(Event):
    """A skill was opened, or one of its scripts was run. That it was found in a catalogue says nothing here."""

    kind: ClassVar[str] = "context.skill_activated"
    aliases: ClassVar[tuple[str, ...]] = ("skill_activated",)

    skill: str
    scope: SkillScope
    load_reason: LoadReason
    path: str
    """What activated it: its `SKILL.md`, or the script."""
    entrypoint_path: str
    """Its `SKILL.md`."""
    state: Literal["turn_active"] = "turn_active"


class ThreadCheckpointed(Event):
    """The conversation stands in pages, word for word. Later turns begin to read here."""

    kind: ClassVar[str] = "thread.checkpointed"

    conversation_ref: BlobRef
    """The newest page; it names the one before it."""
    items: int
    """How many items the pages hold."""
    with_turn: bool = False
    """As the turn leaves it at its end. Otherwise as it was before the turn."""


class CompactionStarted(Event):
    """Part of a conversation is to be folded into a summary. Makes the level that writes it."""

    kind: ClassVar[str] = "context.compaction.started"

    compaction_id: str
    trigger: CompactionTrigger
    affected_turn_ids: tuple[str, ...] = ()
    tokens_before: int
    cut: int
    """How many items of the conversation are folded."""
    level_id: str | None = None
    """The level that summarises; None where no model is asked."""


class WindowStart(Value):
    """Where a later turn of the thread begins to read, and what it has to know of everything before that."""

    from_turn: str
    """The oldest turn of which something is shown word for word."""
    items: int
    """How many items the conversation had when that turn began."""
    untrusted: str = ""
    private: str = ""
    """What the conversation has seen so far, by its first cause."""
    skills: tuple[ActiveSkill, ...] = ()
    """Skills that completed turns before this one used."""
    advised: dict[int, int] = {}
    """Where the model was told how full its context is, among the items that stay."""


class CompactionCompleted(Event):
    """From here on the model is shown the summary in the place of what it replaces. The log keeps everything."""

    kind: ClassVar[str] = "context.compaction.completed"

    compaction_id: str
    trigger: CompactionTrigger
    affected_turn_ids: tuple[str, ...] = ()
    summary_preview: Preview = ""
    summary_ref: str
    continuation_ref: str
    """The first event that rests on the summary."""
    tokens_before: int
    tokens_after: int
    preserved_action_ids: tuple[str, ...] = ()
    preserved_incident_refs: tuple[str, ...] = ()
    preserved_evidence_refs: tuple[str, ...] = ()
    preserved_artifact_refs: tuple[str, ...] = ()
    folded_message_ids: tuple[str, ...] = ()
    """Of the messages among what is folded; where there are very many, the oldest and the newest of them."""
    folded_messages: int = 0
    rests_on: str | None = None
    """The compaction whose summary is folded in here: what it names is not named again."""
    window: WindowStart | None = None
    """Of the turn's own conversation; None where a child's was folded."""
    model_ref: str | None = None
    """Who summarised."""
    duration_ms: int
    cut: int
    """Up to which item the conversation is folded."""
    pinned: int | None = None
    """The item among them that stays as it is, behind the summary: what was asked last."""
    summary: UserItem | None = None
    """What the model is shown in their place."""
    summary_form: int = 1
    """How it was put together from its writer's words; another form is not made again by a replay."""


class CompactionFailed(Event):
    """The conversation stays as it was."""

    kind: ClassVar[str] = "context.compaction.failed"

    compaction_id: str
    trigger: CompactionTrigger
    affected_turn_ids: tuple[str, ...] = ()
    error_category: CompactionError
    message: str
    retryable: bool
    tokens_before: int
    continuation_ref: str
