"""The store, seen as clients see it: a turn's tree and its wire messages.

Everything is made from the log when it is asked for. What a turn's tools declare as secret is known before anything is
shown, and so are arguments that are too long to stand in their fact.
"""

from collections.abc import Iterable

from wakeful.contracts.envelope import StoredFact
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.engine.turn_messages import read_turn
from wakeful.ports import Store, TurnRow
from wakeful.service.queries.turns import EventReader, find_turn
from wakeful.views import tree
from wakeful.views.tree import ExecutionTreeSnapshot
from wakeful.views.wire import WireView
from wakeful.views.wire_messages import WireReplay


async def execution_tree(store: Store, turn_id: str | None, *, keys: Iterable[str] = ()) -> ExecutionTreeSnapshot:
    """The tree of a turn, or of the newest one, while it goes on and ever after. Raises TurnNotFound."""
    row = await find_turn(store, turn_id)
    facts = await read_turn(store, row)
    return tree.execution_tree(facts, row.turn_id, await _secrets(store, facts, keys))


async def wire_messages(
    store: Store, turn_id: str | None, after_seq: int = 0, *, keys: Iterable[str] = ()
) -> WireReplay:
    """What the client of a turn missed that has everything up to `after_seq`. Raises TurnNotFound."""
    row = await find_turn(store, turn_id)
    facts = await read_turn(store, row)
    view = WireView(row.turn_id, secrets=await _secrets(store, facts, keys))
    missed = [message for entry in facts for message in view.feed(entry) if entry.seq > after_seq]
    return WireReplay(
        messages=tuple(missed),
        replay_incomplete=is_cut(row, facts, after_seq),
        last_event_seq=max(after_seq, facts[-1].seq if facts else 0),
        ended=view.ended or not row.is_open,
    )


async def _secrets(store: Store, facts: list[StoredFact], keys: Iterable[str]) -> RunSecrets:
    reader = EventReader(store, keys=keys)
    await reader.learn(facts)
    return reader.secrets


def is_cut(row: TurnRow, facts: list[StoredFact], after_seq: int) -> bool:
    """The beginning of the turn is gone from the log, and the client has not seen all of what is gone."""
    first = facts[0].seq if facts else row.last_seq + 1
    return first > row.first_seq and after_seq < first - 1
