"""One approval or question, with what stands round it."""

from collections.abc import Iterable

from wakeful.engine.run_request import Engine
from wakeful.ports import Store
from wakeful.ports.notices import NOTICES, NOTICES_OF_AGENT, NoticeRow
from wakeful.service.commands.approvals import show
from wakeful.service.queries.status import messages_behind
from wakeful.service.queries.views import execution_tree
from wakeful.views.approval_details import ApprovalDetails, ApprovalNotice, read_before

NOTICES_LOOKED_AT = 50
"""Of the agent, from the one that the question raised on: a reminder is among them."""


async def approval_details(engine: Engine, approval_id: str, *, keys: Iterable[str] = ()) -> ApprovalDetails:
    """Raises ApprovalNotFound, with near names."""
    store = engine.store
    record = await show(engine, approval_id)
    row = await store.action(record.approval_id)
    assert row is not None
    tree = await execution_tree(store, row.turn_id, keys=keys)
    threads = await store.busy_threads(row.agent_id) if record.status == "pending" else []
    queued = sum(each.queued for each in threads if each.thread_id == row.thread_id)
    return ApprovalDetails(
        **dict(record),
        told=await _told(store, row.agent_id, row.required_seq, record.approval_id),
        had_read=read_before(tree.nodes, row.call_id),
        behind=await messages_behind(store, row.agent_id, row.thread_id) if queued else (),
        waits_behind=queued,
    )


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
