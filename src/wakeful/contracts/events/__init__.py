"""Every event there is: one closed union of typed payloads, past tense, and their names.

Here live the payloads. The envelope (ids, sequence, time) is in `contracts.envelope`, old shapes are brought up to date
in `contracts.history`, and what an event means for a turn is in `decisions.evolve`.
"""

from typing import TypeAlias

from wakeful.contracts.events.agents import (
    AgentArchived,
    AgentCreated,
    AgentDeleted,
    AgentModelChanged,
    AgentRevised,
    AgentStateChanged,
)
from wakeful.contracts.events.base import Event, RuntimeFact, UnrecognisedEvent
from wakeful.contracts.events.briefs import BriefCreated
from wakeful.contracts.events.channels import (
    ChannelAdded,
    ChannelInputReceived,
    ChannelInputSettled,
    ChannelMessageAttempted,
    ChannelMessageClosed,
    ChannelPaired,
    ChannelPairingOpened,
    ChannelPeerSeen,
    ChannelPolled,
    ChannelRemoved,
    ChannelTestRequested,
    ChannelTroubled,
)
from wakeful.contracts.events.context import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ContextItem,
    ContextOmission,
    ContextResolved,
    KnowledgeRetrieved,
    MissingFact,
    SkillActivated,
    ThreadCheckpointed,
)
from wakeful.contracts.events.gate import (
    ActionRequired,
    ActionResolved,
    ActionSettled,
    ActionStaged,
    ApprovalRuleAdded,
    ApprovalRuleRevoked,
    FilesTainted,
    HookCompleted,
    HookFailed,
    HookStarted,
    OutputRedacted,
    OutputSpilled,
    OutputTruncated,
    RuntimeToolContinued,
    RuntimeToolRequested,
    RuntimeToolResolved,
    SandboxApplied,
    SandboxViolation,
    ToolCatalogResolved,
    WarningIssued,
)
from wakeful.contracts.events.holds import (
    FilesLoaded,
    FilesReloadRequested,
    HeartbeatChanged,
    PackageReplaced,
    ProviderAnswered,
    ProviderDisappeared,
    ProviderParked,
    ProviderUnparked,
    RuntimeControlChanged,
    RuntimePartFailed,
)
from wakeful.contracts.events.keyed_requests import KeyedRequestAnswered, KeyedRequestReleased, KeyedRequestStarted
from wakeful.contracts.events.levels import (
    PlanArtifact,
    PlanningCompleted,
    PlanningFailed,
    PlanningStarted,
    PlanStep,
    ScratchWritten,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
    TurnInterjected,
    TurnPauseLifted,
    TurnPauseRequested,
)
from wakeful.contracts.events.liveness import LivenessViolated
from wakeful.contracts.events.loop import (
    CompletionBlocked,
    CompletionPolicyContinued,
    CompletionPolicyStopped,
    IdenticalFailureNudged,
    InterruptIgnored,
    InterruptReceived,
    IterationBudgetExceeded,
    LoopFact,
    LoopStalled,
    ObserverFailed,
    RejectedDeclaration,
    ToolDeclarationsRejected,
    ToolMediationDisabled,
    ToolMediationFailed,
    ToolResultDiagnosed,
    ToolResultTruncated,
    TranscriptClosed,
    TranscriptCompactionCompleted,
    TranscriptCompactionFailed,
    TranscriptCompactionStarted,
    TranscriptLockContended,
    TranscriptLockReleaseFailed,
    TranscriptOverflowArchived,
    TranscriptPersistFailed,
)
from wakeful.contracts.events.memory import (
    MemoryEntryEdited,
    MemoryEntryForgotten,
    MemoryEpisodeFinalized,
    MemoryFact,
    MemoryProjected,
    MemoryTurnRecorded,
    MemoryUsed,
)
from wakeful.contracts.events.models import (
    AssistantRecorded,
    CallAsked,
    ModelAnswered,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    ModelResponseAccepted,
    ModelResponseReattached,
    ModelWaitEnded,
    ModelWaiting,
)
from wakeful.contracts.events.notices import ActionReminded, NoticeAttempted, NoticeRequested, ResultChanged
from wakeful.contracts.events.retention import (
    EventExpired,
    LeftOfEvent,
    LogCheckpointed,
    OutputExpired,
    RetentionApplied,
    StoreSizeNoticed,
    ThreadDeleted,
    TurnEmptied,
)
from wakeful.contracts.events.routing import (
    CostEstimated,
    CostRecorded,
    ExcludedModel,
    LimitState,
    ModelCandidate,
    QuotaBlocked,
    QuotaLow,
    RateLimitHit,
    RoutingCandidatesResolved,
    RoutingDecided,
    RoutingFallbackApplied,
    RoutingNotPossible,
    RoutingSingleCandidate,
)
from wakeful.contracts.events.tasks import (
    GrantCounted,
    GrantRenewed,
    GrantReserved,
    GrantSettled,
    TaskCreated,
    TaskEnded,
    TaskRetried,
    TaskStatusChanged,
)
from wakeful.contracts.events.tools import (
    ErrorCategory,
    PermissionEvaluated,
    ToolArgs,
    ToolDispatched,
    ToolFailed,
    ToolProgress,
    ToolResult,
    ToolStarted,
    UnknownResolved,
)
from wakeful.contracts.events.triggers import (
    InputRefused,
    TriggerCreated,
    TriggerDelivered,
    TriggerRevised,
    TriggerRevoked,
    TriggerRotated,
    TriggerUrlGiven,
)
from wakeful.contracts.events.turns import (
    AnswerAccepted,
    AnswerRejected,
    BudgetGranted,
    BudgetNoticed,
    ContinuationDecided,
    HistoryImported,
    LimitChanged,
    LimitName,
    MessageAdmitted,
    MessageDeferred,
    MessageExpired,
    RestReason,
    SessionStarted,
    StopCause,
    StopRule,
    Terminal,
    TurnCompleted,
    TurnConfigChanged,
    TurnFailed,
    TurnInterruptApplied,
    TurnInterruptIgnored,
    TurnInterruptRequested,
    TurnPatienceEnded,
    TurnProviderReturned,
    TurnResumed,
    TurnRetried,
    TurnStarted,
    TurnStatus,
    TurnSuspended,
    TurnTimeSkipped,
)
from wakeful.contracts.events.waking import (
    ClockJumped,
    ContinuationResolved,
    MessageSettled,
    ProgressStalled,
    TimerArmed,
    TimerCancelled,
    TimerFired,
    TimerFolded,
    TimerMissed,
    TimerSkipped,
    WaitCancelled,
    WaitCreated,
    WaitExpired,
    WaitResolved,
    WakeHintStored,
    WakeHintTriggered,
    WakeMoved,
)
from wakeful.contracts.events.work import (
    WorkFact,
    WorkItemBlockerChanged,
    WorkItemCompleted,
    WorkItemCreated,
    WorkItemEnqueued,
    WorkItemPicked,
    WorkItemRechecked,
    WorkItemReminded,
    WorkItemUpdated,
    WorkQueueActivated,
    WorkQueueProjected,
    WorkQueueScheduled,
)
from wakeful.contracts.events.workflows import WorkflowNodeResolved, WorkflowStarted
from wakeful.contracts.events.workspaces import (
    WorkspaceAttached,
    WorkspaceDetached,
    WorkspaceUsed,
    WorktreeCleanupRequested,
    WorktreeCreated,
    WorktreeFailed,
    WorktreeRemoved,
    WorktreeRequested,
    WorktreeRetained,
)

