"""Work items: one row an item, and which of them each agent works on."""

from typing import NamedTuple, Protocol

from wakeful.contracts.work_items import WorkItem, WorkItemState
from wakeful.ports.tables import Condition, RowQuery, Rows, Table, TableIndex

_OPEN = Condition("state", "=", "open")
_COMPLETED = Condition("state", "=", "completed")
_OLDEST_FIRST = ("updated_at", "work_item_id")
_BY_BIRTH = ("created_at", "work_item_id")
OPEN_ITEMS = RowQuery(_OLDEST_FIRST, equal=("agent_id",), where=_OPEN, served_by="work_items_open")
COMPLETED_ITEMS = RowQuery(_OLDEST_FIRST, equal=("agent_id",), where=_COMPLETED, served_by="work_items_completed")
ITEMS_BY_BIRTH = RowQuery(_BY_BIRTH, equal=("agent_id", "state"), served_by="work_items_by_birth")

WORK_ITEMS = Table(
    "work_items",
    WorkItem,
    key=("work_item_id",),
    indexes=(
        TableIndex("work_items_open", ("agent_id", *_OLDEST_FIRST), where=_OPEN),
        TableIndex("work_items_completed", ("agent_id", *_OLDEST_FIRST), where=_COMPLETED),
        TableIndex("work_items_by_birth", ("agent_id", "state", *_BY_BIRTH)),
    ),
    queries=(OPEN_ITEMS, COMPLETED_ITEMS, ITEMS_BY_BIRTH),
)


class FocusRow(NamedTuple):
    """Which item an agent works on. No row: none."""

    agent_id: str
    current_work_item_id: str
    since: int


WORK_FOCUS = Table("work_focus", FocusRow, key=("agent_id",))


class WorkItems(Rows, Protocol):
    """Reads work items."""

    async def work_item(self, work_item_id: str) -> WorkItem | None:
        return await self.get_row(WORK_ITEMS, work_item_id)

    async def current_work_item_id(self, agent_id: str) -> str | None:
        """The agent's focus."""
        row = await self.get_row(WORK_FOCUS, agent_id)
        return row.current_work_item_id if row is not None else None

    async def open_work_items(self, agent_id: str, *, limit: int | None = None) -> list[WorkItem]:
        """The one that was left alone for the longest time first."""
        return await self.list_rows(WORK_ITEMS, OPEN_ITEMS, agent_id, limit=limit)

    async def completed_work_items(self, agent_id: str, *, limit: int | None = None) -> list[WorkItem]:
        """The newest first."""
        return await self.list_rows(WORK_ITEMS, COMPLETED_ITEMS, agent_id, limit=limit, backwards=True)

    async def work_items_by_birth(
        self, agent_id: str, state: WorkItemState, *, limit: int, after: WorkItem | None = None
    ) -> list[WorkItem]:
        """A page of an agent's items in a state, the one that was made last first; `after`: behind that item."""
        place = () if after is None else (after.created_at, after.work_item_id)
        return await self.list_rows(
            WORK_ITEMS, ITEMS_BY_BIRTH, agent_id, state, after=place, limit=limit, backwards=True
        )

    async def work_items_since(self, agent_id: str, is_open: bool, updated: int, *, limit: int) -> list[WorkItem]:
        """Open or completed ones that were changed after a time, the one that was changed first before the others."""
        query = OPEN_ITEMS if is_open else COMPLETED_ITEMS
        return await self.list_rows(WORK_ITEMS, query, agent_id, after=(updated,), limit=limit)
