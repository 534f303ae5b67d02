"""The liveness invariant: what a thread is at, as exactly one of six states, or what is wrong with it.

running: a turn is under way, and a process runs it. queued: something is to be run, and its time is known. waiting: for
a named condition, with a deadline. idle: it owes nothing. paused and stopped: somebody said so. Everything that a
thread owes has a wake that says when it is looked at; a thread for which that is not so would hang for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from wakeful.contracts.agent_identity import AgentControl
from wakeful.contracts.envelope import iso
from wakeful.contracts.events.liveness import Owed, ViolationKind

LifeState: TypeAlias = Literal["running", "queued", "waiting", "idle", "paused", "stopped", "broken"]


class WakeTime(NamedTuple):
    """When something is looked at."""

    due_at: int | None
    """Unix microseconds; None: no time moves it."""
    cause: str
    cause_id: str
    alarm: int | None = None
    """When the runtime looks at it; None: it does not."""


class Obligation(NamedTuple):
    """Something that a thread owes, and the wake that belongs to it."""

    owed: Owed
    owed_id: str
    subject: str
    """What its wake is called."""
    wake: WakeTime
    """What that wake says, if it has to be written again."""
    words: str
    """What it is, for people: a part of a sentence."""


@dataclass(frozen=True, slots=True)
class ThreadFacts:
    """Everything that the decision reads of a thread."""

    control: AgentControl
    control_words: str = ""
    """Of an agent that does not run: who said so, and why."""
    is_broken: bool = False
    """It does not run because it could not be run."""
    resumes_at: int | None = None
    running_turn: str = ""
    """A turn that is under way; blank: none is."""
    is_run: bool = False
    """A process has the thread."""
    owes: tuple[Obligation, ...] = ()
    """A turn at rest first, then its queue, then the rest."""
    wakes: Mapping[str, WakeTime] = field(default_factory=dict)
    """By subject."""
    last_turn: str = ""
    """The newest turn that ended, and how; blank: there is none."""


class Liveness(NamedTuple):
    """A thread in one of its states."""

    state: LifeState
    words: str
    """The rest of a sentence that begins with the agent's name."""
    evidence: tuple[str, ...]
    """Ids of the facts it rests on, each with its kind."""
    until: int | None = None
    """Unix microseconds: when this ends by itself, at the latest."""


class LivenessViolation(NamedTuple):
    """A thread in none of them."""

    violation: ViolationKind
    owed: Obligation
    words: str


def liveness_of(facts: ThreadFacts, now: int) -> Liveness | LivenessViolation:
    """Where a thread stands."""
    wrong = _violation(facts)
    if wrong is not None:
        return wrong
    if facts.control == "stopped" and facts.is_broken:
        return Liveness("broken", f"is broken and was stopped: {facts.control_words}", _ids(facts))
    if facts.control == "stopped":
        return Liveness("stopped", f"is stopped: {facts.control_words}", _ids(facts))
    if facts.control == "paused":
        ends = f", until {iso(facts.resumes_at)}" if facts.resumes_at is not None else ""
        return Liveness("paused", f"is paused{ends}: {facts.control_words}", _ids(facts), facts.resumes_at)
    if facts.running_turn:
        return Liveness("running", f"runs turn {facts.running_turn}", (f"turn {facts.running_turn}",))
    for owed in facts.owes:
        if owed.owed != "timer":  # a schedule makes nobody wait
            return _owing(owed, facts.wakes[owed.subject], now)
    return _idle(facts)


def _violation(facts: ThreadFacts) -> LivenessViolation | None:
    if facts.running_turn and not facts.is_run and facts.control == "running":
        turn = facts.running_turn
        owed = Obligation("turn", turn, turn, WakeTime(None, "", ""), f"turn {turn}")
        return LivenessViolation("cut_off", owed, f"turn {turn} is under way, and no process runs it")
    for owed in facts.owes:
        wake = facts.wakes.get(owed.subject)
        is_untimed = wake is not None and wake.due_at is None and owed.wake.due_at is not None
        if wake is None or (is_untimed and owed.owed != "turn"):  # a turn may rest until somebody acts
            return LivenessViolation("no_wake", owed, f"nothing would have looked at {owed.words}")
        is_timed = wake.due_at is not None and (facts.control == "running" or owed.owed == "pause")
        if is_timed and wake.alarm is None:
            words = f"{owed.words} is due at {iso(wake.due_at or 0)}, and the runtime would not have looked"
            return LivenessViolation("no_alarm", owed, words)
    return None


def _owing(owed: Obligation, wake: WakeTime, now: int) -> Liveness:
    evidence = (f"{owed.owed} {owed.owed_id}", f"wake {wake.cause} {wake.cause_id}".strip())
    if wake.due_at is None:
        if wake.cause == "paused":
            return Liveness("paused", f"rests with turn {owed.owed_id}, which was paused by {wake.cause_id}", evidence)
        return Liveness("waiting", f"waits for {owed.words}", evidence)
    when = "now" if wake.due_at <= now else f"at {iso(wake.due_at)}"
    if owed.owed == "deferral" and wake.cause_id not in ("", owed.owed_id):
        words = f"waits for the folder {wake.cause_id}, which was missing, and is tried again {when} at the latest"
        return Liveness("waiting", words, evidence, wake.due_at)
    if owed.owed in ("turn", "wait") and wake.due_at > now:
        words = f"waits for {owed.words}" if owed.owed == "turn" else f"waits: {owed.words}"
        return Liveness("waiting", f"{words}, until {iso(wake.due_at)} at the latest", evidence, wake.due_at)
    if wake.cause == "provider":
        return Liveness("waiting", f"waits for {owed.words}, which is asked again soon", evidence, wake.due_at)
    return Liveness("queued", f"has {owed.words} to look at, {when}", evidence, wake.due_at)


def _idle(facts: ThreadFacts) -> Liveness:
    timers = [(facts.wakes[owed.subject], owed) for owed in facts.owes]
    last = f"; {facts.last_turn}" if facts.last_turn else ""
    if not timers:
        return Liveness("idle", f"owes nothing{last}", (facts.last_turn,) if facts.last_turn else ())
    wake, owed = min(timers, key=lambda each: each[0].due_at or 0)
    words = f"owes nothing until {owed.words} is due at {iso(wake.due_at or 0)}{last}"
    evidence = (f"timer {owed.owed_id}", facts.last_turn) if facts.last_turn else (f"timer {owed.owed_id}",)
    return Liveness("idle", words, evidence, wake.due_at)


def _ids(facts: ThreadFacts) -> tuple[str, ...]:
    return tuple(f"{owed.owed} {owed.owed_id}" for owed in facts.owes)
