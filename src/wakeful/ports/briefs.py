"""Briefs: one row each. The words stand in the log, where the row says."""

from typing import NamedTuple, Protocol

from wakeful.contracts.authority import Authority
from wakeful.contracts.briefs import BriefKind, BriefVisibility
from wakeful.ports.tables import RowQuery, Rows, Table, TableIndex


class BriefRow(NamedTuple):
    """What an agent told its people (`brief.created`)."""

    brief_id: str
    agent_id: str
    thread_id: str
    turn_id: str
    kind: BriefKind
    visibility: BriefVisibility
    work_item_id: str
    """Blank: the turn advanced none."""
    workspace_id: str
    related_message_id: str
    related_task_id: str
    created_seq: int
    """The event that made it."""
    text_event_id: str
    """The event that holds its words: its own, a reply of the model or the end of the turn; blank: it has none."""
    created_at: int
    principal: str = ""
    """Whom its turn worked for; blank: nobody in particular."""
    derived_from: Authority = "operator_instruction"


BRIEFS_OF_AGENT = RowQuery(("created_seq",), equal=("agent_id",), served_by="briefs_of_agent")

BRIEFS = Table(
    "briefs",
    BriefRow,
    key=("brief_id",),
    indexes=(TableIndex("briefs_of_agent", ("agent_id", "created_seq")),),
    queries=(BRIEFS_OF_AGENT,),
)


class Briefs(Rows, Protocol):
    """Reads briefs."""

    async def brief(self, brief_id: str) -> BriefRow | None:
        return await self.get_row(BRIEFS, brief_id)

    async def briefs_after(self, agent_id: str, seq: int, *, limit: int) -> list[BriefRow]:
        """Those that were written after an event, the oldest first."""
        return await self.list_rows(BRIEFS, BRIEFS_OF_AGENT, agent_id, after=(seq,), limit=limit)

    async def briefs(self, agent_id: str, *, limit: int | None = None, after: BriefRow | None = None) -> list[BriefRow]:
        """The newest first; `after` is the last one of the page before."""
        place = () if after is None else (after.created_seq,)
        return await self.list_rows(BRIEFS, BRIEFS_OF_AGENT, agent_id, after=place, limit=limit, backwards=True)
