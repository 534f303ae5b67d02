"""Notices, and whether everything is held, for readers."""

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import CursorGone, InvalidRequest
from wakeful.contracts.events import NoticeRequested
from wakeful.engine.run_request import Engine
from wakeful.ports import Store
from wakeful.ports.notices import NoticeRow, RuntimeHoldRow
from wakeful.service.commands.agents import agent_named
from wakeful.service.queries.known_agents import check_known
from wakeful.views.runtime_records import NoticeRecord, RuntimeHold

MOST = 1_000


async def notices_of(store: Store, agent: str | None, limit: int, after: str | None = None) -> list[NoticeRecord]:
    """The newest first. Raises InvalidRequest for a limit that is none, CursorGone for a notice that is not there, and
    AgentNotFound."""
    if not 0 < limit <= MOST:
        raise InvalidRequest(f"limit={limit}", f"Give 1 to {MOST:,}.")
    last = None if after is None else await store.notice(after)
    if after is not None and last is None:
        raise CursorGone(f"there is no notice {after} to continue after", "Begin again with the newest.")
    rows = await store.notices(agent, limit=limit, after=last)
    if agent is not None and not rows:
        await check_known(store, agent)
    return [notice_record(row) for row in rows]


async def request_test(engine: Engine, agent: str, *, by: str) -> None:
    """Have a test notice sent by the runtime that runs the agent. Raises AgentNotFound."""
    await agent_named(engine.store, agent)
    await engine.store.admit(agent, [Fact(NoticeRequested(requested_by=by), engine.clock.now())])


def notice_record(row: NoticeRow) -> NoticeRecord:
    return NoticeRecord(
        notice_id=row.notice_id,
        agent=row.agent_id,
        thread=row.thread_id,
        turn_id=row.turn_id or None,
        kind=row.kind,
        cause=row.cause,
        about=row.about or None,
        text=row.words,
        created_at=row.created_at / 1e6,
        state=row.state,
        attempts=row.attempts,
        to=row.to,
        error=row.error,
        settled_at=None if row.settled_at is None else row.settled_at / 1e6,
    )


def hold_record(row: RuntimeHoldRow) -> RuntimeHold:
    return RuntimeHold(
        control=row.control, changed_by=row.changed_by, changed_at=row.changed_at / 1e6, reason=row.reason
    )
