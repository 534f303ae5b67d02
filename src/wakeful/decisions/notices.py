"""Which facts are told to people without their asking, and in which words. Quiet success says nothing.

Also when a notice that could not be delivered is tried again, and when it is quiet.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple

from wakeful.contracts.envelope import iso
from wakeful.contracts.events import (
    ActionReminded,
    ActionRequired,
    ActionResolved,
    AgentStateChanged,
    AnyEvent,
    BriefCreated,
    BudgetNoticed,
    ChannelTroubled,
    HeartbeatChanged,
    LimitChanged,
    LivenessViolated,
    NoticeRequested,
    PackageReplaced,
    ProgressStalled,
    ProviderAnswered,
    ProviderDisappeared,
    ProviderParked,
    ResultChanged,
    RuntimePartFailed,
    StoreSizeNoticed,
    TimerMissed,
    TurnFailed,
    WaitCreated,
)
from wakeful.contracts.notices import MOST_WORDS, NoticeKind
from wakeful.contracts.retention import GB
from wakeful.decisions.briefs import failure_text
from wakeful.decisions.spend_windows import window_words

AT_ONCE: Final[tuple[NoticeKind, ...]] = ("action_required", "test")
"""Told in quiet hours, too, and not kept for the digest."""
FIRST_PAUSE: Final = 10 * 1_000_000
LONGEST_PAUSE: Final = 3600 * 1_000_000
MOST_ATTEMPTS: Final = 32
"""With these pauses they are spread over a day: a network that is away for a night loses no notice."""
OLDEST: Final = 24 * 3600 * 1_000_000
"""A notice that nobody tried to deliver for so long is old news."""


class NoticeText(NamedTuple):
    """What is told."""

    kind: NoticeKind
    words: str
    about: str = ""
    """The approval, wait, timer or provider it is about; blank: the turn or the agent."""


def notice_of(event: AnyEvent) -> NoticeText | None:
    """What people are told of a fact of an agent of a runtime; None: nothing."""
    found = _text(event)
    return None if found is None else found._replace(words=found.words[:MOST_WORDS])


def is_for_parent(event: AnyEvent) -> bool:
    """Of a private child: is its parent told of the fact, and nobody else? Its words, its questions and its failures
    are. People are still told what only they can do: decide about a call, give money, bring back code or a log."""
    if isinstance(event, AgentStateChanged):
        return event.cause == "failure" and not event.is_damaged
    return isinstance(event, BriefCreated | TurnFailed | ProgressStalled | WaitCreated)


def _asked(event: ActionRequired) -> str:
    """`wants to call refund(order='A17')`; the name and what it is called with, each once."""
    if event.action_type == "question":
        return f"asks: {event.prompt}"
    if event.prompt.startswith(f"Run {event.tool_name}("):
        return f"wants to call {event.prompt.removeprefix('Run ').removesuffix('?').removeprefix('wakeful/')}"
    return f"wants to call {event.tool_name}: {event.prompt}"


def _text(event: AnyEvent) -> NoticeText | None:
    match event:
        case ActionRequired():
            return NoticeText("action_required", _asked(event), event.action_id)
        case ActionReminded():
            words = f"{event.tool_name} still waits for a decision, until {iso(event.expires_at)}"
            return NoticeText("action_required", words, event.action_id)
        case ActionResolved(status="timed_out"):
            words = f"{event.tool_name} was not decided in time, and the turn goes on without it; to have it asked "
            words += f"again: wakeful approvals reask {event.action_id}"
            return NoticeText("action_required", words, event.action_id)
        case WaitCreated(wake="operator_input", is_sleep=False):
            return NoticeText("action_required", f"waits for your answer: {event.reason}", event.wait_id)
        case TurnFailed() if event.status != "cancelled" and not _parks(event):
            return NoticeText("failure", f"{failure_text(event)} {event.message}".strip())
        case BudgetNoticed():
            return NoticeText("budget", f"{event.percent} % of {window_words(event.window)}, is spent")
        case LimitChanged(window=window) if window is not None:
            # The same words for everybody who meets the window: it is told once.
            words = f"not enough money is left for the next request in {event.what}; it waits, and goes on by itself"
            return NoticeText("budget", words)
        case TimerMissed():
            times = "one time" if event.number == 1 else f"{event.number:,} times"
            return NoticeText("missed", f"missed {times}, the last at {iso(event.last)}", event.timer_id)
        case AgentStateChanged(control="paused") if event.cause in ("failure", "configuration"):
            return NoticeText("failure", f"could not run and is paused: {event.reason}")
        case BriefCreated(brief_kind="progress") if event.text:
            kind: NoticeKind = "action_required" if event.visibility == "action_required" else "progress"
            return NoticeText(kind, event.text)
        case LivenessViolated():
            return NoticeText("failure", f"would have hung, and was repaired: {event.words}")
        case ProgressStalled():
            words = f"started {event.turns} turns in a row that came to nothing; the next one is at the earliest at"
            return NoticeText("failure", f"{words} {iso(event.resumes_at)}")
        case ProviderParked(probes=0):
            why = "refused its key" if event.failure_kind == "auth_error" else "has no quota left"
            words = f"the provider {event.provider} {why}; its agents wait, and go on by themselves once it answers"
            return NoticeText("failure", f"{words}: {event.message}", event.provider)
        case ProviderDisappeared():
            waiting = "1 conversation waits" if event.threads == 1 else f"{event.threads:,} conversations wait"
            words = f"the provider {event.provider} does not answer since {iso(event.since)}; {waiting} until it does"
            return NoticeText("failure", f"{words}: {event.message}", event.provider)
        case ProviderAnswered():
            words = f"the provider {event.provider} answers again, after {_span(event.seconds)}"
            return NoticeText("failure", f"{words}; what waited for it goes on", event.provider)
        case PackageReplaced():
            others = f"version {event.installed}" if event.installed not in ("", event.running) else "other files"
            words = f"wakeful was replaced on the disk by {others} while version {event.running} runs; to change over:"
            return NoticeText("failure", f"{words} wakeful daemon restart")
        case ChannelTroubled() if event.words:
            return NoticeText(
                "failure", f"the channel {event.channel} cannot be listened to: {event.words}", event.channel
            )
        case HeartbeatChanged(ok=False):
            return NoticeText("failure", f"the heartbeat does not arrive: {event.error}")
        case RuntimePartFailed():
            return NoticeText("failure", f"{event.part} of the runtime failed, and is tried again: {event.error}")
        case StoreSizeNoticed():
            size, limit = (f"{number / GB:,.1f} GB" for number in (event.size_bytes, event.notice_bytes))
            words = f"the store takes {size}, more than {limit}; what takes the room, and how to free some:"
            return NoticeText("failure", f"{words} wakeful store stats, wakeful store compact")
        case ResultChanged():
            return NoticeText("change", event.text, event.source)
        case NoticeRequested():
            return NoticeText("test", event.words or "this is a test: notices arrive")
        case _:
            return None


def _span(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"


def _parks(event: TurnFailed) -> bool:
    """The provider lets nobody in: that is told once for all of its agents, and not for each turn."""
    attempts = event.timeline.attempts if event.timeline is not None else ()
    return bool(attempts) and attempts[-1].failure_kind in ("auth_error", "quota_exhausted")


def digest_after(digest: str, zone: tzinfo, moment: int) -> int:
    """When the first digest is due after a moment."""
    here = datetime.fromtimestamp(moment / 1_000_000, UTC).astimezone(zone)
    at = time.fromisoformat(digest)
    day = here.date() if here.time() < at else here.date() + timedelta(days=1)
    return round(datetime.combine(day, at, zone).timestamp() * 1_000_000)


def digest_text(told: Sequence[tuple[str, str]]) -> str:
    """Many notices as one: agents with their words, the same words of one agent once."""
    lines = Counter(f"{agent}: {words}" for agent, words in told)
    return "\n".join(f"{line} ({number} times)" if number > 1 else line for line, number in lines.items())


def pause_before(attempt: int) -> int | None:
    """Microseconds until a notice is tried again after so many attempts; None: it is given up."""
    if attempt >= MOST_ATTEMPTS:
        return None
    return min(FIRST_PAUSE << (attempt - 1), LONGEST_PAUSE)


def quiet_until(quiet: str | None, zone: tzinfo, now: int) -> int | None:
    """When the quiet hours end that a moment is in; None: it is not quiet."""
    if quiet is None:
        return None
    begins, _, ends = (part for part in quiet.partition("-"))
    here = datetime.fromtimestamp(now / 1_000_000, UTC).astimezone(zone)
    first, last = time.fromisoformat(begins), time.fromisoformat(ends)
    spans = first > last
    inside = here.time() >= first or here.time() < last if spans else first <= here.time() < last
    if not inside:
        return None
    day = here.date() + timedelta(days=1) if spans and here.time() >= first else here.date()
    return round(datetime.combine(day, last, zone).timestamp() * 1_000_000)
