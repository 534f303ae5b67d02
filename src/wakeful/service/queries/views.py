"""The store, seen as clients see it: a turn's tree, its wire messages, and an approval with what stands round it.

Everything is made from the log when it is asked for. What a turn's tools declare as secret is known before anything is
shown, and so are arguments that are too long to stand in their fact.
"""

from collections.abc import Iterable
from typing import Any

from wakeful.contracts.approvals import Approval
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import AssistantRecorded
from wakeful.decisions.redaction import declared_by, redact, stable_hash
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.engine.run_request import Engine
from wakeful.engine.turn_messages import read_turn
from wakeful.gate.large_content import arguments_of
from wakeful.ports import Store, TurnRow
from wakeful.ports.notices import NOTICES, NOTICES_OF_AGENT, NoticeRow
from wakeful.service.commands.approvals import show
from wakeful.service.queries.status import messages_behind
from wakeful.service.queries.turns import EventReader, find_turn, told_turn
from wakeful.views import tree
from wakeful.views.approval_details import ApprovalDetails, ApprovalNotice, read_before
from wakeful.views.presentation.call_lines import is_recorded_whole
from wakeful.views.tree import ExecutionTreeSnapshot
from wakeful.views.wire import WireView
from wakeful.views.wire_messages import WireReplay

NOTICES_LOOKED_AT = 50
"""Of the agent, from the one that the question raised on: a reminder is among them."""


async def execution_tree(store: Store, turn_id: str | None, *, keys: Iterable[str] = ()) -> ExecutionTreeSnapshot:
    """The tree of a turn, or of the newest one, while it goes on and ever after. Raises TurnNotFound."""
    return await _tree(store, await told_turn(store, turn_id), keys)


async def _tree(store: Store, row: TurnRow, keys: Iterable[str]) -> ExecutionTreeSnapshot:
    facts = await read_turn(store, row)
    return tree.execution_tree(facts, row.turn_id, await _secrets(store, facts, keys))


async def approval_details(engine: Engine, approval_id: str, *, keys: Iterable[str] = ()) -> ApprovalDetails:
    """Raises ApprovalNotFound, with near names."""
    store = engine.store
    record = await show(engine, approval_id)
    row = await store.action(record.approval_id)
    assert row is not None
    facts = await read_turn(store, await find_turn(store, row.turn_id))  # also where its thread was deleted
    secrets = await _secrets(store, facts, keys)
    done = tree.execution_tree(facts, row.turn_id, secrets)
    threads = await store.busy_threads(row.agent_id) if record.status == "pending" else []
    queued = sum(each.queued for each in threads if each.thread_id == row.thread_id)
    return ApprovalDetails(
        **{**dict(record), "arguments": await _whole_arguments(store, facts, record, secrets)},
        told=await _told(store, row.agent_id, row.required_seq, record.approval_id),
        had_read=read_before(done.nodes, row.call_id),
        behind=await messages_behind(store, row.agent_id, row.thread_id) if queued else (),
        waits_behind=queued,
    )


async def _whole_arguments(
    store: Store, facts: list[StoredFact], record: Approval, secrets: RunSecrets
) -> dict[str, Any]:
    """Arguments that are too long for the record are read from where they are kept: those that its hash is of."""
    if is_recorded_whole(record.arguments):
        return record.arguments
    items = (entry.fact.event.item for entry in facts if isinstance(entry.fact.event, AssistantRecorded))
    for part in (part for item in items for part in item.calls if part.call_id == record.call_id):
        given = await arguments_of(part, store.get_blob) or {}
        own = {name: value for name, value in given.items() if name not in record.injected_args}
        safe: dict[str, Any] = redact(own, declared_by(secrets.declarations.get(part.name)))
        if stable_hash(safe) == record.arguments_sha256:
            return dict(secrets.hide_in(safe))
    return record.arguments


async def _told(store: Store, agent: str, seq: int, about: str) -> ApprovalNotice | None:
    """Of its notice and its reminders the newest that was delivered, else the newest."""
    rows = await store.list_rows(NOTICES, NOTICES_OF_AGENT, agent, after=(seq - 1,), limit=NOTICES_LOOKED_AT)
    mine: list[NoticeRow] = [row for row in rows if row.about == about]
    if not mine:
        return None
    row = next((each for each in reversed(mine) if each.state == "delivered"), mine[-1])
    return ApprovalNotice(
        notice_id=row.notice_id,
        state=row.state,
        to=row.to,
        settled_at=None if row.settled_at is None else row.settled_at / 1e6,
        error=row.error,
    )


async def wire_messages(
    store: Store, turn_id: str | None, after_seq: int = 0, *, keys: Iterable[str] = ()
) -> WireReplay:
    """What the client of a turn missed that has everything up to `after_seq`. Raises TurnNotFound."""
    row = await told_turn(store, turn_id)
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
