"""A story that fills every declared table and changes rows of each in every way its rules know.

A new table adds the facts it is about here: a test compares the events of the story with the events that have rules.
"""

from dataclasses import replace
from typing import Any

from kit.runs.action_facts import about, asked, decided, rule_added, rule_revoked
from kit.runs.channel_facts import tell_channels, told_channels
from kit.runs.event_samples import task_created
from kit.runs.memory_facts import MEMORY, MEMORY_OUTSIDE, tell_memory
from kit.runs.store_facts import (
    AGENT,
    NOON,
    THREAD,
    TURN,
    claimed,
    completed,
    deferred,
    ended,
    expired,
    interrupt,
    message,
    queued,
    resolved,
    said,
    session,
    spilled,
    started,
    takes,
    tool_failed,
    tool_result,
    tool_started,
)
from kit.runs.trigger_facts import TRIGGERED, tell_triggers
from kit.runs.waking_facts import SLEEPER, tell_waking, told_waking
from kit.runs.work_facts import WORK, WORK_OUTSIDE, tell_work
from kit.runs.workspace_facts import WORKSPACES, tell_workspaces
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    ActionSettled,
    ActionStaged,
    AgentArchived,
    AgentCreated,
    AgentDeleted,
    AgentModelChanged,
    AgentRevised,
    AgentStateChanged,
    AnyEvent,
    BriefCreated,
    BudgetGranted,
    BudgetNoticed,
    CompactionCompleted,
    CostRecorded,
    FilesTainted,
    LimitChanged,
    LogCheckpointed,
    ModelAnswered,
    ModelFailed,
    ModelRequested,
    ModelWaiting,
    OutputExpired,
    RuntimeToolRequested,
    RuntimeToolResolved,
    TaskEnded,
    TaskRetried,
    TaskStatusChanged,
    ThreadDeleted,
    TurnEmptied,
    TurnFailed,
    TurnInterjected,
    TurnPatienceEnded,
    TurnPauseLifted,
    TurnPauseRequested,
    TurnProviderReturned,
    TurnResumed,
    TurnRetried,
    TurnSuspended,
)
from wakeful.contracts.events.context import WindowStart
from wakeful.contracts.spending import WindowPassed, WindowRef
from wakeful.ports import Claim, Store


def decided_in(name: str, turn: str) -> Fact:
    return replace(decided(name), turn_id=turn)


OTHER, OTHER_TURN = "agent_2", "turn_9"


def _staged(event: ActionStaged | ActionSettled) -> Fact:
    return Fact(event, NOON, action_id=event.action_id)


_CLIENT_DONE = RuntimeToolResolved(request_id="rt_1", tool_name="ui", status="runtime_tool_completed", success=True)

OWNED: list[list[Fact]] = [
    [started(), asked(), asked("appr_2", at=NOON + 1), asked("ask_3", kind="question")],
    [tool_started(call="c1"), tool_started(call="c2"), tool_started(call="c3")],
    [tool_failed(call="c1"), tool_failed(call="c2")],
    [spilled("sha256:1", call="c5"), tool_result(call="c5", artifacts=("sha256:1", "sha256:2"))],
    [tool_failed(call="c3", effects="none"), tool_started(call="c4", b=9), tool_failed(call="c4")],
    [
        about(RuntimeToolRequested(request_id="rt_1", tool_name="ui", args_sha256="1", timeout_at=NOON + 9), "rt_1"),
        about(RuntimeToolRequested(request_id="rt_2", tool_name="ui", args_sha256="1", timeout_at=NOON + 9), "rt_2"),
    ],
    [about(FilesTainted(workspace="/w", cause="page", since=NOON), "c1")],
    [
        about(FilesTainted(workspace="/w", cause="page", files={"a": "sha256:a", "d/": ""}, settles=NOON), "c1"),
        about(FilesTainted(workspace="/w", cause="page", since=NOON + 1), "c1", at=NOON + 1),
    ],
]
"""What the owner of the first turn appends, one after the other."""

