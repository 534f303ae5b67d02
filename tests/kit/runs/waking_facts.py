"""Facts about waiting and waking, as the store is given them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kit.runs.action_facts import asked, decided
from kit.runs.store_facts import NOON, THREAD, created, queued, started
from kit.runs.store_facts import ended as turn_ended
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    ActionReminded,
    AnyEvent,
    ContinuationResolved,
    FilesLoaded,
    FilesReloadRequested,
    KeyedRequestAnswered,
    KeyedRequestReleased,
    KeyedRequestStarted,
    LivenessViolated,
    MessageSettled,
    NoticeAttempted,
    NoticeRequested,
    ProgressStalled,
    ProviderAnswered,
    ProviderDisappeared,
    ProviderParked,
    ProviderUnparked,
    RuntimeControlChanged,
    StoreSizeNoticed,
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
from wakeful.contracts.events.holds import RUNTIME_STREAM
from wakeful.contracts.file_problems import FileProblem
from wakeful.contracts.waking import ContinuationResolution
from wakeful.ports import Store

MINUTE = 60_000_000
SLEEPER = "agent_8"


def waking(event: AnyEvent, at: int = NOON, thread: str = THREAD) -> Fact:
    return Fact(event, at, thread)


def armed(timer_id: str = "timer_1", due_at: int = NOON + MINUTE, **fields: Any) -> Fact:
    return waking(TimerArmed(timer_id=timer_id, due_at=due_at, armed_by="operator", **fields))


def fired(
    timer_id: str = "timer_1", due_at: int = NOON + MINUTE, next_at: int | None = None, **fields: Any
) -> list[Fact]:
    message_id = fields.pop("message_id", f"msg of {timer_id} at {due_at}")
    event = TimerFired(timer_id=timer_id, due_at=due_at, message_id=message_id, next_at=next_at, **fields)
    return [waking(event, due_at), queued(message_id, at=due_at, thread="fresh 1")]


def moved(subject: str, cause: str, cause_id: str, due_at: int, to: int) -> Fact:
    event = WakeMoved(subject=subject, cause=cause, cause_id=cause_id, due_at=due_at, moved_to=to)
    return waking(event, NOON + 1)


def wait_created(wait_id: str = "wait_1", turn: str = "turn_w", **fields: Any) -> Fact:
    given = {"reason": "the build", "wake": "external", "due_at": NOON + 60 * MINUTE, **fields}
    return Fact(WaitCreated(wait_id=wait_id, **given), NOON, THREAD, turn, 1, f"call of {wait_id}")


def resolved(wait_id: str = "wait_1", message_id: str = "m1", at: int = NOON + 1) -> Fact:
    return waking(WaitResolved(wait_id=wait_id, message_id=message_id), at)


def wait_expired(wait_id: str = "wait_1", message_id: str = "m1", at: int = NOON + 60 * MINUTE) -> Fact:
    return waking(WaitExpired(wait_id=wait_id, message_id=message_id), at)


def wait_cancelled(wait_id: str = "wait_1", turn: str = "turn_c") -> Fact:
    event = WaitCancelled(wait_id=wait_id, cancelled_by="agent")
    return Fact(event, NOON, THREAD, turn, 1, f"call of {wait_id}")


def hinted(hint_id: str = "hint_1", at: int = NOON, **fields: Any) -> Fact:
    return waking(WakeHintStored(hint_id=hint_id, target_agent_id=SLEEPER, **fields), at)


def triggered(first: str = "hint_1", hints: int = 1, message_id: str = "tick_1", at: int = NOON + 2) -> list[Fact]:
    event = WakeHintTriggered(message_id=message_id, first_hint_id=first, hints=hints)
    return [waking(event, at), queued(message_id, at=at)]


def continuation(message_id: str = "m1", treatment: Any = "settled", at: int = NOON) -> Fact:
    resolution = ContinuationResolution(
        trigger_kind="system_tick",
        continuation_class="liveness_only",
        model_visible=False,
        prior_closure_outcome="completed",
        matched_waiting_reason=False,
        evidence=("without content",),
    )
    event = ContinuationResolved(
        message_id=message_id, message_kind="system_tick", resolution=resolution, treatment=treatment
    )
    return waking(event, at)


def parked(provider: str, probes: int = 0) -> ProviderParked:
    return ProviderParked(
        provider=provider,
        model_ref=f"{provider}:m",
        agent_id=SLEEPER,
        failure_kind="auth_error",
        probes=probes,
        probes_at=NOON + MINUTE,
    )


def attempted(notice_id: str, attempt: int = 1, outcome: Any = "failed", next_at: int | None = NOON + 9) -> Fact:
    event = NoticeAttempted(notice_id=notice_id, attempt=attempt, outcome=outcome, error="HTTP 503", next_at=next_at)
    return Fact(event, NOON + 1)


def settled(message_id: str = "m1", at: int = NOON) -> Fact:
    return waking(MessageSettled(message_id=message_id), at)


def cut_off(turn: str) -> Fact:
    return waking(LivenessViolated(violation="cut_off", owed="turn", subject=turn, owed_id=turn))


async def with_turn(
    store: Store, *facts: Fact, agent: str = SLEEPER, turn: str = "turn_w", meanwhile: Sequence[Fact] = ()
) -> None:
    """A turn of an agent of a runtime that appends these and ends. `meanwhile`: what others say of it."""
    await store.admit(agent, [queued(f"msg of {turn}")])
    claim = await store.claim_thread(agent, THREAD, turn)
    begun = started(turn)
    begun.event = begun.event.model_copy(update={"prompt_preview": "?"})
    await store.append(claim, [begun, *facts])
    if meanwhile:
        await store.admit(agent, meanwhile)
    await store.append(claim, [turn_ended(turn)])
    await store.release(claim)


OUTSIDE: list[list[Fact]] = [
    [created(SLEEPER)],
    [armed(cron="* * * * *", catch_up="all", name="beat")],
    [armed("timer_2", NOON + 5)],
    [armed("timer_3", NOON + 7, thread="main", derived_from="external_evidence")],
    fired(next_at=NOON + 2 * MINUTE, failures=1),
    [
        waking(
            TimerFolded(
                timer_id="timer_1",
                due_at=NOON + 2 * MINUTE,
                last=NOON + 3 * MINUTE,
                number=2,
                into="msg of timer_1",
                next_at=NOON + 4 * MINUTE,
            )
        )
    ],
    [
        waking(
            TimerMissed(
                timer_id="timer_1",
                due_at=NOON + 4 * MINUTE,
                last=NOON + 4 * MINUTE,
                number=1,
                because="late",
                next_at=NOON + 5 * MINUTE,
            )
        )
    ],
    [
        waking(
            TimerSkipped(
                timer_id="timer_1",
                due_at=NOON + 5 * MINUTE,
                last=NOON + 6 * MINUTE,
                number=2,
                check_turn="turn_check",
                next_at=NOON + 7 * MINUTE,
            )
        )
    ],
    [moved("timer:timer_3", "timer", "timer_3", NOON + 7, NOON + 6)],
    [waking(TimerCancelled(timer_id="timer_2", cancelled_by="operator"))],
    fired("timer_3", NOON + 6),
]
LATER: list[list[Fact]] = [
    [moved("wait:wait_1", "wait", "wait_1", NOON + 60 * MINUTE, NOON + MINUTE)],
    [resolved("wait_1")],
    [wait_expired("wait_2")],
    [hinted(body="it is red")],
    [hinted("hint_2", NOON + 1)],
    triggered(hints=2),
    [hinted("hint_3", NOON + 3)],
    [queued("m_empty")],
    [continuation("m_empty"), settled("m_empty")],
    [waking(ProgressStalled(turns=10, resumes_at=NOON))],
    [Fact(NoticeRequested(requested_by="operator"), NOON)],
]
HELD: list[Fact] = [
    Fact(RuntimeControlChanged(control="paused", changed_by="operator"), NOON),
    Fact(FilesReloadRequested(requested_by="operator"), NOON),
    Fact(FilesLoaded(changed=("ops",), problems=(FileProblem(place="a.yaml", line=2, message="no"),)), NOON),
    Fact(FilesReloadRequested(requested_by="operator"), NOON + 1),
    waking(parked("openai")),
    waking(parked("openai", probes=1)),
    waking(parked("gemini")),
    waking(parked("anthropic")),
    waking(ProviderUnparked(provider="openai", by="runtime")),
    waking(
        ProviderDisappeared(
            provider="gemini", model_ref="gemini:m", failure_kind="server_error", message="503", since=NOON, threads=2
        )
    ),
    waking(ProviderAnswered(provider="gemini", seconds=140.0, threads=2)),
    waking(StoreSizeNoticed(size_bytes=6_000_000_000, notice_bytes=5_000_000_000)),
]
KEYED: list[Fact] = [
    *(
        Fact(KeyedRequestStarted(caller="ada", request_key=key, route="POST /x", digest="sha256:1"), NOON)
        for key in ("k1", "k2", "k3", "k4")
    ),
    Fact(KeyedRequestAnswered(caller="ada", request_key="k1", status=200, answer="{}"), NOON + 1),
    Fact(KeyedRequestAnswered(caller="ada", request_key="k2", status=200), NOON + 1),
    Fact(KeyedRequestReleased(caller="ada", request_key="k3", code="agent_stopped"), NOON + 1),
]
WAITS = [
    wait_created(),
    wait_created("wait_2", wake="operator_input"),
    wait_created("wait_3", wake="task_result", resource="task_1", work_item_id="work_1"),
    wait_created("wait_4", wake="timer", is_sleep=True),
]
CANCELLED = [wait_cancelled("wait_3")]
FOUND = cut_off("turn_c")
ASKED = [asked("appr_s", turn="turn_a")]
REMINDED = [
    waking(ActionReminded(action_id="appr_s", tool_name="refund", expires_at=NOON + 60)),
    replace(decided("appr_s", "timed_out"), turn_id="turn_a"),
]


async def tell_waking(store: Store) -> None:
    """Timers, waits and hints of two agents."""
    for facts in OUTSIDE:
        await store.admit(SLEEPER, facts)
    await with_turn(store, *WAITS)
    await with_turn(store, *CANCELLED, turn="turn_c", meanwhile=[FOUND])
    await with_turn(store, *ASKED, turn="turn_a", meanwhile=REMINDED)
    for facts in LATER:
        await store.admit(SLEEPER, facts)
    told, other = (await store.notices(SLEEPER))[:2]
    await store.admit(SLEEPER, [attempted(told.notice_id)])
    await store.admit(SLEEPER, [attempted(other.notice_id, 1, "delivered", None)])
    await store.admit(RUNTIME_STREAM, HELD)
    await store.admit("other-control", HELD[:3])
    await store.admit("request-keys-2026-01-01", KEYED)
    await store.admit("agent_9", [created("agent_9"), hinted(), continuation("elsewhere", "deferred")])


def told_waking() -> list[list[Fact]]:
    return [*OUTSIDE, WAITS, CANCELLED, [FOUND], ASKED, REMINDED, *LATER, HELD, KEYED, [attempted("x")]]
