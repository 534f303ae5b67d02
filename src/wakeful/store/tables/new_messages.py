"""New messages of queues, many at once: what the rules of `message.admitted` come to for them, in one pass.

The rules are asked fact by fact, and most of what they look at is the same for all messages that reach an agent in one
transaction. Here it is looked at once. Where anything is out of the ordinary the rules decide; a test holds what is
said here to what they say.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import MessageAdmitted
from wakeful.contracts.waking import CHECK_THREAD
from wakeful.ports.mailbox import BUSY_THREADS, MESSAGES, BusyThread, MessageRow
from wakeful.ports.operator_feed import FEED, FeedRow
from wakeful.ports.runtime_agents import RUNTIME_AGENTS
from wakeful.ports.tables import Table, TableKey
from wakeful.ports.threads import THREADS, ThreadRow
from wakeful.store.tables.mailbox import message_row
from wakeful.store.tables.operator_feed import feed_row
from wakeful.store.tables.row_rules import Need, RowKey
from wakeful.views.presentation.placements import feed_placement


def is_new_message(facts: Sequence[Fact]) -> bool:
    """Is this one message for a thread's queue, and nothing else? It has an id of its own: one with a key may be there
    already."""
    if len(facts) > 1:
        return False
    fact = facts[0]
    event = fact.event
    return isinstance(event, MessageAdmitted) and fact.turn_id is None and event.key is None


def needs_of_new_messages(agent_id: str, facts: Iterable[Fact]) -> list[Need]:
    """The agent and the threads: of each message there is no row yet."""
    needs: list[Need] = [RowKey(RUNTIME_AGENTS, (agent_id,))]
    for thread_id in dict.fromkeys([fact.thread_id or "" for fact in facts]):
        needs += [RowKey(THREADS, (agent_id, thread_id)), RowKey(BUSY_THREADS, (agent_id, thread_id))]
    return needs


def rows_of_new_messages(
    facts: Sequence[Fact], after: int, agent_id: str, found: Mapping[Need, Any]
) -> dict[Table[Any], dict[TableKey, Any]] | None:
    """The rows that these change, given the ids of their messages are new. None: the rules have to be asked.

    That is so for an agent that is of no runtime, or stopped, for a workflow's run, and for a thread in which nothing
    is open: its first message makes it due.
    """
    agent = found[RowKey(RUNTIME_AGENTS, (agent_id,))]
    if agent is None or agent.control == "stopped":
        return None
    placement = feed_placement(facts[0])  # the same for every message
    messages: dict[TableKey, MessageRow] = {}
    feed: dict[TableKey, FeedRow] = {}
    came: dict[str, list[int]] = {}
    """When messages came, by thread."""
    for seq, fact in enumerate(facts, after + 1):
        event, thread_id, at = fact.event, fact.thread_id or "", fact.at
        assert isinstance(event, MessageAdmitted)
        if event.workflow_ref is not None:
            return None
        messages[event.message_id,] = message_row(agent_id, seq, fact, event, "queued")
        if placement is not None and not thread_id.startswith(CHECK_THREAD):
            feed[agent_id, seq] = feed_row(agent_id, seq, fact, placement)
        came.setdefault(thread_id, []).append(at)
    threads: dict[TableKey, ThreadRow] = {}
    busy: dict[TableKey, BusyThread] = {}
    for thread_id, times in came.items():
        key = agent_id, thread_id
        thread, open_in_it = found[RowKey(THREADS, key)], found[RowKey(BUSY_THREADS, key)]
        if thread is None or open_in_it is None:
            return None
        threads[key] = thread._replace(active_at=max(thread.active_at, *times))
        busy[key] = open_in_it._replace(queued=open_in_it.queued + len(times))
    rows: dict[Table[Any], dict[TableKey, Any]] = {THREADS: threads, MESSAGES: messages, BUSY_THREADS: busy}
    return {**rows, FEED: feed} if feed else rows