OUTSIDE: list[list[Fact]] = [
    [rule_added(), decided("appr_2", "rejected")],
    [rule_added("rule_2", "other"), rule_added("rule_3", at=NOON + 1)],
    [rule_revoked()],
    [resolved(call="c2")],
    [about(_CLIENT_DONE, "rt_1")],
    [_staged(ActionStaged(action_id="pa_1", action_type="pending_action", name="transfer", expires_at=NOON + 5))],
    [_staged(ActionSettled(action_id="pa_1", action_type="pending_action", status="accepted", settled_by="ada"))],
    [Fact(OutputExpired(output_ref="sha256:1", of_turn=TURN), NOON), Fact(LogCheckpointed(upto=0, hash=""), NOON)],
]
"""What others append."""


HOUR = WindowRef(scope="runtime", period="hour", began=NOON - 5, turns=NOON + 3600, usd="9")
DAY = WindowRef(scope="agent:calc", period="day", began=NOON - 5, turns=NOON + 7200, usd="9")


def asks(*windows: WindowRef, turn: str = TURN, level: str | None = None) -> Fact:
    event = ModelRequested(model_ref="a:b", items=1, reserved_usd="0.5", windows=windows)
    return Fact(event, NOON, THREAD, turn, 1, level=level)


def paid(turn: str = TURN, level: str | None = None, lost: bool = False) -> Fact:
    event = CostRecorded(model_ref="a:b", amount="0.2", price_list="code", lost=lost)
    return Fact(event, NOON, THREAD, turn, 1, level=level)


_CUT = ModelFailed(
    model_ref="a:b", attempt=1, failure_kind="stream_interrupted", stage="body", disposition="retry", message="cut"
)
MONEY: list[list[Fact]] = [
    [asks(HOUR, DAY)],
    [Fact(_CUT, NOON, THREAD, TURN, 1), asks(HOUR)],
    [completed(), paid(), said()],
    [asks(DAY, level="call_1"), paid(level="call_1"), asks(HOUR, DAY)],
    [Fact(BudgetNoticed(window=HOUR, percent=80, spent="0.8", held="0"), NOON, THREAD, TURN)],
]
"""Requests that hold money, are lost, paid and settled, and two that are under way."""
GRANTS = [Fact(BudgetGranted(window=DAY, usd="2", granted_by="ada"), NOON)]
WINDOW = WindowPassed(scope="runtime", period="hour", began=NOON, turns=NOON + 3600, usd="1", allowed="1", needed="0.5")
_WAITS = ("appr_a", "appr_b")


def in_turn(event: AnyEvent, turn: str, at: int = NOON) -> Fact:
    return Fact(event, at, THREAD, turn)


def rests(turn: str, reason: Any = "approval_required", *names: str, at: int = NOON) -> Fact:
    return in_turn(TurnSuspended(reason=reason, waiting_for=names), turn, at)


def resumed(turn: str, at: int = NOON) -> Fact:
    return in_turn(TurnResumed(cause="decision"), turn, at)


def away(turn: str) -> Fact:
    return in_turn(TurnSuspended(reason="provider", waiting_for=("a",), next_try=NOON + 60), turn)


def interjected(turn: str, name: str) -> Fact:
    return in_turn(TurnInterjected(message_id=name, item=UserItem(parts=(Text("also"),)), said_by="ada"), turn)


def failed(turn: str, at: int = NOON) -> Fact:
    event = TurnFailed(
        turn_index=1, status="cancelled", stop_reason="cancelled", retryable=False, duration_ms=1.0, active_ms=1.0
    )
    return in_turn(event, turn, at)


def exhausted(turn: str, at: int = NOON) -> Fact:
    event = TurnFailed(
        turn_index=1, status="failed", stop_reason="provider_error", retryable=True, duration_ms=1.0, active_ms=1.0
    )
    return in_turn(event, turn, at)


