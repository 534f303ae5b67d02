"""A thread is in exactly one of six states, or something is wrong with it."""

import pytest

from wakeful.contracts.envelope import iso
from wakeful.contracts.events.liveness import Owed
from wakeful.decisions.waking.liveness import (
    Liveness,
    LivenessViolation,
    Obligation,
    ThreadFacts,
    WakeTime,
    liveness_of,
)

NOW = 1_767_225_600_000_000
LATER = NOW + 3_600_000_000
AT = iso(LATER)


def owed(kind: Owed, due_at: int | None = LATER, cause: str = "wait") -> Obligation:
    return Obligation(kind, "x_1", "s", WakeTime(due_at, cause, "x_1"), "the build")


def thread(*owes: Obligation, alarm: bool = True, control: str = "running", **fields: object) -> ThreadFacts:
    wakes = {each.subject: each.wake._replace(alarm=each.wake.due_at if alarm else None) for each in owes}
    return ThreadFacts(control, "maintenance (ann)", owes=owes, wakes=wakes, **fields)  # type: ignore[arg-type]


ALLOWED = [
    (thread(running_turn="turn_1", is_run=True), "running", "runs turn turn_1", None),
    (thread(owed("queue", NOW, "message")), "queued", "has the build to look at, now", NOW),
    (thread(owed("deferral", LATER, "deferral")), "queued", f"has the build to look at, at {AT}", LATER),
    (
        thread(Obligation("deferral", "x_2", "s", WakeTime(LATER, "deferral", "/shop"), "a message")),
        "waiting",
        f"waits for the folder /shop, which was missing, and is tried again at {AT} at the latest",
        LATER,
    ),
    (thread(owed("wait")), "waiting", f"waits: the build, until {AT} at the latest", LATER),
    (thread(owed("turn", LATER, "expiry")), "waiting", f"waits for the build, until {AT} at the latest", LATER),
    (thread(owed("turn", NOW, "decision")), "queued", "has the build to look at, now", NOW),
    (thread(owed("turn", None, "somebody")), "waiting", "waits for the build", None),
    (thread(owed("turn", None, "paused")), "paused", "rests with turn x_1, which was paused by x_1", None),
    (thread(), "idle", "owes nothing", None),
    (thread(last_turn="turn t completed"), "idle", "owes nothing; turn t completed", None),
    (thread(owed("timer", LATER, "timer")), "idle", f"owes nothing until the build is due at {AT}", LATER),
    (thread(control="paused"), "paused", "is paused: maintenance (ann)", None),
    (thread(owed("wait"), alarm=False, control="stopped"), "stopped", "is stopped: maintenance (ann)", None),
]


@pytest.mark.parametrize(("facts", "state", "words", "until"), ALLOWED)
def test_every_allowed_state_is_told_in_a_sentence(
    facts: ThreadFacts, state: str, words: str, until: int | None
) -> None:
    found = liveness_of(facts, NOW)
    assert isinstance(found, Liveness)
    assert (found.state, found.words, found.until) == (state, words, until)


def test_evidence_names_what_is_owed_and_what_wakes_it() -> None:
    found = liveness_of(thread(owed("wait")), NOW)
    assert isinstance(found, Liveness)
    assert found.evidence == ("wait x_1", "wake wait x_1")


@pytest.mark.parametrize("kind", ["turn", "queue", "deferral", "wait", "timer", "hint", "pause"])
def test_whatever_is_owed_and_has_no_wake_is_a_violation(kind: Owed) -> None:
    found = liveness_of(ThreadFacts("running", owes=(owed(kind),)), NOW)
    assert found == LivenessViolation("no_wake", owed(kind), "nothing would have looked at the build")


def test_a_wake_that_the_runtime_would_not_look_at_is_a_violation() -> None:
    found = liveness_of(thread(owed("wait"), alarm=False), NOW)
    assert isinstance(found, LivenessViolation)
    assert found.violation == "no_alarm"


def test_a_hint_for_a_free_thread_needs_a_time() -> None:
    free = ThreadFacts("running", owes=(owed("hint", NOW, "hint"),), wakes={"s": WakeTime(None, "hint", "h")})
    assert isinstance(liveness_of(free, NOW), LivenessViolation)


def test_a_turn_that_no_process_runs_is_a_violation_unless_its_agent_is_paused() -> None:
    found = liveness_of(thread(running_turn="turn_1"), NOW)
    assert isinstance(found, LivenessViolation)
    assert (found.violation, found.owed.owed_id) == ("cut_off", "turn_1")
    assert isinstance(liveness_of(thread(running_turn="turn_1", control="paused"), NOW), Liveness)
