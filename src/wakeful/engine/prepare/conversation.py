"""The conversation that a turn goes on with: from memory while its thread is in use, else from a part of the log.

A turn that ends after enough facts puts the thread's conversation into pages (`thread.checkpointed`), so that no later
turn has to read what came before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import AssistantRecorded, HistoryImported, MessageAdmitted, ThreadCheckpointed
from wakeful.contracts.events.turns import Terminal
from wakeful.decisions.state import TurnState, after, left_by
from wakeful.decisions.thread_pages import PageMark, next_page
from wakeful.engine.state_loader import (
    FoldedTurn,
    ThreadFolder,
    beginning,
    empty_thread,
    is_seal,
    predecessor,
    start_of_window,
    told_after,
)
from wakeful.engine.turn_facts import call_ids_of, note_limit
from wakeful.engine.turn_messages import deferred_along
from wakeful.engine.turn_work import TurnPlace, TurnWork
from wakeful.engine.warm_threads import WarmThread, warm_threads
from wakeful.ports import Claim, Log, MessageLog, Store, TurnRow

CHECKPOINT_FACTS = 64
"""A turn that ends with more facts outside of pages makes a page of them."""
CONFIGS = 8
"""How many configurations a thread keeps in memory: most turns share one."""
NEWEST = 8
"""Turns of the thread that are looked at for the one before."""
LAST_FACTS = 4
"""Of the turn before that are looked at for pages: those are named right before its end."""


@dataclass(slots=True)
class Seal:
    """The page that a turn made at its end."""

    row: tuple[PageMark, ...] = ()
    """Up to that page. Empty: it made none."""
    from_end: int = 0
    """How many facts were written after the one that names it."""


class Conversation(NamedTuple):
    """What is known when a turn is taken up."""

    row: TurnRow
    """With the first event that the turn rests on."""
    folded: FoldedTurn
    of_turn: Sequence[StoredFact]
    """The turn's own facts."""
    messages: list[MessageAdmitted]
    """What it was begun with, and what was said to it since."""
    turn_index: int
    """The turn's number in its thread, from 1."""
    call_ids: int
    """How many call ids the log knows of."""
    seal: Seal


async def conversation_of(
    store: Store,
    row: TurnRow,
    claim: Claim,
    facts: Sequence[StoredFact] = (),
    newest: Sequence[TurnRow] | None = None,
) -> Conversation:
    """The conversation of a claimed turn. Raises TurnUnreadable when something that it rests on is gone.

    `facts` are the turn's own, where they are known and the newest of the stream; of a turn that is to be opened, the
    messages that it takes. `newest`: turns of the thread, where they were read since it was claimed.
    """
    if facts and row.agent_id != row.agent_name:  # a session that was made for this one turn
        return await _conversation(ThreadFolder(store, row, empty_thread()), row, claim, facts, 1, row.first_seq)
    rows = await store.turns_of_thread(row.agent_id, row.thread_id, last=NEWEST) if newest is None else [*newest]
    if not rows:  # the thread's first turn is about to be opened
        return await _conversation(ThreadFolder(store, row, empty_thread()), row, claim, facts, 1, row.first_seq)
    if facts and rows == [row]:  # the thread's first turn
        own = await _with_deferred(store, row, claim, facts)
        return await _conversation(ThreadFolder(store, row, empty_thread()), row, claim, own, 1, row.first_seq)
    before = predecessor(row, rows)
    if before is None and len(rows) >= NEWEST:
        rows = await store.turns_of_thread(row.agent_id, row.thread_id)
        before = predecessor(row, rows)
    waited = [turn for turn in rows if turn.first_seq < row.first_seq]
    since = [turn for turn in waited if before is None or turn.first_seq > before.first_seq]
    turn_index = 1 + len(since) + (before.turn_index if before is not None else 0)
    warm = None
    if not row.turn_index:
        warm = warm_threads.take(store, row, waited[-1] if waited else None)
    if warm is not None:
        own = facts or await store.read(row.agent_id, turn_id=row.turn_id)
        folding = ThreadFolder(store, row, warm.thread)
        own = await _with_deferred(store, row, claim, own)
        return await _conversation(folding, row, claim, own, turn_index, warm.window_for(row))
    # Until a turn has begun its row names itself alone; its conversation rests on the thread, from where the turn
    # before it began to read, from the newest pages, or from the newest summary on.
    window_from = row.window_from
    if not row.turn_index:
        known_from = min(turn.first_seq for turn in rows)
        window_from = known_from if before is None else await _known_from(store, before, [*since, row])
    recorded = await _thread_from(store, row, window_from, rows)
    if not row.turn_index:
        window_from = start_of_window(row, recorded)
        recorded = [entry for entry in recorded if entry.seq >= window_from]
    folding, own = await _cold(store, row, recorded, facts if claim.opens else ())
    own = await _with_deferred(store, row, claim, own)
    return await _conversation(folding, row, claim, own, turn_index, window_from)


async def _with_deferred(
    store: MessageLog, row: TurnRow, claim: Claim, own: Sequence[StoredFact]
) -> Sequence[StoredFact]:
    """With the deferred messages of the thread, where the turn is about to begin and did not take them itself."""
    if row.turn_index or claim.opens:
        return own
    return [*own, *await deferred_along(store, row, own)]


