"""Rules of `notices`, `runtime_holds`, `runtime_files` and `parked_providers`, and of their wakes.

A notice follows from the fact that it is about, in that fact's transaction: no kill comes between them. It has a wake
like anything else that is due, also while its agent is paused or stopped, and loses it when it is settled.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    ActionReminded,
    ActionRequired,
    ActionResolved,
    AgentStateChanged,
    BriefCreated,
    BudgetNoticed,
    ChannelTroubled,
    FilesLoaded,
    FilesReloadRequested,
    HeartbeatChanged,
    LimitChanged,
    LivenessViolated,
    NoticeAttempted,
    NoticeRequested,
    PackageReplaced,
    ProgressStalled,
    ProviderAnswered,
    ProviderDisappeared,
    ProviderParked,
    ProviderUnparked,
    ResultChanged,
    RuntimeControlChanged,
    RuntimePartFailed,
    StoreSizeNoticed,
    TimerMissed,
    TurnFailed,
    WaitCreated,
)
from wakeful.contracts.events.holds import RUNTIME_STREAM
from wakeful.contracts.notices import NoticeState
from wakeful.contracts.waking import CHECK_THREAD
from wakeful.decisions.notices import is_for_parent, notice_of
from wakeful.ports.approvals import ACTIONS
from wakeful.ports.notices import (
    NOTICES,
    PARKED_PROVIDERS,
    NoticeRow,
    ParkedProviderRow,
    RuntimeFilesRow,
    RuntimeHoldRow,
    ToldResultRow,
)
from wakeful.ports.wakes import RELOAD, WAKES, WakeRow
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, Need, RowKey, RowRule, Rules
from wakeful.store.tables.runtime_agents import NEEDS_AGENT, agent_row, is_outdated
from wakeful.store.tables.wakes import wake_row

OF_THE_RUNTIME: Final = (
    PackageReplaced,
    ProviderParked,
    ProviderDisappeared,
    ProviderAnswered,
    ChannelTroubled,
    HeartbeatChanged,
    RuntimePartFailed,
    StoreSizeNoticed,
)
"""Facts of the runtime's own stream, which belongs to no agent."""


def notice_id(agent_id: str, seq: int) -> str:
    """One id for one fact, for ever: whoever is sent a notice twice can tell."""
    return "ntc_" + hashlib.sha256(f"{agent_id}\0{seq}".encode("utf-8", "surrogatepass")).hexdigest()[:24]


def notice_subject(name: str) -> str:
    """What a notice's wake is called."""
    return f"notice:{name}"


def reminder_subject(action_id: str) -> str:
    return f"reminder:{action_id}"


def _raised(entry: LogEntry, event: Any, rows: AtHand) -> list[NoticeRow]:
    fact = entry.fact
    agent = agent_row(entry, rows)
    if not isinstance(event, OF_THE_RUNTIME) and agent is None:
        return []  # a run of the library has a caller, who is told
    if (fact.thread_id or "").startswith(CHECK_THREAD):
        return []  # the agent is woken and told
    if isinstance(event, StoreSizeNoticed) and entry.agent_id != RUNTIME_STREAM:
        return []  # of a version that told nobody
    if isinstance(event, AgentStateChanged) and agent is not None and is_outdated(event, agent):
        return []  # refused by the agent's own row
    if agent is not None and agent.ownership == "parent_supervised" and is_for_parent(event):
        return []
    found = notice_of(event)
    if found is None:
        return []
    return [
        NoticeRow(
            notice_id=notice_id(entry.agent_id, entry.seq),
            agent_id=entry.agent_id,
            thread_id=fact.thread_id or MAIN_THREAD,
            turn_id=fact.turn_id or "",
            kind=found.kind,
            cause=event.kind,
            about=found.about,
            words=found.words,
            created_seq=entry.seq,
            created_at=fact.at,
            state="pending",
            attempts=0,
            to="",
            error="",
            settled_at=None,
        )
    ]


