"""The messages of a turn that stand elsewhere in the log: taken from the queue, or deferred and shown with it.

A fact of a turn carries the turn's id. A message that was admitted without one is found by its row, and from the turn's
start on it is read as if it had been said to the turn.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from weakref import WeakKeyDictionary

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import MessageAdmitted, TurnStarted
from wakeful.decisions.intake import MOST_TAKEN, DeferredMessage, shown_along
from wakeful.ports import MessageLog, TurnRow
from wakeful.ports.mailbox import MessageRow


async def admitted_message(store: MessageLog, message_id: str) -> StoredFact | None:
    """The event that admitted a message; None: there is none."""
    row = await store.message(message_id)
    return None if row is None else await _admission(store, row)


async def _admission(store: MessageLog, row: MessageRow) -> StoredFact | None:
    found = await store.read(row.agent_id, after=row.admitted_seq - 1, limit=1)
    is_it = bool(found) and isinstance(found[0].fact.event, MessageAdmitted)
    return found[0] if is_it else None


MOST_NEW = 1_000
_new: "WeakKeyDictionary[MessageLog, OrderedDict[str, StoredFact]]" = WeakKeyDictionary()
"""Of each store, messages that were admitted here lately and that no turn has taken yet."""


def keep_new(store: MessageLog, row: MessageRow, fact: Fact) -> None:
    """A message was admitted and is safe: whoever takes it from the queue in this process need not read it."""
    kept = _new.get(store)
    if kept is None:
        kept = _new[store] = OrderedDict()
    kept[row.message_id] = StoredFact(row.agent_id, row.admitted_seq, fact)
    while len(kept) > MOST_NEW:
        kept.popitem(last=False)


async def queued_messages(store: MessageLog, rows: Iterable[MessageRow]) -> list[StoredFact]:
    """The events that admitted messages of a queue."""
    kept = _new.get(store) or OrderedDict()
    found = [kept.get(row.message_id) or await _admission(store, row) for row in rows]
    return [entry for entry in found if entry is not None]


def forget_new(store: MessageLog, messages: Iterable[StoredFact]) -> None:
    """A turn has these."""
    kept = _new.get(store) or OrderedDict()
    for entry in messages:
        if isinstance(entry.fact.event, MessageAdmitted):
            kept.pop(entry.fact.event.message_id, None)


async def admitted_messages(store: MessageLog, message_ids: Iterable[str]) -> list[StoredFact]:
    found = [await admitted_message(store, message_id) for message_id in message_ids]
    return [entry for entry in found if entry is not None]


def of_turn(turn_id: str, messages: Iterable[StoredFact]) -> list[StoredFact]:
    """Messages of the queue as facts of the turn that takes them."""
    return [entry._replace(fact=replace(entry.fact, turn_id=turn_id)) for entry in messages]


async def with_messages(store: MessageLog, turn_id: str, facts: Sequence[StoredFact]) -> list[StoredFact]:
    """A turn's facts, with the messages that its start names and that are not among them, right before that."""
    for place, entry in enumerate(facts):
        if isinstance(entry.fact.event, TurnStarted):
            missing = _missing(entry.fact.event, facts[:place])
            if not missing:
                break
            return [*facts[:place], *of_turn(turn_id, await admitted_messages(store, missing)), *facts[place:]]
    return list(facts)


def _missing(started: TurnStarted, facts: Sequence[StoredFact]) -> Collection[str]:
    there = {entry.fact.event.message_id for entry in facts if isinstance(entry.fact.event, MessageAdmitted)}
    return [name for name in started.message_ids if name not in there]


def before_start(
    turn_id: str, recorded: Sequence[StoredFact], known: Iterable[StoredFact], unwritten: Iterable[Fact]
) -> list[StoredFact]:
    """A thread's facts as they are stored, and the messages that a start takes which is still to be written."""
    started = next((fact.event for fact in unwritten if isinstance(fact.event, TurnStarted)), None)
    if started is None:
        return list(recorded)
    missing = _missing(started, [entry for entry in recorded if entry.fact.turn_id == turn_id])
    taken = {event.message_id: each for each in known if isinstance(event := each.fact.event, MessageAdmitted)}
    return [*recorded, *(taken[name] for name in missing)]


async def read_turn(store: MessageLog, row: TurnRow) -> list[StoredFact]:
    """All facts of a turn and the messages that it took, in the order of the log."""
    return await in_log_order(store, row.turn_id, await store.read(row.agent_id, turn_id=row.turn_id))


async def in_log_order(store: MessageLog, turn_id: str, facts: Sequence[StoredFact]) -> list[StoredFact]:
    """A turn's facts and the messages that it took, each where it stands in the log."""
    return sorted(await with_messages(store, turn_id, facts), key=attrgetter("seq"))


async def deferred_messages(
    store: MessageLog, agent_id: str, thread_id: str, lead: MessageAdmitted | None
) -> list[tuple[StoredFact, DeferredMessage]]:
    """The deferred messages that the next turn of a thread may take, the first deadline first: those that it shows with
    `lead`; without one, the first of all and what is shown with that. Only these are read, however many wait."""
    wakes = await store.deferrals(agent_id, thread_id)
    if not wakes:
        return []
    rows = {row.message_id: row for row in await store.deferred(agent_id, thread_id)}
    found: list[tuple[StoredFact, DeferredMessage]] = []
    shown = 0
    for wake in wakes:
        row = rows.get(wake.subject)
        if row is None or (lead is not None and row.key is not None):
            continue  # a turn took it meanwhile, or its caller waits for a turn of its own
        entry = await _admission(store, row)
        if entry is None or not isinstance(entry.fact.event, MessageAdmitted):
            continue
        message = DeferredMessage(entry.fact.event, wake.due_at or 0)
        if lead is None:
            lead = message.message
            found.append((entry, message))
        elif shown_along(lead, [message]):
            found.append((entry, message))
            shown += 1
        if shown == MOST_TAKEN or lead.workflow_ref is not None:
            break
    return found


async def deferred_along(store: MessageLog, row: TurnRow, own: Sequence[StoredFact]) -> list[StoredFact]:
    """Deferred messages that a turn which is about to begin shows with its own."""
    lead = next((entry.fact.event for entry in own if isinstance(entry.fact.event, MessageAdmitted)), None)
    if lead is None:
        return []
    return of_turn(
        row.turn_id, [entry for entry, _ in await deferred_messages(store, row.agent_id, row.thread_id, lead)]
    )