def spent(turn: str) -> Fact:
    return Fact(CostRecorded(model_ref="a:b", amount="0.2", price_list="code"), NOON, THREAD, turn, 1)


def retried(turn: str) -> Fact:
    return in_turn(TurnRetried(requested_by="ada", message_ids=(f"msg of {turn}",)), turn)


def passed_window(turn: str) -> Fact:
    return in_turn(LimitChanged(limit_name="cost", limit=1.0, observed=1.5, window=WINDOW), turn)


# Turns of a third agent: by turn, what its owner appends; then what others say to it.
MAIL: list[tuple[str, list[Fact], list[Fact]]] = [
    ("mail_1", [started("mail_1"), asked("appr_a", turn="mail_1"), asked("appr_b", turn="mail_1")], []),
    ("mail_1", [rests("mail_1", "approval_required", *_WAITS)], [interjected("mail_1", "msg also")]),
    ("mail_2", [], [in_turn(TurnPauseRequested(requested_by="ada"), "mail_1")]),
    ("mail_2", [], [in_turn(TurnPauseLifted(requested_by="ada"), "mail_1", NOON + 1)]),
    ("mail_1", [resumed("mail_1"), rests("mail_1", "approval_required", *_WAITS)], [decided_in("appr_a", "mail_1")]),
    ("mail_1", [resumed("mail_1"), passed_window("mail_1"), rests("mail_1", "budget_window", "runtime hour")], []),
    ("mail_2", [started("mail_2", index=2), away("mail_2")], [in_turn(TurnProviderReturned(provider="a"), "mail_2")]),
    ("mail_2", [resumed("mail_2"), away("mail_2")], [in_turn(TurnPatienceEnded(seconds=9), "mail_2")]),
    ("mail_2", [resumed("mail_2"), rests("mail_2", "tool_missing", "add")], []),
    ("mail_3", [failed("mail_3")], [interjected("mail_3", "msg too late"), interrupt("mail_2")]),
    ("mail_2", [ended("mail_2")], []),
    ("mail_4", [started("mail_4", index=3), spent("mail_4"), exhausted("mail_4")], [retried("mail_4")]),
    ("mail_4", [resumed("mail_4"), spent("mail_4"), exhausted("mail_4")], [retried("mail_4")]),
]
POSTAL, SORTER = "agent_3", "agent_5"


async def tell_mail(store: Store) -> None:
    """Messages that wait, are taken, are said to turns under way and are answered; turns that rest and go on."""
    for turn in ("mail_1", "mail_2", "mail_3", "mail_4", "mail_5"):
        opening = [session()] if turn == "mail_1" else []
        await store.admit(POSTAL, [*opening, message(turn)])
    for turn, owned, outside in MAIL:
        claim = await store.claim(turn)
        if owned:
            await store.append(claim, owned)
        await store.release(claim)
        for fact in outside:
            await store.admit(POSTAL, [fact])
    await store.admit("agent_4", [session(), message("mail_9")])
    graph = await store.put_blob(b"{}", "application/json")
    for name in ("run_1", "run_2"):
        fact = message(name)
        await store.admit("agent_4", [replace(fact, event=fact.event.model_copy(update={"workflow_ref": graph}))])
    await tell_queue(store)


QUEUE: list[Fact] = [
    *(queued(f"q{place}") for place in range(1, 6)),
    deferred("q1", NOON + 60),
    deferred("q2", NOON + 90),
    expired("q3"),
    expired("q2"),
]
"""What others say to a thread in which no turn is."""