async def _conversation(
    folding: ThreadFolder, row: TurnRow, claim: Claim, own: Sequence[StoredFact], turn_index: int, window_from: int
) -> Conversation:
    """Take in the turn's own facts."""
    await folding.take(own)
    folded = folding.folded(max(entry.seq for entry in own))
    call_ids = len(folded.thread.call_ids.order)
    claim.seen = max(claim.seen, folded.last_seq)
    messages = [event for entry in own if isinstance(event := entry.fact.event, MessageAdmitted)]
    row = row._replace(window_from=window_from)
    return Conversation(row, folded, own, messages, turn_index, call_ids, Seal())


async def _known_from(store: Log, before: TurnRow, later: Sequence[TurnRow]) -> int:
    """Where to begin to read after a turn: at the pages that it made at its end, or where it began to read itself.

    A message that came before those pages were named is read with the turn it waited for.
    """
    if not before.is_open:
        last = await store.read(before.agent_id, after=before.last_seq - LAST_FACTS, turn_id=before.turn_id)
        sealed = next((entry.seq for entry in reversed(last) if is_seal(entry)), None)
        if sealed is not None and all(turn.first_seq > sealed for turn in later):
            return sealed
    return before.window_from


async def _thread_from(store: Log, row: TurnRow, first: int, newest: Sequence[TurnRow]) -> list[StoredFact]:
    """The thread's facts from one on. Where its newest turns are all there is to read, no other turn is looked for."""
    if newest[0].first_seq > first:
        return await store.read(row.agent_id, after=first - 1, thread_id=row.thread_id)
    found: list[StoredFact] = []
    for turn in newest:
        if turn.is_open or turn.last_seq >= first:
            found += await store.read(row.agent_id, after=first - 1, turn_id=turn.turn_id)
    return sorted(found, key=attrgetter("seq"))


async def _cold(
    store: Store, row: TurnRow, recorded: Sequence[StoredFact], messages: Sequence[StoredFact]
) -> tuple[ThreadFolder, Sequence[StoredFact]]:
    """The thread before the turn, and the turn's own facts; of one that is to be opened, its messages."""
    thread, facts = await beginning(store, row, recorded)
    own = messages or [entry for entry in facts if entry.fact.turn_id == row.turn_id]
    folding = ThreadFolder(store, row, thread)
    await folding.take(facts if messages else facts[: facts.index(own[0])])
    return folding, own


async def checkpoint(work: TurnWork, conversation: Conversation, facts: list[Fact]) -> None:
    """Put the conversation into pages, as far as it is not, and say so among the facts with which the turn ends.

    Not in a session of its own, which nobody goes on with, nor after a summary: the next turn reads from there on.
    """
    thread, state, row = conversation.folded.thread, work.state, conversation.row
    known = work.place.known
    outside = thread.facts + known.count + len(facts)
    is_folded = state.conversation.compactions != thread.so_far.conversation.compactions
    if outside <= CHECKPOINT_FACTS or is_folded or row.agent_id != row.agent_name:
        return
    call_ids = [*thread.call_ids.order[: conversation.call_ids], *known.call_ids]
    limits = [*known.limits]
    for fact in facts:
        if isinstance(fact.event, AssistantRecorded | HistoryImported):
            call_ids += call_ids_of(fact.event)
        note_limit(limits, StoredFact(row.agent_id, 0, fact))
    next_turn = after(left_by(state), {})
    page = next_page(next_turn, list(dict.fromkeys(call_ids)), thread.sealed, told_after(state, limits))
    ref = await work.place.store.put_blob(page.data, "application/octet-stream")
    ended = next(place for place, fact in enumerate(facts) if isinstance(fact.event, Terminal))
    named = ThreadCheckpointed(conversation_ref=ref, items=len(state.conversation.items), with_turn=True)
    facts.insert(ended, work.fact(named))
    conversation.seal.row, conversation.seal.from_end = page.kept_as(ref.digest), len(facts) - 1 - ended


def keep_warm(place: TurnPlace, state: TurnState, conversation: Conversation) -> None:
    """Keep what the turn left, now that its end is stored. After a summary the log is read once: it begins anew."""
    thread, row, seal, known = conversation.folded.thread, conversation.row, conversation.seal, place.known
    if state.conversation.compactions != thread.so_far.conversation.compactions:
        return
    state.configs = dict(list(state.configs.items())[-CONFIGS:])
    thread.so_far = left_by(state)
    thread.config = state.config or thread.config
    thread.facts += known.count
    thread.call_ids.cut(conversation.call_ids)  # replies that were lost are not in the log
    thread.call_ids.update(known.call_ids)
    thread.limits = known.limits
    window_from = row.window_from
    if seal.row:
        thread.sealed, thread.facts = seal.row, 0
        window_from = known.last_seq - seal.from_end
    kept = WarmThread(thread, row.turn_id, known.last_seq, window_from, row.first_seq)
    warm_threads.keep(place.store, row, kept)