def _attempted(entry: LogEntry, event: NoticeAttempted, rows: AtHand) -> list[NoticeRow]:
    row = rows.get(NOTICES, event.notice_id)
    if row is None or row.state != "pending":
        found = "there is none" if row is None else f"it is {row.state}"
        raise EventRefused(f"{event.kind} names notice {event.notice_id}, and {found}", "Leave it.")
    state: NoticeState = "pending"
    if event.outcome in ("delivered", "given_up", "not_sent"):
        state = event.outcome
    return [
        row._replace(
            state=state,
            attempts=max(row.attempts, event.attempt),
            to=event.to or row.to,
            error=event.error,
            settled_at=entry.fact.at if state != "pending" else None,
        )
    ]


def _of_notice(agent_id: str, fact: Fact, event: NoticeAttempted) -> Sequence[Need]:
    return (RowKey(NOTICES, (event.notice_id,)),)


CAUSES: Final = (
    ActionRequired,
    ActionReminded,
    ActionResolved,
    AgentStateChanged,
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
    ProviderParked,
    ProviderDisappeared,
    ResultChanged,
    RuntimePartFailed,
    StoreSizeNoticed,
    TimerMissed,
    TurnFailed,
    WaitCreated,
)
"""Facts that people may be told of."""
NOTICE_RULES: Rules = {
    **{cause: RowRule(_raised, NEEDS_AGENT) for cause in CAUSES},
    NoticeAttempted: RowRule(_attempted, (_of_notice,)),
}


# --- what holds the runtime --------------------------------------------------------------------------------------


def _control_changed(entry: LogEntry, event: RuntimeControlChanged, rows: AtHand) -> list[RuntimeHoldRow]:
    return [RuntimeHoldRow(entry.agent_id, event.control, event.changed_by, event.reason, entry.fact.at)]


def _parked(entry: LogEntry, event: ProviderParked, rows: AtHand) -> list[ParkedProviderRow]:
    known = rows.get(PARKED_PROVIDERS, event.provider)
    if (known is None) != (event.probes == 0):
        told = "is parked already" if known is not None else "is parked no more"
        raise EventRefused(f"the provider {event.provider} {told}", "Leave it.")
    since = known.since if known is not None else entry.fact.at
    return [
        ParkedProviderRow(
            provider=event.provider,
            agent_id=entry.agent_id,
            found_by=event.agent_id,
            model_ref=event.model_ref,
            failure_kind=event.failure_kind,
            message=event.message,
            since=since,
            probes=event.probes,
            probes_at=event.probes_at,
        )
    ]


def _unparked(entry: LogEntry, event: ProviderUnparked, rows: AtHand) -> list[Gone]:
    if rows.get(PARKED_PROVIDERS, event.provider) is None:
        raise EventRefused(f"the provider {event.provider} is not parked", "Leave it.")
    return [Gone((event.provider,))]


def _of_provider(agent_id: str, fact: Fact, event: ProviderParked | ProviderUnparked) -> Sequence[Need]:
    return (RowKey(PARKED_PROVIDERS, (event.provider,)),)


def _loaded(entry: LogEntry, event: FilesLoaded, rows: AtHand) -> list[RuntimeFilesRow]:
    told = tuple(each.model_dump(mode="json", exclude_defaults=True) for each in event.problems)
    return [RuntimeFilesRow(entry.agent_id, told, entry.fact.at)]


def _result_changed(entry: LogEntry, event: ResultChanged, rows: AtHand) -> list[ToldResultRow]:
    return [ToldResultRow(entry.agent_id, event.source, event.digest, entry.fact.at)]


RESULT_RULES: Rules = {ResultChanged: RowRule(_result_changed)}
FILES_RULES: Rules = {FilesLoaded: RowRule(_loaded)}
HOLD_OF_ALL_RULES: Rules = {RuntimeControlChanged: RowRule(_control_changed)}
PARKED_RULES: Rules = {
    ProviderParked: RowRule(_parked, (_of_provider,)),
    ProviderUnparked: RowRule(_unparked, (_of_provider,)),
}


# --- wakes -------------------------------------------------------------------------------------------------------


def _wake_raised(entry: LogEntry, event: Any, rows: AtHand) -> list[WakeRow]:
    """At once, whether the agent runs or not: it may be the pause itself that is told of."""
    return [
        WakeRow(
            entry.agent_id,
            MAIN_THREAD,
            notice_subject(row.notice_id),
            row.created_at,
            "notice",
            row.notice_id,
            row.created_at,
            entry.fact.at,
        )
        for row in _raised(entry, event, rows)
    ]


