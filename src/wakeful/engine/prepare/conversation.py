"""The conversation that a turn goes on with: from memory while its thread is in use, else from a part of the log.

Every few hundred facts a turn that begins puts the thread's conversation into pages (`thread.checkpointed`), so that no
later turn has to read what came before.
"""

from collections.abc import Sequence
from typing import NamedTuple

from wakeful.contracts.envelope import Recorded
from wakeful.contracts.events import ThreadCheckpointed
from wakeful.decisions.state import TurnState
from wakeful.engine.state_loader import (
    Folded,
    ThreadFolder,
    begun_thread,
    mark_sealed,
    predecessor,
    seal,
    start_of_window,
    turn_after_turn,
)
from wakeful.engine.turn_work import TurnPlace
from wakeful.engine.warm_threads import WarmThread, warm_threads
from wakeful.ports import Claim, Store, TurnRow

CHECKPOINT_FACTS = 256
"""A turn that begins after so many facts outside of pages makes a page of them."""
CONFIGS = 8
"""How many configurations a thread keeps in memory: most turns share one."""
NEWEST = 8
"""Turns of the thread that are looked at for the one before."""


class Conversation(NamedTuple):
    """What is known when a turn is taken up."""

    row: TurnRow
    """With the first event that the turn rests on."""
    folded: Folded
    of_turn: list[Recorded]
    """The turn's own facts."""
    turn_index: int
    """The turn's number in its thread, from 1."""
    next_from: int
    """Where the thread's next turn begins to read, should it have to."""
    call_ids: int
    """How many call ids the log knows of."""
    checkpoint: ThreadCheckpointed | None = None
    """The conversation before this turn was put into pages: to be said with the turn's first facts."""


async def conversation_of(store: Store, row: TurnRow, claim: Claim) -> Conversation:
    """The conversation of a claimed turn. Raises TurnUnreadable when something that it rests on is gone."""
    rows = await store.turns_of_thread(row.agent_id, row.thread_id, last=NEWEST)
    before = predecessor(row, rows)
    if before is None and len(rows) == NEWEST:
        rows = await store.turns_of_thread(row.agent_id, row.thread_id)
        before = predecessor(row, rows)
    waited = [turn for turn in rows if turn.first_seq < row.first_seq]
    since = [turn for turn in waited if before is None or turn.first_seq > before.first_seq]
    turn_index = 1 + len(since) + (before.turn_index if before is not None else 0)
    warm = None
    if not row.turn_index:
        warm = warm_threads.take(store, row, waited[-1] if waited else None)
    if warm is not None:
        folding, own, window_from = await _warm(store, row, warm)
    else:
        # Until a turn has begun its row names itself alone; its conversation rests on the thread, from where the turn
        # before it began to read, from the newest pages, or from the newest summary on.
        known_from = min(turn.first_seq for turn in rows) if before is None else before.window_from
        window_from = row.window_from if row.turn_index else known_from
        recorded = await store.read(row.agent_id, after=window_from - 1, thread_id=row.thread_id)
        if not row.turn_index:
            window_from = start_of_window(row, recorded)
            recorded = [entry for entry in recorded if entry.seq >= window_from]
        folding, own = await _cold(store, row, recorded)
    checkpoint, thread = None, folding.thread
    next_from = window_from
    said = next((event for entry in own if isinstance(event := entry.fact.event, ThreadCheckpointed)), None)
    if said is not None:
        next_from = row.first_seq
        mark_sealed(thread, said.conversation_ref.digest)
    elif not row.turn_index and thread.facts > CHECKPOINT_FACTS:
        next_from = row.first_seq
        checkpoint = await seal(store, thread)
    await folding.take(own)
    folded = folding.folded(own[-1].seq)
    call_ids = len(folded.thread.call_ids.order)
    claim.seen = max(claim.seen, folded.last_seq)
    return Conversation(row._replace(window_from=window_from), folded, own, turn_index, next_from, call_ids, checkpoint)


async def _warm(store: Store, row: TurnRow, warm: WarmThread) -> tuple[ThreadFolder, list[Recorded], int]:
    own = await store.read(row.agent_id, turn_id=row.turn_id)
    return ThreadFolder(store, row, warm.thread), own, warm.window_from


async def _cold(store: Store, row: TurnRow, recorded: Sequence[Recorded]) -> tuple[ThreadFolder, list[Recorded]]:
    ordered = turn_after_turn(recorded)
    own = [entry for entry in ordered if entry.fact.turn_id == row.turn_id]
    folding = ThreadFolder(store, row, await begun_thread(store, ordered))
    await folding.take(ordered[: ordered.index(own[0])])
    return folding, own


def keep_warm(place: TurnPlace, state: TurnState, conversation: Conversation) -> None:
    """Keep what the turn left, now that its end is stored. After a summary the log is read once: it begins anew."""
    thread, known = conversation.folded.thread, place.known
    if state.conversation.compactions != thread.state.conversation.compactions:
        return
    state.configs = dict(list(state.configs.items())[-CONFIGS:])
    thread.state = state
    thread.config = state.config or thread.config
    thread.facts += known.count
    thread.call_ids.cut(conversation.call_ids)  # replies that were lost are not in the log
    thread.call_ids.update(known.call_ids)
    thread.limits = [*thread.limits, *known.limits]
    warm_threads.keep(place.store, conversation.row, thread, known.last_seq, conversation.next_from)
