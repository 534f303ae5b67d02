"""Rules of `runtime_agents`: an agent is created once, and a change that takes another one back holds only while that
one is the newest.
"""

from collections.abc import Sequence
from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AgentNotFound, AgentStopped, EventRefused
from wakeful.contracts.events import (
    AgentArchived,
    AgentCreated,
    AgentDeleted,
    AgentModelChanged,
    AgentRevised,
    AgentStateChanged,
    MessageAdmitted,
    WakeHintStored,
    WakeMoved,
    WorkItemEnqueued,
)
from wakeful.ports.mailbox import BUSY_THREADS, BUSY_THREADS_OF
from wakeful.ports.runtime_agents import RUNTIME_AGENTS, RuntimeAgentRow
from wakeful.ports.wakes import OF_AGENT, WAKES
from wakeful.store.tables.row_rules import AtHand, LogEntry, Need, RowKey, RowList, RowRule, Rules


def agent_row(entry: LogEntry, rows: AtHand) -> RuntimeAgentRow | None:
    """The agent whose fact it is; None: it belongs to no runtime."""
    return rows.get(RUNTIME_AGENTS, entry.agent_id)


def _of_agent(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return (RowKey(RUNTIME_AGENTS, (agent_id,)),)


NEEDS_AGENT = (_of_agent,)


def is_outdated(event: AgentStateChanged, row: RuntimeAgentRow) -> bool:
    return event.instead_of is not None and event.instead_of != row.changed_at


def _created(entry: LogEntry, event: AgentCreated, rows: AtHand) -> list[RuntimeAgentRow]:
    there = agent_row(entry, rows)
    if there is not None:
        name = entry.agent_id
        known = f"there is an agent {name} already" if there.deleted_at is None else f"agent {name} was deleted"
        raise EventRefused(known, "Give the new agent another name.")
    return [
        RuntimeAgentRow(
            agent_id=entry.agent_id,
            kind=event.agent_kind,
            visibility=event.visibility,
            ownership=event.ownership,
            profile_preset=event.profile_preset,
            parent=event.lineage_parent_agent_id,
            source=event.source,
            revision="",
            revised_at=None,
            created_at=entry.fact.at,
            control="running",
            cause="operator",
            changed_by=event.created_by,
            reason="",
            changed_at=entry.fact.at,
            resumes_at=None,
            model_override=None,
            model_changed_at=None,
            archived_at=None,
            deleted_at=None,
        )
    ]


def _revised(entry: LogEntry, event: AgentRevised, rows: AtHand) -> list[RuntimeAgentRow]:
    row = _known(entry, rows)
    return [row._replace(revision=event.revision, source=event.source, revised_at=entry.fact.at)]


def _state_changed(entry: LogEntry, event: AgentStateChanged, rows: AtHand) -> list[RuntimeAgentRow]:
    row = _known(entry, rows)
    if is_outdated(event, row):
        raise EventRefused(
            f"agent {entry.agent_id} was {row.control} by {row.changed_by} meanwhile",
            "Look at the agent again: somebody else decided about it.",
        )
    if entry.is_new and row.control == "stopped" and event.control == "paused":
        raise EventRefused(f"agent {entry.agent_id} is stopped: a pause would let it take messages", "Resume it first.")
    is_of_operator = row.control == "paused" and row.cause == "operator"
    if entry.is_new and is_of_operator and event.control == "paused" and event.cause != "operator":
        raise EventRefused(f"agent {entry.agent_id} was paused by {row.changed_by}", "It stays so until that is over.")
    return [
        row._replace(
            control=event.control,
            cause=event.cause,
            changed_by=event.changed_by,
            reason=event.reason,
            changed_at=max(entry.fact.at, row.changed_at + 1),
            resumes_at=event.resumes_at if event.control == "paused" else None,
            archived_at=None if event.control == "running" else row.archived_at,
        )
    ]


def _wake_moved(entry: LogEntry, event: WakeMoved, rows: AtHand) -> list[RuntimeAgentRow]:
    """The end of its pause."""
    row = agent_row(entry, rows) if event.cause == "resumption" else None
    return [] if row is None or row.resumes_at is None else [row._replace(resumes_at=event.moved_to)]


def _model_changed(entry: LogEntry, event: AgentModelChanged, rows: AtHand) -> list[RuntimeAgentRow]:
    return [_known(entry, rows)._replace(model_override=event.model, model_changed_at=entry.fact.at)]


def _archived(entry: LogEntry, event: AgentArchived, rows: AtHand) -> list[RuntimeAgentRow]:
    return [_known(entry, rows)._replace(archived_at=entry.fact.at)]


def _deleted(entry: LogEntry, event: AgentDeleted, rows: AtHand) -> list[RuntimeAgentRow]:
    """Nothing that was accepted is deleted with it, also where it came in the same moment."""
    wakes = rows.list(WAKES, OF_AGENT, entry.agent_id)
    is_open = any(row.cause in _OWED for row in wakes) or rows.list(BUSY_THREADS, BUSY_THREADS_OF, entry.agent_id)
    if entry.is_new and is_open:
        raise EventRefused(f"something of agent {entry.agent_id} is open", "Let it finish, or end it first.")
    return [_known(entry, rows)._replace(deleted_at=entry.fact.at)]


_OWED = ("message", "deferral", "hint")
"""Why an agent is woken that was sent something."""


def _of_open(agent_id: str, fact: Fact, event: AgentDeleted) -> Sequence[Need]:
    return (RowList(BUSY_THREADS, BUSY_THREADS_OF, (agent_id,)), RowList(WAKES, OF_AGENT, (agent_id,)))


def _message_admitted(entry: LogEntry, event: MessageAdmitted, rows: AtHand) -> list[RuntimeAgentRow]:
    """A stopped agent takes nothing from outside. What its own timers, tasks and children say is kept for it."""
    return [] if event.admission_context == "runtime_owned" else _from_outside(entry, event, rows)


def _from_outside(entry: LogEntry, event: MessageAdmitted | WakeHintStored, rows: AtHand) -> list[RuntimeAgentRow]:
    _refuse_stopped(entry, rows, "it takes no messages, and waking it changes nothing")
    return []


def _item_enqueued(entry: LogEntry, event: WorkItemEnqueued, rows: AtHand) -> list[RuntimeAgentRow]:
    _refuse_stopped(entry, rows, "it takes no work items")
    return []


def _refuse_stopped(entry: LogEntry, rows: AtHand, what: str) -> None:
    row = agent_row(entry, rows)
    if row is not None and row.control == "stopped" and entry.is_new:
        if row.deleted_at is not None:
            raise AgentNotFound(f"agent {entry.agent_id} was deleted", "Create another one, with a name of its own.")
        done = "archived" if row.archived_at is not None else "stopped"
        raise AgentStopped(
            f"agent {entry.agent_id} was {done} by {row.changed_by}: {what}",
            f"Let it run again first: wakeful agent resume {entry.agent_id}",
        )


def _known(entry: LogEntry, rows: AtHand) -> RuntimeAgentRow:
    row = agent_row(entry, rows)
    if row is None or row.deleted_at is not None:
        raise EventRefused(f"{entry.agent_id} is not an agent of a runtime", "Create it first.")
    return row


RUNTIME_AGENT_RULES: Rules = {
    AgentCreated: RowRule(_created, NEEDS_AGENT),
    AgentRevised: RowRule(_revised, NEEDS_AGENT),
    AgentStateChanged: RowRule(_state_changed, NEEDS_AGENT),
    AgentModelChanged: RowRule(_model_changed, NEEDS_AGENT),
    AgentArchived: RowRule(_archived, NEEDS_AGENT),
    AgentDeleted: RowRule(_deleted, (*NEEDS_AGENT, _of_open)),
    MessageAdmitted: RowRule(_message_admitted, NEEDS_AGENT),
    WakeHintStored: RowRule(_from_outside, NEEDS_AGENT),
    WakeMoved: RowRule(_wake_moved, NEEDS_AGENT),
    WorkItemEnqueued: RowRule(_item_enqueued, NEEDS_AGENT),
}