async def tell_queue(store: Store) -> None:
    """Messages without a turn: some are taken together, one is deferred and taken with them, some expire."""
    await store.admit(SORTER, [session()])
    for fact in QUEUE:
        await store.admit(SORTER, [fact])
    claim = await store.claim_thread(SORTER, THREAD, "sorted_1")
    await store.append(claim, [takes("sorted_1", "q4", "q5", "q1")])
    await store.append(claim, [ended("sorted_1")])
    await store.release(claim)
    await store.admit(SORTER, [queued("q6")])
    await store.admit(SORTER, [queued("q7")])
    await store.admit(SORTER, [deferred("q7", NOON + 99)])


KEEPER = "agent_6"
LIFE: list[list[Fact]] = [
    [Fact(AgentCreated(agent_name=KEEPER, created_by="ada"), NOON)],
    [Fact(AgentRevised(revision="sha256:1", source="file", place="keeper.yaml"), NOON + 1)],
    [queued("k1"), queued("k2"), deferred("k2", NOON + 30)],
    [Fact(AgentStateChanged(control="paused", changed_by="ada", resumes_at=NOON + 9), NOON + 2)],
    [queued("k3", thread="side")],
    [Fact(AgentStateChanged(control="running", cause="runtime", changed_by="runtime"), NOON + 9)],
    [Fact(AgentRevised(revision="sha256:2", source="file", place="keeper.yaml"), NOON + 9)],
    [Fact(AgentModelChanged(model="scripted:demo", changed_by="ada"), NOON + 9)],
    [Fact(AgentStateChanged(control="stopped", changed_by="ada", reason="enough"), NOON + 10)],
    [Fact(AgentArchived(archived_by="ada"), NOON + 11)],
]
"""An agent of a runtime that is created, revised, paused with messages waiting, let run again, stopped, put away."""


DAY_TURN = "day_1"
_FOLDED = CompactionCompleted(
    compaction_id="cmp_1",
    trigger="token_pressure",
    summary_ref="agent_7:4",
    continuation_ref="agent_7:5",
    tokens_before=900,
    tokens_after=200,
    duration_ms=12,
    cut=1,
    folded_messages=1,
    window=WindowStart(from_turn=DAY_TURN, items=0),
)
_AWAY = ModelWaiting(
    model_ref="a:b", failure_kind="overloaded", message="busy", wait=1, since=NOON, next_try=NOON + 9, told=True
)
_BACK = ModelAnswered(model_ref="a:b", waited_ms=9)
A_DAY: list[list[Fact]] = [
    [takes(DAY_TURN, "d1"), said(DAY_TURN), tool_started(DAY_TURN)],
    [tool_result(DAY_TURN)],
    [Fact(_AWAY, NOON, THREAD, DAY_TURN, 1), Fact(_BACK, NOON, THREAD, DAY_TURN, 1)],
    [Fact(_FOLDED, NOON, THREAD, DAY_TURN)],
    [Fact(BriefCreated(brief_id="brief_day", brief_kind="result", text="Done."), NOON, THREAD, DAY_TURN)],
    [ended(DAY_TURN)],
]
"""A turn of an agent of a runtime: a call, a wait for its provider, and a conversation that is folded."""


FORGOTTEN = "agent_7c"
FORGOTTEN_TURN = "forgotten_1"
DELETED = [
    Fact(ThreadDeleted(deleted_by="ada", turns=1), NOON, THREAD),
    Fact(TurnEmptied(of_turn=FORGOTTEN_TURN), NOON + 1, THREAD),
]
"""Of a thread in which nothing is open any more."""
GONE = [
    Fact(AgentCreated(agent_name="agent_7b"), NOON),
    Fact(AgentDeleted(deleted_by="ada"), NOON + 1),
]
"""An agent that is created and deleted."""