AnyEvent: TypeAlias = (
    SessionStarted
    | MessageAdmitted
    | MessageDeferred
    | MessageExpired
    | HistoryImported
    | TurnStarted
    | ContextResolved
    | TurnConfigChanged
    | TurnInterruptRequested
    | TurnInterruptApplied
    | TurnInterruptIgnored
    | LimitChanged
    | AnswerAccepted
    | AnswerRejected
    | ContinuationDecided
    | TurnSuspended
    | TurnTimeSkipped
    | TurnPatienceEnded
    | TurnProviderReturned
    | TurnResumed
    | TurnRetried
    | TurnCompleted
    | TurnFailed
    | ModelRequested
    | ModelResponseAccepted
    | ModelResponseReattached
    | ModelFailed
    | ModelWaiting
    | ModelWaitEnded
    | ModelCompleted
    | ModelAnswered
    | AssistantRecorded
    | RoutingCandidatesResolved
    | RoutingSingleCandidate
    | RoutingDecided
    | RoutingNotPossible
    | RoutingFallbackApplied
    | RateLimitHit
    | QuotaLow
    | QuotaBlocked
    | CostEstimated
    | CostRecorded
    | PermissionEvaluated
    | ToolStarted
    | ToolDispatched
    | ToolArgs
    | ToolProgress
    | ToolResult
    | ToolFailed
    | UnknownResolved
    | ToolCatalogResolved
    | ActionRequired
    | ActionResolved
    | RuntimeToolRequested
    | RuntimeToolResolved
    | RuntimeToolContinued
    | ActionStaged
    | ActionSettled
    | ApprovalRuleAdded
    | ApprovalRuleRevoked
    | BudgetNoticed
    | BudgetGranted
    | SandboxApplied
    | SandboxViolation
    | FilesTainted
    | HookStarted
    | HookCompleted
    | HookFailed
    | OutputSpilled
    | OutputTruncated
    | WarningIssued
    | CompactionStarted
    | CompactionCompleted
    | CompactionFailed
    | KnowledgeRetrieved
    | SkillActivated
    | ThreadCheckpointed
    | SubagentStarted
    | SubagentCompleted
    | SubagentFailed
    | ScratchWritten
    | PlanningStarted
    | PlanningCompleted
    | PlanningFailed
    | TurnInterjected
    | TurnPauseRequested
    | TurnPauseLifted
    | WorkQueueProjected
    | WorkItemCreated
    | WorkItemEnqueued
    | WorkItemUpdated
    | WorkItemPicked
    | WorkItemCompleted
    | WorkItemRechecked
    | WorkItemBlockerChanged
    | WorkQueueScheduled
    | WorkQueueActivated
    | WorkItemReminded
    | BriefCreated
    | MemoryProjected
    | MemoryUsed
    | MemoryTurnRecorded
    | MemoryEpisodeFinalized
    | MemoryEntryEdited
    | MemoryEntryForgotten
    | WorkflowStarted
    | WorkflowNodeResolved
    | ObserverFailed
    | TranscriptPersistFailed
    | TranscriptLockContended
    | TranscriptLockReleaseFailed
    | ToolDeclarationsRejected
    | ToolMediationDisabled
    | ToolMediationFailed
    | CompletionBlocked
    | IterationBudgetExceeded
    | LoopStalled
    | IdenticalFailureNudged
    | CompletionPolicyStopped
    | CompletionPolicyContinued
    | InterruptReceived
    | InterruptIgnored
    | ToolResultTruncated
    | ToolResultDiagnosed
    | TranscriptCompactionStarted
    | TranscriptCompactionCompleted
    | TranscriptCompactionFailed
    | TranscriptOverflowArchived
    | TranscriptClosed
    | AgentArchived
    | AgentCreated
    | AgentDeleted
    | AgentModelChanged
    | AgentRevised
    | AgentStateChanged
    | TaskCreated
    | TaskStatusChanged
    | TaskEnded
    | TaskRetried
    | GrantReserved
    | GrantCounted
    | GrantSettled
    | GrantRenewed
    | TimerArmed
    | TimerFired
    | TimerFolded
    | TimerMissed
    | TimerSkipped
    | TimerCancelled
    | WaitCreated
    | WaitResolved
    | WaitExpired
    | WaitCancelled
    | InputRefused
    | TriggerCreated
    | TriggerDelivered
    | TriggerRevised
    | TriggerRevoked
    | TriggerRotated
    | TriggerUrlGiven
    | WakeHintStored
    | WakeHintTriggered
    | WakeMoved
    | ContinuationResolved
    | MessageSettled
    | ProgressStalled
    | ClockJumped
    | LivenessViolated
    | OutputRedacted
    | EventExpired
    | OutputExpired
    | ThreadDeleted
    | TurnEmptied
    | LogCheckpointed
    | RetentionApplied
    | StoreSizeNoticed
    | NoticeAttempted
    | NoticeRequested
    | ActionReminded
    | RuntimeControlChanged
    | FilesReloadRequested
    | FilesLoaded
    | PackageReplaced
    | ProviderAnswered
    | ProviderParked
    | ProviderDisappeared
    | ProviderUnparked
    | KeyedRequestStarted
    | KeyedRequestAnswered
    | KeyedRequestReleased
    | HeartbeatChanged
    | RuntimePartFailed
    | ResultChanged
    | ChannelAdded
    | ChannelInputReceived
    | ChannelInputSettled
    | ChannelMessageAttempted
    | ChannelMessageClosed
    | ChannelPaired
    | ChannelPairingOpened
    | ChannelPeerSeen
    | ChannelPolled
    | ChannelRemoved
    | ChannelTestRequested
    | ChannelTroubled
    | WorkspaceAttached
    | WorkspaceUsed
    | WorkspaceDetached
    | WorktreeRequested
    | WorktreeCreated
    | WorktreeFailed
    | WorktreeCleanupRequested
    | WorktreeRemoved
    | WorktreeRetained
    | UnrecognisedEvent
)

