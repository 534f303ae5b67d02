"""One event of every kind, made by hand, and a short way to put events into facts. Shared by several suites."""

from collections.abc import Iterable
from typing import Any

from wakeful.contracts.budgets import Limits
from wakeful.contracts.content import BlobRef, Text
from wakeful.contracts.conversation import AssistantItem, CallPart, ToolItem, UserItem
from wakeful.contracts.envelope import Fact, StoredFact, published
from wakeful.contracts.events import (
    ActionReminded,
    ActionRequired,
    ActionResolved,
    ActionSettled,
    ActionStaged,
    AgentArchived,
    AgentCreated,
    AgentDeleted,
    AgentModelChanged,
    AgentRevised,
    AgentStateChanged,
    AnswerAccepted,
    AnswerRejected,
    AnyEvent,
    ApprovalRuleAdded,
    ApprovalRuleRevoked,
    AssistantRecorded,
    BriefCreated,
    BudgetGranted,
    BudgetNoticed,
    CallAsked,
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
    ClockJumped,
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    CompletionBlocked,
    CompletionPolicyContinued,
    CompletionPolicyStopped,
    ContextItem,
    ContextResolved,
    ContinuationDecided,
    ContinuationResolved,
    CostEstimated,
    CostRecorded,
    EventExpired,
    ExcludedModel,
    FilesLoaded,
    FilesReloadRequested,
    FilesTainted,
    GrantCounted,
    GrantRenewed,
    GrantReserved,
    GrantSettled,
    HeartbeatChanged,
    HistoryImported,
    HookCompleted,
    HookFailed,
    HookStarted,
    IdenticalFailureNudged,
    InputRefused,
    InterruptIgnored,
    InterruptReceived,
    IterationBudgetExceeded,
    KeyedRequestAnswered,
    KeyedRequestReleased,
    KeyedRequestStarted,
    KnowledgeRetrieved,
    LeftOfEvent,
    LimitChanged,
    LivenessViolated,
    LogCheckpointed,
    LoopStalled,
    MemoryEntryEdited,
    MemoryEntryForgotten,
    MemoryEpisodeFinalized,
    MemoryProjected,
    MemoryTurnRecorded,
    MemoryUsed,
    MessageAdmitted,
    MessageDeferred,
    MessageExpired,
    MessageSettled,
    ModelAnswered,
    ModelCandidate,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    ModelResponseAccepted,
    ModelResponseReattached,
    ModelWaitEnded,
    ModelWaiting,
    NoticeAttempted,
    NoticeRequested,
    ObserverFailed,
    OutputExpired,
    OutputRedacted,
    OutputSpilled,
    OutputTruncated,
    PackageReplaced,
    PermissionEvaluated,
    PlanArtifact,
    PlanningCompleted,
    PlanningFailed,
    PlanningStarted,
    PlanStep,
    ProgressStalled,
    ProviderAnswered,
    ProviderDisappeared,
    ProviderParked,
    ProviderUnparked,
    QuotaBlocked,
    QuotaLow,
    RateLimitHit,
    RejectedDeclaration,
    ResultChanged,
    RetentionApplied,
    RoutingCandidatesResolved,
    RoutingDecided,
    RoutingFallbackApplied,
    RoutingNotPossible,
    RoutingSingleCandidate,
    RuntimeControlChanged,
    RuntimePartFailed,
    RuntimeToolContinued,
    RuntimeToolRequested,
    RuntimeToolResolved,
    SandboxApplied,
    SandboxViolation,
    ScratchWritten,
    SessionStarted,
    SkillActivated,
    StoreSizeNoticed,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
    TaskCreated,
    TaskEnded,
    TaskRetried,
    TaskStatusChanged,
    ThreadCheckpointed,
    ThreadDeleted,
    TimerArmed,
    TimerCancelled,
    TimerFired,
    TimerFolded,
    TimerMissed,
    TimerSkipped,
    ToolArgs,
    ToolCatalogResolved,
    ToolDeclarationsRejected,
    ToolDispatched,
    ToolFailed,
    ToolMediationDisabled,
    ToolMediationFailed,
    ToolProgress,
    ToolResult,
    ToolResultDiagnosed,
    ToolResultTruncated,
    ToolStarted,
    TranscriptClosed,
    TranscriptCompactionCompleted,
    TranscriptCompactionFailed,
    TranscriptCompactionStarted,
    TranscriptLockContended,
    TranscriptLockReleaseFailed,
    TranscriptOverflowArchived,
    TranscriptPersistFailed,
    TriggerCreated,
    TriggerDelivered,
    TriggerRevised,
    TriggerRevoked,
    TriggerRotated,
    TriggerUrlGiven,
    TurnCompleted,
    TurnConfigChanged,
    TurnEmptied,
    TurnFailed,
    TurnInterjected,
    TurnInterruptApplied,
    TurnInterruptIgnored,
    TurnInterruptRequested,
    TurnPatienceEnded,
    TurnPauseLifted,
    TurnPauseRequested,
    TurnProviderReturned,
    TurnResumed,
    TurnRetried,
    TurnStarted,
    TurnSuspended,
    TurnTimeSkipped,
    UnknownResolved,
    WaitCancelled,
    WaitCreated,
    WaitExpired,
    WaitResolved,
    WakeHintStored,
    WakeHintTriggered,
    WakeMoved,
    WarningIssued,
    WorkflowNodeResolved,
    WorkflowStarted,
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
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.file_problems import FileProblem
from wakeful.contracts.memory import MemoryLine, TurnMemoryDelta, WorkingMemorySnapshot
from wakeful.contracts.models import ProviderLimit, TokenUsage
from wakeful.contracts.outcomes import RunOutcome
from wakeful.contracts.spending import WindowRef
from wakeful.contracts.tasks import CommandSpec, SupervisorRef, TaskRecovery
from wakeful.contracts.tools import ToolError, ToolResultMetadata
from wakeful.contracts.waking import ContinuationResolution
from wakeful.contracts.work_items import TodoItem

AGENT, THREAD, TURN = "agent_1", "main", "turn_1"
NOON = 1_800_000_000_000_000
WINDOW = WindowRef(scope="agent:support", period="day", began=NOON - 1_000_000, turns=NOON + 1_000_000, usd="2")
DECIDED: dict[str, Any] = {
    "routing_id": "route_1",
    "mode": "single_candidate",
    "decision_source": "agent_config",
    "decision_reason": "it is the only one that can be asked",
    "requested_provider": "openai",
    "requested_model": "gpt-5.5",
    "selected_model_ref": "openai:gpt-5.5",
    "candidate_count": 1,
    "required_capabilities": ("vision",),
}
CONFIG = BlobRef(digest="sha256:" + "0" * 64, size=2, media_type="application/json")


QUEUED = "msg_2"
"""A message that no turn was opened for: what is said about it here needs it in its thread's queue."""


def message(text: str = "Order A17 arrived broken.") -> MessageAdmitted:
    return MessageAdmitted(message_id="msg_1", item=UserItem(parts=(Text(text),)), prompt_preview=text)


def turn_started() -> TurnStarted:
    return TurnStarted(
        turn_index=1,
        message_ids=("msg_1",),
        agent_name="support",
        config_ref=CONFIG,
        model_ref="scripted:list",
        limits=Limits(),
    )


def requested(attempt: int = 1) -> ModelRequested:
    return ModelRequested(model_ref="scripted:list", attempt=attempt, items=1)


def completed(usage: TokenUsage | None = None) -> ModelCompleted:
    return ModelCompleted(
        model_ref="scripted:list",
        attempt=1,
        stop_reason="end",
        token_usage=usage,
        context_build_ms=0.5,
        provider_round_ms=12.0,
        provider_started_at="2027-01-15T08:00:00.000Z",
        provider_completed_at="2027-01-15T08:00:00.012Z",
    )


def model_failed(usage: TokenUsage | None = None, *, disposition: Any = "retry") -> ModelFailed:
    return ModelFailed(
        model_ref="scripted:list",
        attempt=1,
        failure_kind="overloaded",
        stage="headers",
        disposition=disposition,
        message="the provider is overloaded (529)",
        duration_ms=30,
        token_usage=usage,
    )


def said(text: str = "", *calls: str, tool: str = "look_up") -> AssistantRecorded:
    parts = [*([Text(text)] if text else []), *(CallPart(call_id=call, name=tool, arguments={}) for call in calls)]
    return AssistantRecorded(
        item=AssistantItem(parts=tuple(parts), provider="scripted"),
        calls=tuple(CallAsked(call_id=call, name=tool) for call in calls),
        text_preview=text,
    )


def tool_started(call: str = "call_1", *, position: int = 0, tool: str = "look_up") -> ToolStarted:
    return ToolStarted(
        tool_name=tool,
        safe_args={"order": "A17"},
        args_sha256="0" * 64,
        is_read_only=True,
        is_concurrency_safe=True,
        is_destructive=False,
        batch_id="turn_1/1",
        position=position,
        scheduling="parallel",
        dispatched=True,
        effect="pure",
        idempotency_key=f"key-{call}",
    )


def progress(number: int = 1, *, total: float | None = 2.0, note: str | None = None) -> ToolProgress:
    return ToolProgress(progress_seq=number, progress=float(number), total=total, message=note, elapsed_ms=number)


def metadata(status: Any = "success", ms: float = 3.5) -> ToolResultMetadata:
    return ToolResultMetadata(status=status, started_at=1.0, completed_at=1.0035, execution_time_ms=ms)


def tool_result(call: str = "call_1", text: str = "4200", *, tool: str = "look_up") -> ToolResult:
    return ToolResult(
        tool_name=tool,
        item=ToolItem(call_id=call, name=tool, parts=(Text(text),)),
        preview=text,
        size_bytes=len(text),
        duration_ms=3.5,
        metadata=metadata(),
    )


def tool_failed(call: str = "call_1", *, status: Any = "failed", tool: str = "look_up") -> ToolFailed:
    return ToolFailed(
        status=status,
        tool_name=tool,
        item=ToolItem(call_id=call, name=tool, parts=(Text('{"ok": false}'),), is_error=True),
        error_category="execution_failed",
        message="no such order",
        retryable=False,
        recovery_advice="look the order up first",
        effects="none",
        duration_ms=2.0,
        error="execution_failed: no such order",
        tool_error=ToolError(kind="execution_failed", message="no such order", recovery_hint="look the order up first"),
        metadata=metadata("error", 2.0),
    )


def turn_completed() -> TurnCompleted:
    return TurnCompleted(turn_index=1, stop_reason="natural", retryable=False, duration_ms=80.4, active_ms=79.0)


def turn_failed(status: Any = "failed", stop_reason: Any = "provider_error") -> TurnFailed:
    return TurnFailed(
        turn_index=1,
        status=status,
        stop_reason=stop_reason,
        retryable=True,
        duration_ms=80.6,
        active_ms=79.0,
        message="the provider is overloaded (529)",
        failure_artifact=FailureArtifact(category="transport", kind="overloaded", summary="the provider is overloaded"),
    )


REPEATED: dict[str, Any] = {
    "tool_name": "ability/search",
    "parameters_hash": "sha256:00",
    "signature_hash": "sha256:01",
    "turn": 3,
    "repeat_count": 3,
    "threshold": 3,
}
FOLDED: dict[str, Any] = {
    "policy": {"max_messages": 40},
    "total_messages": 41,
    "compact_count": 29,
    "retained_count": 12,
    "boundary": {"compact_until": 28, "retain_from": 29},
}


def task_created(name: str = "task_1", cmd: str = "make test") -> TaskCreated:
    spec = CommandSpec(cmd=cmd, workdir="/srv/shop", yield_time_ms=10_000)
    recovery = TaskRecovery(
        summary=cmd,
        spec=spec,
        supervisor=SupervisorRef(pid=77, started=1234, boot="b"),
        folder=f"/home/tasks/{name}",
        write_roots=("/srv/shop",),
    )
    return TaskCreated(
        task_id=name,
        task_kind="command_task",
        summary=cmd,
        parent_turn_id="turn_1",
        parent_call_id="c1",
        recovery=recovery,
        output_path=f"/home/tasks/{name}/output",
        initial_output="collecting",
    )


ONE_OF_EACH: tuple[AnyEvent, ...] = (
    SessionStarted(agent_name="support"),
    message(),
    MessageDeferred(message_id=QUEUED, deadline=9, reason="the agent waits for something else", folder="/srv/shop"),
    MessageExpired(message_id=QUEUED),
    HistoryImported(items=(UserItem(parts=(Text("earlier"),)),), count=1),
    turn_started(),
    ContextResolved(
        context_id="ctx_1",
        instruction_refs=(ContextItem(ref="instructions", kind="instruction"),),
        tokens_used=12,
        tokens_are_estimate=True,
        context_build_ms=0.25,
    ),
    TurnConfigChanged(
        config_ref=CONFIG, previous="sha256:1", changed=("instructions",), model_ref="scripted:list", limits=Limits()
    ),
    TurnInterruptRequested(interrupt_id="int_1", requested_by="operator"),
    TurnInterruptApplied(interrupt_id="int_1", cancelled_tool_call_ids=("call_1",), latency_ms=4),
    TurnInterruptIgnored(interrupt_id="int_2", ignore_reason="already_ending"),
    LimitChanged(limit_name="llm_calls", limit=8, observed=9),
    AnswerAccepted(value={"order": "A17"}),
    AnswerRejected(item=UserItem(parts=(Text("not an order"),), origin="runtime"), errors=("order: missing",)),
    ContinuationDecided(go_on=True),
    TurnSuspended(reason="tool_missing", waiting_for=("refund",)),
    TurnTimeSkipped(skipped_us=60_000_000),
    TurnProviderReturned(provider="openai"),
    TurnPatienceEnded(seconds=120),
    TurnResumed(),
    turn_completed(),
    turn_failed(),
    requested(),
    ModelResponseAccepted(model_ref="openai:gpt-5.5", provider="openai", attempt=1, response_id="resp_1"),
    ModelResponseReattached(model_ref="openai:gpt-5.5", attempt=1, response_id="resp_1"),
    model_failed(TokenUsage(input_tokens=3, total_tokens=3)),
    ModelWaiting(
        model_ref="openai:gpt-5.5",
        failure_kind="overloaded",
        message="openai answered 503",
        wait=1,
        since=1_700_000_000_000_000,
        next_try=1_700_000_003_000_000,
        told=True,
    ),
    ModelWaitEnded(),
    ModelAnswered(model_ref="openai:gpt-5.5", waited_ms=4_000),
    completed(TokenUsage(input_tokens=5, output_tokens=2, total_tokens=7)),
    said("Looking it up.", "call_1"),
    RoutingCandidatesResolved(
        routing_id="route_1",
        requested_provider="openai",
        requested_model="gpt-5.5",
        required_capabilities=("vision",),
        candidates=(ModelCandidate(model_ref="openai:gpt-5.5", capabilities=("tools", "vision"), price_known=True),),
        excluded=(ExcludedModel(model_ref="groq:llama-3", reason="capability_gap", detail="it has no vision"),),
    ),
    RoutingSingleCandidate(**DECIDED),
    RoutingDecided(**DECIDED),
    RoutingNotPossible(
        routing_id="route_1",
        required_capabilities=("vision",),
        excluded=(ExcludedModel(model_ref="groq:llama-3", reason="capability_gap", detail="it has no vision"),),
        decision_reason="no model can be asked",
    ),
    RoutingFallbackApplied(
        routing_id="route_1",
        from_model_ref="openai:gpt-5.5",
        to_model_ref="anthropic:claude-opus-4-7",
        reason="overloaded",
        attempt=3,
        fallback_chain=("openai:gpt-5.5",),
    ),
    RateLimitHit(
        model_ref="openai:gpt-5.5",
        attempt=1,
        limit_name="requests",
        limit=60,
        observed=60,
        retry_after_ms=1_000,
        resets_at="2027-01-15T08:00:01.000Z",
        limits=(ProviderLimit(name="requests", limit=60, remaining=0, resets_at="2027-01-15T08:00:01.000Z"),),
    ),
    QuotaLow(model_ref="openai:gpt-5.5", attempt=1, limit_name="tokens", limit=1_000, observed=950),
    QuotaBlocked(model_ref="openai:gpt-5.5", attempt=1),
    CostEstimated(
        model_ref="openai:gpt-5.5",
        amount="0.32",
        price_list="genai-prices 0.2.1",
        price_date="2026-10-26",
        input_tokens=4_000,
        output_tokens=10_000,
    ),
    CostRecorded(model_ref="openai:gpt-5.5", amount="0.0125", price_list="genai-prices 0.2.1", price_date="2026-10-26"),
    PermissionEvaluated(decision="allow", decision_reason="no rule says otherwise"),
    tool_started(),
    ToolDispatched(attempt=2, cause="recovery"),
    ToolArgs(safe_args={"order": "A18"}, changed_by="hook"),
    progress(note="half way"),
    tool_result(),
    tool_failed(),
    UnknownResolved(call_id="call_1", tool_name="refund", happened=True, result="refunded 4200", source="operator"),
    ToolCatalogResolved(catalog_ref=CONFIG, offered=2, withheld=1),
    ActionRequired(
        action_id="appr_1",
        tool_name="refund",
        prompt="Run refund(order='A17')?",
        reason="refund asks before this call",
        decisions=("approve", "reject"),
        safe_args={"order": "A17"},
        args_sha256="sha256:1",
        binding="hmac-sha256:1",
        expires_at=NOON + 1,
    ),
    ActionResolved(action_id="appr_1", tool_name="refund", status="approved", decision="approve", resolver="operator"),
    RuntimeToolRequested(request_id="runtime-tool-1", tool_name="client/ask", args_sha256="sha256:1", timeout_at=NOON),
    RuntimeToolResolved(
        request_id="runtime-tool-1",
        tool_name="client/ask",
        status="runtime_tool_completed",
        success=True,
        result={"value": 1},
    ),
    RuntimeToolContinued(request_id="runtime-tool-1", tool_name="client/ask", run_id="turn_1"),
    ActionStaged(
        action_id="pa_1", action_type="pending_action", name="publish", expires_at=NOON + 1, record={"kind": "publish"}
    ),
    ActionSettled(
        action_id="pa_1", action_type="pending_action", status="accepted", settled_by="operator", record={"n": 1}
    ),
    ApprovalRuleAdded(
        rule_id="rule_1", agent_name="support", rule={"match": "refund", "decision": "allow"}, added_by="operator"
    ),
    ApprovalRuleRevoked(rule_id="rule_1", revoked_by="operator"),
    BudgetNoticed(window=WINDOW, percent=80, spent="1.5", held="0.1"),
    BudgetGranted(window=WINDOW, usd="5", granted_by="operator", reason="a launch"),
    SandboxApplied(mode="bubblewrap", cwd="/srv/shop", write_roots=("/srv/shop",)),
    SandboxViolation(boundary="filesystem", target="/etc/passwd"),
    FilesTainted(workspace="/srv/shop", cause="read_inbox", files={"notes.txt": "sha256:0a", "build/": ""}, since=0),
    HookStarted(point="pre_tool_use", handler_ref="audit", timeout_ms=5_000),
    HookCompleted(point="pre_tool_use", handler_ref="audit", duration_ms=1.5, decision="continue"),
    HookFailed(point="pre_tool_use", handler_ref="audit", error_category="raised", message="no", duration_ms=1.5),
    OutputSpilled(
        output_ref="sha256:1",
        owner="call_1",
        media_type="text/plain",
        size_bytes=60_000,
        sha256="1",
        preview="the beginning",
    ),
    OutputTruncated(output_ref="sha256:1", original_bytes=60_000, kept_bytes=24_000),
    WarningIssued(code="hook_failed", message="a hook that only listens raised"),
    CompactionStarted(
        compaction_id="cmp_1",
        trigger="token_pressure",
        affected_turn_ids=("turn_0",),
        tokens_before=900,
        cut=6,
        level_id="~compaction:1",
    ),
    CompactionCompleted(
        compaction_id="cmp_1",
        trigger="token_pressure",
        affected_turn_ids=("turn_0",),
        summary_preview="so far",
        summary_ref="agent:12",
        continuation_ref="agent:13",
        tokens_before=900,
        tokens_after=200,
        preserved_action_ids=("act_1",),
        model_ref="scripted:demo",
        duration_ms=12,
        cut=6,
        summary=UserItem(parts=(Text("so far"),), origin="runtime"),
    ),
    CompactionFailed(
        compaction_id="cmp_1",
        trigger="token_pressure",
        error_category="summarizer_failed",
        message="nothing came",
        retryable=True,
        tokens_before=900,
        continuation_ref="agent:13",
    ),
    KnowledgeRetrieved(
        collections=("handbook",),
        query_preview="how long is the refund window?",
        passages=(ContextItem(ref="handbook:refunds.md#L1-L4", kind="knowledge", tokens=12),),
        item=UserItem(parts=(Text("Passages: 30 days."),), origin="runtime"),
        duration_ms=1.5,
    ),
    SkillActivated(
        skill="release-notes",
        scope="workspace",
        load_reason="run_skill_script",
        path="/repo/.agents/skills/release-notes/scripts/collect.sh",
        entrypoint_path="/repo/.agents/skills/release-notes/SKILL.md",
    ),
    ThreadCheckpointed(conversation_ref=CONFIG, items=120),
    SubagentStarted(
        level_id="call_1",
        tool="run_subtask",
        title="Look",
        depth=1,
        task=UserItem(parts=(Text("Look it up."),), origin="runtime"),
        tools=("look_up",),
        output_schema={"type": "object"},
    ),
    SubagentCompleted(level_id="call_1", output={"found": 3}, steps=2),
    SubagentFailed(level_id="call_1", error="iteration_limit", message="20 rounds were not enough", steps=20),
    ScratchWritten(key="notes", value="three"),
    PlanningStarted(level_id="~plan", model_ref="scripted:demo", task=UserItem(parts=(Text("Do it."),))),
    PlanningCompleted(
        level_id="~plan",
        plan=PlanArtifact(
            run_id="turn_1",
            model_ref="scripted:demo",
            steps=(PlanStep(number=1, text="look"),),
            text="1. look",
            created_at=1.0,
        ),
    ),
    PlanningFailed(level_id="~plan", error="provider_error", message="nothing came"),
    TurnInterjected(message_id="msg_2", item=UserItem(parts=(Text("Also B."),)), said_by="operator"),
    TurnPauseRequested(requested_by="operator"),
    TurnPauseLifted(requested_by="operator"),
    TurnRetried(requested_by="operator", message_ids=("msg_1",), limits=Limits(model_calls=9)),
    WorkQueueProjected(current="wi_1", others=("wi_1",), triggered=("wi_1",)),
    WorkItemCreated(work_item_id="wi_1", objective="mend the build", todo_list=(TodoItem(text="read the log"),)),
    WorkItemEnqueued(work_item_id="wi_2", objective="answer the review", enqueued_by="ada"),
    WorkItemUpdated(work_item_id="wi_1", blocked_by="CI", recheck_at=9),
    WorkItemPicked(work_item_id="wi_1"),
    WorkItemCompleted(work_item_id="wi_1", text_ref="agent_1:9"),
    WorkItemRechecked(work_item_id="wi_1", recheck_at=9, message_id="msg_1"),
    WorkItemBlockerChanged(work_item_id="wi_1", blocked_by="waiting: CI", cause="wait", wait_id="wait_1"),
    WorkQueueScheduled(work_item_id="wi_1", due_at=9),
    WorkQueueActivated(due_at=9, work_item_id="wi_1", message_id="msg_1"),
    WorkItemReminded(work_item_id="wi_1", text="your item", rounds=10),
    BriefCreated(brief_id="brief_1", brief_kind="result", text_ref="agent_1:9", work_item_id="wi_1"),
    MemoryProjected(snapshot_revision=1, revision=2, changed_fields=("waiting_on",), text="Waiting for: CI"),
    MemoryUsed(use="search", entries=(ContextItem(ref="mem_1", kind="memory", tokens=4),)),
    MemoryTurnRecorded(
        turn=TurnMemoryDelta(turn_index=3, messages=1, decisions=(MemoryLine(text="done", source="brief:brief_1"),)),
        working_memory=WorkingMemorySnapshot(working_set_files=("a.py",)),
    ),
    MemoryEpisodeFinalized(episode_id="ep_1", boundary_reason="result"),
    MemoryEntryEdited(entry="brief:brief_1", entry_kind="brief", text="other words", edited_by="ada"),
    MemoryEntryForgotten(entry="brief:brief_1", entry_kind="brief", forgotten_by="ada"),
    WorkflowStarted(name="digest", workflow_id="wf_1", revision=2, nodes=3, titles={"pay": "Pay it back"}),
    WorkflowNodeResolved(arguments={"order": "A17"}),
    ObserverFailed(surface="on_event", error="ValueError: no"),
    TranscriptPersistFailed(surface="persister", error="OSError: no"),
    TranscriptLockContended(session_id="s_1"),
    TranscriptLockReleaseFailed(surface="lock", error="OSError: no"),
    ToolDeclarationsRejected(
        rejected=(RejectedDeclaration(name="x", reason="no schema"),), rejected_count=1, accepted_count=0
    ),
    ToolMediationDisabled(reason="no declarations"),
    ToolMediationFailed(turn=1, tool_name="ability/search", tool_call_id="c1", reason="raised RuntimeError: no"),
    CompletionBlocked(
        turn=1,
        rule_id="verify",
        reason="Do not finish yet.",
        counters={"calls": 0, "required": 1},
        rule={"require_tool_use": True},
    ),
    IterationBudgetExceeded(budget="tool_calls", dimension="tool_calls", current=3, ceiling=3),
    LoopStalled(**REPEATED),
    IdenticalFailureNudged(**REPEATED, error_code="timeout", message="It failed the same way twice."),
    CompletionPolicyStopped(tool_name="ability/search", turn=1, message="found", context={"by": "host"}),
    CompletionPolicyContinued(tool_name="ability/search", turn=1, message="Keep looking.", context={}),
    InterruptReceived(
        turn=1, action="message", message={"role": "user", "content": "Look here."}, details={"source": "person"}
    ),
    InterruptIgnored(reason="invalid_message", turn=1),
    ToolResultTruncated(turn=1, tool_name="ability/search", tool_call_id="c1", original_bytes=9000, excerpt_bytes=8192),
    ToolResultDiagnosed(tool_name="ability/search", tool_call_id="c1", turn=1, diagnostics={"took_ms": 3}),
    TranscriptCompactionStarted(**FOLDED),
    TranscriptCompactionCompleted(
        **FOLDED, provenance={}, conservation={}, summarizer={"provider": "", "model": ""}, summary_preview="So far:"
    ),
    TranscriptCompactionFailed(**FOLDED, error="TimeoutError: late"),
    TranscriptOverflowArchived(**FOLDED, archive_id="archive-0123456789abcdef", archived_count=29),
    TranscriptClosed(turn=1, message_count=2, tool_results=0, run_outcome=RunOutcome.of("completed")),
    AgentCreated(
        agent_name="ops",
        agent_kind="child",
        lineage_parent_agent_id="lead",
        source="file",
        template="wakeful-default",
        salt="salt_1",
    ),
    AgentModelChanged(model="openai:gpt-5.5", changed_by="ada"),
    AgentArchived(archived_by="ada", reason="summer"),
    AgentDeleted(deleted_by="ada", reason="no use"),
    AgentRevised(
        revision="sha256:1", source="file", place="ops.yaml", definition=BlobRef(digest="sha256:" + "0" * 64, size=2)
    ),
    AgentStateChanged(control="paused", changed_by="ada", reason="quiet", resumes_at=NOON, instead_of=NOON),
    task_created(),
    TaskStatusChanged(task_id="task_1", status="cancelling", reason="asked for by the agent"),
    GrantReserved(task_id="task_c1", child_agent_id="support.c1", grant=Limits(model_calls=5, usd="0.5")),
    GrantCounted(left=Limits(model_calls=4, usd="0.4"), untrusted="read_page"),
    GrantSettled(task_id="task_c1", child_agent_id="support.c1", left=Limits(model_calls=4, usd="0.4")),
    GrantRenewed(task_id="task_c1", child_agent_id="support.c1", grant=Limits(model_calls=4, usd="0.4")),
    TaskRetried(task_id="task_1", turn="turn_c1", requested_by="ada"),
    TaskEnded(
        task_id="task_1",
        status="failed",
        exit_status=2,
        result_summary="it ended with exit status 2",
        failure_artifact=FailureArtifact(category="task", kind="exit_status", summary="exit status 2"),
        output_summary="1 failed",
        output_bytes=8,
        duration_ms=1200,
    ),
    TimerArmed(
        timer_id="timer_1",
        due_at=NOON,
        name="backups",
        cron="0 7 * * 1-5",
        timezone="Europe/Berlin",
        say="Check the backups.",
        thread="main",
        catch_up="all",
        armed_by="file",
        derived_from="external_evidence",
        check="git fetch -q",
    ),
    TimerFired(
        timer_id="timer_1", due_at=NOON, message_id="msg_1", failures=2, next_at=NOON + 1, check_turn="turn_check"
    ),
    TimerFolded(timer_id="timer_1", due_at=NOON, last=NOON + 1, number=2, into="msg_1", next_at=NOON + 2),
    TimerMissed(timer_id="timer_1", due_at=NOON, last=NOON + 1, number=2, because="late", next_at=NOON + 2),
    TimerSkipped(timer_id="timer_1", due_at=NOON, last=NOON + 1, number=2, check_turn="turn_check", next_at=NOON + 2),
    TimerCancelled(timer_id="timer_1", cancelled_by="operator", reason="no longer needed"),
    WaitCreated(
        wait_id="wait_1",
        reason="the build",
        wake="external",
        resource="build 7",
        work_item_id="work_1",
        due_at=NOON,
        is_sleep=True,
        derived_from="external_evidence",
    ),
    WakeMoved(subject="wait:wait_1", cause="wait", cause_id="wait_1", due_at=NOON, moved_to=NOON - 1),
    WaitResolved(wait_id="wait_1", message_id="msg_1"),
    WaitExpired(wait_id="wait_1", message_id="msg_1"),
    WaitCancelled(wait_id="wait_1", cancelled_by="operator", reason="superseded"),
    InputRefused(door="message", reason="agent_stopped", number=3),
    TriggerCreated(
        trigger_id="trg_1",
        name="ci",
        delivery_mode="enqueue_message",
        say="Look at the build.",
        signature="hub_sha256",
        signing_env="CI_SECRET",
        created_by="ada",
        salt="salt_2",
    ),
    TriggerDelivered(
        trigger_id="trg_1",
        delivery_id="id:1",
        digest="sha256:1",
        target_agent_id="ops",
        delivery_mode="enqueue_message",
        message_id="msg_1",
        source="ci",
        content_type="application/json",
        body_bytes=12,
        is_verified=True,
        derived_from="integration_signal",
        wait_ids=("wait_1",),
        work_item_ids=("work_1",),
    ),
    TriggerRevised(trigger_id="trg_1", say="Look twice.", revised_by="file"),
    TriggerRevoked(trigger_id="trg_1", revoked_by="ada", reason="not used any more"),
    TriggerRotated(trigger_id="trg_1", generation=2, rotated_by="ada", reason="it was in a log", salt="salt_3"),
    TriggerUrlGiven(trigger_id="trg_1", generation=2, given_to="agent", turn_id="turn_1", purpose="for the CI"),
    WakeHintStored(
        hint_id="hint_1",
        reason="build",
        external_trigger_id="trigger_1",
        target_agent_id="ops",
        source="ci",
        resource="build 7",
        content_type="text/plain",
        body="it is red",
        body_ref=BlobRef(digest="sha256:" + "0" * 64, size=2),
        correlation_id="c",
        causation_id="d",
        wait_ids=("wait_1",),
        derived_from="external_evidence",
        metadata={"ip": "::1"},
    ),
    WakeHintTriggered(message_id="msg_1", first_hint_id="hint_1", hints=1),
    ContinuationResolved(
        message_id="msg_1",
        message_kind="system_tick",
        resolution=ContinuationResolution(
            trigger_kind="system_tick",
            continuation_class="liveness_only",
            model_visible=False,
            prior_closure_outcome="waiting",
            prior_waiting_reason="awaiting_timer",
            matched_waiting_reason=False,
            evidence=("trigger: system_tick",),
        ),
        treatment="settled",
    ),
    MessageSettled(message_id=QUEUED, reason="it says nothing"),
    ProgressStalled(turns=10, resumes_at=NOON, work_item_id="work_1"),
    ClockJumped(by_us=-7_200_000_000),
    NoticeAttempted(
        notice_id="ntc_1",
        attempt=1,
        outcome="failed",
        to="https://ntfy.example",
        error="HTTP 503",
        next_at=NOON,
        channel="phone",
        message_ref="m1",
        action_id="appr_1",
    ),
    NoticeRequested(requested_by="operator", words="hello"),
    ActionReminded(action_id="appr_1", tool_name="pay", expires_at=NOON),
    RuntimeControlChanged(control="stopped", changed_by="operator", reason="enough"),
    FilesReloadRequested(requested_by="operator"),
    HeartbeatChanged(ok=False, error="HTTP 503"),
    ResultChanged(source="timer_1", digest="00", text="two backups are missing"),
    FilesLoaded(
        changed=("ops",),
        owner_changed=True,
        problems=(FileProblem(place="agents/ops.yaml", line=2, agent="ops", field="modle", message="no", hint="mend"),),
    ),
    ProviderParked(
        provider="openai",
        model_ref="openai:gpt-5.5",
        agent_id="ops",
        failure_kind="auth_error",
        message="no such key",
        probes=1,
        probes_at=NOON,
    ),
    ProviderUnparked(provider="openai", by="runtime"),
    ProviderDisappeared(
        provider="openai",
        model_ref="openai:gpt-5.5",
        failure_kind="server_error",
        message="503",
        since=NOON,
        threads=3,
    ),
    ProviderAnswered(provider="openai", seconds=140.0, threads=3),
    KeyedRequestStarted(caller="local:1000", request_key="order-7", route="POST /budgets/grant", digest="sha256:1"),
    KeyedRequestAnswered(caller="local:1000", request_key="order-7", status=200, answer="{}"),
    KeyedRequestReleased(caller="local:1000", request_key="order-7", code="agent_stopped"),
    PackageReplaced(running="0.1.0", installed="0.2.0"),
    RuntimePartFailed(part="the watchdog", error="KeyError: 'x'"),
    ChannelAdded(
        channel="phone",
        channel_kind="ntfy",
        server="https://ntfy.example",
        key_variable="NTFY_TOKEN",
        scopes=("decide", "send"),
        allow_private=True,
        generation=2,
        added_by="local:1000",
        salt="salt_4",
    ),
    ChannelPairingOpened(channel="phone", until=NOON, opened_by="local:1000"),
    ChannelPeerSeen(channel="phone", peer="17"),
    ChannelPaired(channel="phone", peer="17", paired_by="local:1000"),
    ChannelRemoved(channel="phone", removed_by="local:1000"),
    ChannelTestRequested(channel="phone", requested_by="local:1000"),
    ChannelMessageAttempted(channel="phone", purpose="pairing", peer="17", error="HTTP 503"),
    ChannelInputReceived(
        channel="phone",
        input_id="inp_1",
        caller="channel:ntfy:phone",
        verb="answer",
        action_id="appr_1",
        agent_id="ops",
        words="yes",
    ),
    ChannelInputSettled(channel="phone", input_id="inp_1", outcome="refused", error="no"),
    ChannelPolled(channel="phone", cursor="m9", strangers=2, refused=1),
    ChannelTroubled(channel="phone", words="another program polls the bot"),
    ChannelMessageClosed(channel="phone", action_id="appr_1", error="HTTP 503", attempt=2, next_at=NOON),
    LivenessViolated(
        violation="no_alarm",
        owed="wait",
        subject="wait:wait_1",
        owed_id="wait_1",
        due_at=NOON,
        cause="wait",
        words="nothing would have looked at wait_1",
    ),
    OutputRedacted(output_ref="sha256:1"),
    EventExpired(event_type="context.resolved"),
    OutputExpired(output_ref="sha256:1", of_turn="turn_1", size_bytes=60_000),
    ThreadDeleted(deleted_by="ada", reason="asked for", turns=2),
    TurnEmptied(of_turn="turn_1", left=(LeftOfEvent(event_seq=3, payload={"final_preview": ""}),)),
    LogCheckpointed(upto=7, hash="00" * 32, agent_name="calc", kept={"usage": []}, gone={"turns": [["turn_0"]]}),
    RetentionApplied(turns=3, events=12, freed_bytes=4_096),
    StoreSizeNoticed(size_bytes=6_000_000_000, notice_bytes=5_000_000_000),
    WorkspaceAttached(workspace_id="ws_1", workspace_anchor="/srv/shop", attached_by="ada"),
    WorkspaceUsed(
        workspace_id="ws_1",
        workspace_anchor="/srv/shop",
        execution_root="/srv/worktrees/wt_1",
        execution_root_id="root_1",
        cwd="/srv/worktrees/wt_1/src",
        mode="isolated",
        projection_kind="git_worktree_root",
        worktree_id="wt_1",
        original_branch="main",
        worktree_branch="wakeful/wt_1",
        used_by="ada",
    ),
    WorkspaceDetached(workspace_id="ws_1", detached_by="ada"),
    WorktreeRequested(
        worktree_id="wt_1",
        workspace_id="ws_1",
        workspace_anchor="/srv/shop",
        worktree_path="/srv/worktrees/wt_1",
        worktree_branch="wakeful/wt_1",
        base_branch="main",
        base_commit="a" * 40,
        task_id="task_1",
    ),
    WorktreeCreated(worktree_id="wt_1"),
    WorktreeFailed(worktree_id="wt_1", reason="no space"),
    WorktreeCleanupRequested(worktree_id="wt_1", requested_by="runtime"),
    WorktreeRemoved(worktree_id="wt_1", cleanup_status="cleaned", cleanup_reason="clean_worktree"),
    WorktreeRetained(
        worktree_id="wt_1", cleanup_reason="changed_files", changed_files=("a.py",), detail="a.py is in no commit"
    ),
)


def fact(event: AnyEvent, *, step: int | None = 1, call: str | None = None, turn: str | None = TURN) -> Fact:
    """An event in a fact that carries every id its family needs."""
    if call is None and isinstance(event, ToolResult | ToolFailed):
        call = event.item.call_id
    if call is None and "tool_call_id" in event.needs:
        call = "call_1"
    action = "action_1" if "action_id" in event.needs else None
    return Fact(event=event, at=NOON, thread_id=THREAD, turn_id=turn, step=step, call_id=call, action_id=action)


def log(*facts: AnyEvent | Fact, start: int = 1) -> list[StoredFact]:
    """Facts as an agent's stream would number them. A bare event belongs to the round that was asked for last."""
    step = 1
    stream = []
    for seq, one in enumerate(facts, start):
        stored = one if isinstance(one, Fact) else fact(one, step=step)
        step = stored.step or step
        stream.append(StoredFact(AGENT, seq, stored))
    return stream


def in_step(step: int, *events: AnyEvent) -> Iterable[Fact]:
    """Events of one round."""
    return [fact(event, step=step) for event in events]


def as_published(event: AnyEvent, *, seq: int = 1) -> dict[str, Any]:
    """The JSON a reader outside gets, as plain values."""
    return published(StoredFact(AGENT, seq, fact(event)), "runtime_1").model_dump(mode="json", exclude_none=True)