async def tell_life(store: Store) -> None:
    for facts in LIFE:
        for fact in facts:
            await store.admit(KEEPER, [fact])
    await store.admit("agent_7", [Fact(AgentCreated(agent_name="agent_7", agent_kind="child"), NOON)])
    await store.admit("agent_7", [queued("d1")])
    claim = await store.claim_thread("agent_7", THREAD, DAY_TURN)
    for facts in A_DAY:
        await store.append(claim, facts)
    await store.release(claim)
    for fact in GONE:
        await store.admit("agent_7b", [fact])
    await store.admit(FORGOTTEN, [session(), queued("f1")])
    claim = await store.claim_thread(FORGOTTEN, THREAD, FORGOTTEN_TURN)
    facts = [takes(FORGOTTEN_TURN, "f1"), spilled("sha256:3", FORGOTTEN_TURN), ended(FORGOTTEN_TURN)]
    await store.append(claim, facts)
    await store.release(claim)
    for fact in DELETED:
        await store.admit(FORGOTTEN, [fact])
    await store.admit(FORGOTTEN, [queued("f2")])


WORKER = "agent_8"


def in_background(event: AnyEvent, at: int = NOON) -> Fact:
    return Fact(event, at, THREAD)


BACKGROUND: list[list[Fact]] = [
    [session(), in_background(task_created())],
    [in_background(task_created("task_2"), NOON + 1)],
    [in_background(TaskStatusChanged(task_id="task_2", status="cancelling"), NOON + 2)],
    [in_background(TaskEnded(task_id="task_1", status="completed", exit_status=0, output_summary="ok"), NOON + 3)],
    [in_background(task_created("task_3"), NOON + 4)],
    [in_background(TaskStatusChanged(task_id="task_3", status="running", reason="it is there"), NOON + 4)],
    [in_background(TaskEnded(task_id="task_3", status="failed", result_summary="no", output_summary="oh"), NOON + 5)],
    [in_background(TaskRetried(task_id="task_3", turn="turn_c1", requested_by="ada"), NOON + 6)],
]
"""Tasks that run, are asked to end, end, and are tried again."""


async def tell_tasks(store: Store) -> None:
    for facts in BACKGROUND:
        await store.admit(WORKER, facts)


async def tell(store: Store) -> Claim:
    """The whole story, and some of it for a second agent, whose claim is returned."""
    claim = await claimed(store)
    second = await claimed(store, OTHER_TURN, OTHER)
    for facts in OWNED:
        await store.append(claim, facts)
    for facts in MONEY:
        await store.append(claim, facts)
    for facts in [*OUTSIDE, GRANTS]:
        await store.admit(AGENT, facts)
    await store.append(second, [asks(HOUR, DAY, turn=OTHER_TURN), completed(OTHER_TURN)])
    await store.append(second, [started(OTHER_TURN), asked("appr_9", turn=OTHER_TURN), tool_started(OTHER_TURN)])
    await store.append(second, [tool_failed(OTHER_TURN), about(tainted(), "c1", turn=OTHER_TURN)])
    await store.admit(OTHER, [rule_revoked()])  # the rule is another agent's
    await tell_work(store, claim, second)
    await tell_memory(store, claim, second)
    await tell_workspaces(store)
    await tell_mail(store)
    await tell_life(store)
    await tell_tasks(store)
    await tell_waking(store)
    await tell_triggers(store)
    await tell_channels(store, SLEEPER)
    return second


def tainted() -> FilesTainted:
    return FilesTainted(workspace="/w", cause="page", files={"a": "sha256:a"})


def told() -> set[type]:
    """The events of the story."""
    mail = [[message()], QUEUE, *(facts for _, owned, outside in MAIL for facts in (owned, outside))]
    lives = (*LIFE, *A_DAY, GONE, DELETED)
    everything = (
        *OWNED,
        *MONEY,
        GRANTS,
        *OUTSIDE,
        *BACKGROUND,
        *lives,
        *told_waking(),
        *TRIGGERED,
        *mail,
    )
    return {
        type(fact.event)
        for facts in (*everything, *WORK, *WORK_OUTSIDE, *MEMORY, *MEMORY_OUTSIDE, *WORKSPACES, *told_channels())
        for fact in facts
    }