EVENTS: tuple[type[AnyEvent], ...] = tuple(
    event
    for event in AnyEvent.__args__  # the members of the union, as written above
    if event is not UnrecognisedEvent
)
BY_KIND: dict[str, type[AnyEvent]] = {event.kind: event for event in EVENTS}
KINDS_BY_NAME: dict[str, tuple[str, ...]] = {}
"""A kind or an alias, to the kinds it stands for."""
for _event in EVENTS:
    for _name in (_event.kind, *_event.aliases):
        KINDS_BY_NAME[_name] = (*KINDS_BY_NAME.get(_name, ()), _event.kind)

__all__ = [
    "StoreSizeNoticed",
    "RetentionApplied",
    "OutputRedacted",
    "OutputExpired",
    "ThreadDeleted",
    "TurnEmptied",
    "LeftOfEvent",
    "LogCheckpointed",
    "EventExpired",
    "ActionReminded",
    "WorkspaceAttached",
    "WorkspaceDetached",
    "WorkspaceUsed",
    "WorktreeCleanupRequested",
    "WorktreeCreated",
    "WorktreeFailed",
    "WorktreeRemoved",
    "WorktreeRequested",
    "WorktreeRetained",
    "ActionRequired",
    "ActionResolved",
    "ActionSettled",
    "ActionStaged",
    "AgentArchived",
    "AgentCreated",
    "AgentDeleted",
    "AgentModelChanged",
    "AgentRevised",
    "AgentStateChanged",
    "AnswerAccepted",
    "AnswerRejected",
    "AnyEvent",
    "ApprovalRuleAdded",
    "ApprovalRuleRevoked",
    "AssistantRecorded",
    "BY_KIND",
    "BriefCreated",
    "BudgetGranted",
    "BudgetNoticed",
    "CallAsked",
    "ClockJumped",
    "CompactionCompleted",
    "CompactionFailed",
    "CompactionStarted",
    "CompletionBlocked",
    "CompletionPolicyContinued",
    "CompletionPolicyStopped",
    "ContextItem",
    "ContextOmission",
    "ContextResolved",
    "ContinuationDecided",
    "ContinuationResolved",
    "CostEstimated",
    "CostRecorded",
    "EVENTS",
    "ErrorCategory",
    "Event",
    "ExcludedModel",
    "FilesTainted",
    "GrantCounted",
    "GrantRenewed",
    "GrantReserved",
    "GrantSettled",
    "HistoryImported",
    "HookCompleted",
    "HookFailed",
    "HookStarted",
    "IdenticalFailureNudged",
    "InterruptIgnored",
    "InterruptReceived",
    "IterationBudgetExceeded",
    "KINDS_BY_NAME",
    "KeyedRequestAnswered",
    "KeyedRequestStarted",
    "KeyedRequestReleased",
    "KnowledgeRetrieved",
    "LimitChanged",
    "LimitName",
    "LimitState",
    "LoopFact",
    "LoopStalled",
    "MemoryEntryEdited",
    "MemoryEntryForgotten",
    "MemoryEpisodeFinalized",
    "MemoryFact",
    "MemoryProjected",
    "MemoryTurnRecorded",
    "MemoryUsed",
    "MessageAdmitted",
    "MessageDeferred",
    "MessageExpired",
    "MessageSettled",
    "MissingFact",
    "ModelCandidate",
    "LivenessViolated",
    "NoticeAttempted",
    "NoticeRequested",
    "PackageReplaced",
    "ChannelAdded",
    "ChannelInputReceived",
    "ChannelInputSettled",
    "ChannelMessageAttempted",
    "ChannelMessageClosed",
    "ChannelPaired",
    "ChannelPairingOpened",
    "ChannelPeerSeen",
    "ChannelPolled",
    "ChannelRemoved",
    "ChannelTestRequested",
    "ChannelTroubled",
    "ProviderAnswered",
    "ProviderParked",
    "ProviderDisappeared",
    "ProviderUnparked",
    "RuntimeControlChanged",
    "FilesReloadRequested",
    "FilesLoaded",
    "HeartbeatChanged",
    "RuntimePartFailed",
    "ResultChanged",
    "ModelAnswered",
    "ModelCompleted",
    "ModelFailed",
    "ModelRequested",
    "ModelResponseAccepted",
    "ModelResponseReattached",
    "ModelWaitEnded",
    "ModelWaiting",
    "ObserverFailed",
    "OutputSpilled",
    "OutputTruncated",
    "PermissionEvaluated",
    "PlanArtifact",
    "PlanStep",
    "PlanningCompleted",
    "PlanningFailed",
    "PlanningStarted",
    "ProgressStalled",
    "QuotaBlocked",
    "QuotaLow",
    "RateLimitHit",
    "RejectedDeclaration",
    "RoutingCandidatesResolved",
    "RoutingDecided",
    "RoutingFallbackApplied",
    "RoutingNotPossible",
    "RoutingSingleCandidate",
    "RuntimeFact",
    "RuntimeToolContinued",
    "RuntimeToolRequested",
    "RuntimeToolResolved",
    "SandboxApplied",
    "SandboxViolation",
    "ScratchWritten",
    "SessionStarted",
    "SkillActivated",
    "StopCause",
    "StopRule",
    "SubagentCompleted",
    "SubagentFailed",
    "SubagentStarted",
    "TaskCreated",
    "TaskEnded",
    "TaskRetried",
    "TaskStatusChanged",
    "Terminal",
    "ThreadCheckpointed",
    "TimerArmed",
    "TimerCancelled",
    "TimerFired",
    "TimerFolded",
    "TimerMissed",
    "TimerSkipped",
    "ToolArgs",
    "ToolCatalogResolved",
    "ToolDeclarationsRejected",
    "ToolDispatched",
    "ToolFailed",
    "ToolMediationDisabled",
    "ToolMediationFailed",
    "ToolProgress",
    "ToolResult",
    "ToolResultDiagnosed",
    "ToolResultTruncated",
    "ToolStarted",
    "TranscriptClosed",
    "TranscriptCompactionCompleted",
    "TranscriptCompactionFailed",
    "TranscriptCompactionStarted",
    "TranscriptLockContended",
    "TranscriptLockReleaseFailed",
    "TranscriptOverflowArchived",
    "TranscriptPersistFailed",
    "TurnCompleted",
    "TurnConfigChanged",
    "TurnFailed",
    "TurnInterjected",
    "TurnInterruptApplied",
    "TurnInterruptIgnored",
    "TurnInterruptRequested",
    "TurnPauseLifted",
    "TurnPauseRequested",
    "RestReason",
    "TurnPatienceEnded",
    "TurnProviderReturned",
    "TurnResumed",
    "TurnRetried",
    "TurnStarted",
    "TurnStatus",
    "TurnSuspended",
    "TurnTimeSkipped",
    "UnknownResolved",
    "UnrecognisedEvent",
    "WaitCancelled",
    "WaitCreated",
    "WaitExpired",
    "WaitResolved",
    "InputRefused",
    "TriggerCreated",
    "TriggerDelivered",
    "TriggerRevised",
    "TriggerRevoked",
    "TriggerRotated",
    "TriggerUrlGiven",
    "WakeHintStored",
    "WakeHintTriggered",
    "WakeMoved",
    "WarningIssued",
    "WorkFact",
    "WorkItemBlockerChanged",
    "WorkItemCompleted",
    "WorkItemCreated",
    "WorkItemEnqueued",
    "WorkItemPicked",
    "WorkItemRechecked",
    "WorkItemReminded",
    "WorkItemUpdated",
    "WorkQueueActivated",
    "WorkQueueProjected",
    "WorkQueueScheduled",
    "WorkflowNodeResolved",
    "WorkflowStarted",
]