def _wake_attempted(entry: LogEntry, event: NoticeAttempted, rows: AtHand) -> list[WakeRow | Gone]:
    subject, at = notice_subject(event.notice_id), event.next_at
    if at is None:
        return [Gone((entry.agent_id, MAIN_THREAD, subject))]
    return [WakeRow(entry.agent_id, MAIN_THREAD, subject, at, "notice", event.notice_id, at, entry.fact.at)]


def _wake_parked(entry: LogEntry, event: ProviderParked, rows: AtHand) -> list[WakeRow]:
    at, subject = event.probes_at, f"provider:{event.provider}"
    probe = WakeRow(entry.agent_id, MAIN_THREAD, subject, at, "probe", event.provider, at, entry.fact.at)
    return [probe, *_wake_raised(entry, event, rows)]


def _wake_unparked(entry: LogEntry, event: ProviderUnparked, rows: AtHand) -> list[Gone]:
    return [Gone((entry.agent_id, MAIN_THREAD, f"provider:{event.provider}"))]


def _wake_reload(entry: LogEntry, event: FilesReloadRequested, rows: AtHand) -> list[WakeRow]:
    at = entry.fact.at
    return [WakeRow(entry.agent_id, MAIN_THREAD, RELOAD, at, "reload", event.requested_by, at, at)]


def _wake_loaded(entry: LogEntry, event: FilesLoaded, rows: AtHand) -> list[Gone]:
    return [Gone((entry.agent_id, MAIN_THREAD, RELOAD))]


def _wake_asked(entry: LogEntry, event: ActionRequired, rows: AtHand) -> list[WakeRow]:
    """One reminder, when half of the time is over."""
    if agent_row(entry, rows) is None:
        return []
    half = entry.fact.at + (event.expires_at - entry.fact.at) // 2
    reminder = wake_row(entry, rows, reminder_subject(event.action_id), half, "reminder", event.action_id)
    return [reminder, *_wake_raised(entry, event, rows)]


def _wake_reminded(entry: LogEntry, event: ActionReminded, rows: AtHand) -> list[WakeRow | Gone]:
    action = rows.get(ACTIONS, event.action_id)
    if entry.is_new and (action is None or action.status != "pending" or _reminder(entry, event, rows) is None):
        raise EventRefused(f"{event.action_id} is decided, or was reminded of", "Leave it.")
    return [*_reminder_gone(entry, event, rows), *_wake_raised(entry, event, rows)]


def _wake_resolved(entry: LogEntry, event: ActionResolved, rows: AtHand) -> list[WakeRow | Gone]:
    return [*_reminder_gone(entry, event, rows), *_wake_raised(entry, event, rows)]


def _reminder_gone(entry: LogEntry, event: ActionReminded | ActionResolved, rows: AtHand) -> list[Gone]:
    found = _reminder(entry, event, rows)
    return [] if found is None else [Gone(WAKES.key_of(found))]


def _reminder(entry: LogEntry, event: ActionReminded | ActionResolved, rows: AtHand) -> WakeRow | None:
    return rows.get(WAKES, entry.agent_id, entry.fact.thread_id or "", reminder_subject(event.action_id))


def _of_reminder(agent_id: str, fact: Fact, event: ActionReminded | ActionResolved) -> Sequence[Need]:
    return (RowKey(WAKES, (agent_id, fact.thread_id or "", reminder_subject(event.action_id))),)


def _of_action(agent_id: str, fact: Fact, event: ActionReminded) -> Sequence[Need]:
    return (RowKey(ACTIONS, (event.action_id,)),)


NOTICE_WAKES: Rules = {
    **{cause: RowRule(_wake_raised, NEEDS_AGENT) for cause in CAUSES},
    ActionRequired: RowRule(_wake_asked, NEEDS_AGENT),
    ActionReminded: RowRule(_wake_reminded, (_of_reminder, _of_action, *NEEDS_AGENT)),
    ActionResolved: RowRule(_wake_resolved, (_of_reminder, *NEEDS_AGENT)),
    ProviderParked: RowRule(_wake_parked, NEEDS_AGENT),
    ProviderUnparked: RowRule(_wake_unparked),
    FilesReloadRequested: RowRule(_wake_reload),
    FilesLoaded: RowRule(_wake_loaded),
    NoticeAttempted: RowRule(_wake_attempted),
}
