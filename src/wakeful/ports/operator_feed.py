"""The feed over all agents: one row for each event that an operator sees, numbered in the order of commits.

A row names its event and copies nothing of it. Agents of a runtime have rows; runs of the library have none.
"""

from typing import NamedTuple, Protocol

from wakeful.ports.tables import Condition, RowQuery, Rows, Table, TableIndex
from wakeful.views.presentation.placements import Category, Visibility


class FeedRow(NamedTuple):
    """An event that an operator sees."""

    position: int
    """Its number in the feed. The store gives it: a commit that comes later has a greater one."""
    agent_id: str
    seq: int
    """Its number in the agent's stream."""
    visibility: Visibility
    category: Category
    is_result: bool
    """It needs somebody, is work done, or ends a turn: what the display mode `info` shows."""
    at: int


_RESULTS = Condition("is_result", "=", 1)
FEED_IN_ORDER = RowQuery(("position",), served_by="key")
FEED_RESULTS = RowQuery(("position",), where=_RESULTS, served_by="feed_results")
FEED_OF_AGENT = RowQuery(("seq",), equal=("agent_id",), served_by="feed_of_agent")
FEED_RESULTS_OF_AGENT = RowQuery(("seq",), equal=("agent_id",), where=_RESULTS, served_by="feed_results_of_agent")

FEED = Table(
    "feed",
    FeedRow,
    key=("agent_id", "seq"),
    indexes=(
        TableIndex("feed_of_agent", ("agent_id", "seq"), unique=True),
        TableIndex("feed_results", ("position",), where=_RESULTS),
        TableIndex("feed_results_of_agent", ("agent_id", "seq"), where=_RESULTS),
    ),
    queries=(FEED_IN_ORDER, FEED_RESULTS, FEED_OF_AGENT, FEED_RESULTS_OF_AGENT),
    position="position",
    aged_by="at",
)


class OperatorFeed(Rows, Protocol):
    """Reads the feed."""

    async def feed_after(self, position: int, *, limit: int, results: bool = False) -> list[FeedRow]:
        """Rows behind a position, the oldest first; with `results`, those alone."""
        query = FEED_RESULTS if results else FEED_IN_ORDER
        return await self.list_rows(FEED, query, after=(position,), limit=limit)

    async def newest_of_feed(self, agent_id: str | None = None, *, limit: int, results: bool = False) -> list[FeedRow]:
        """The newest rows, of all agents or of one, the newest first."""
        if agent_id is None:
            query = FEED_RESULTS if results else FEED_IN_ORDER
            return await self.list_rows(FEED, query, limit=limit, backwards=True)
        query = FEED_RESULTS_OF_AGENT if results else FEED_OF_AGENT
        return await self.list_rows(FEED, query, agent_id, limit=limit, backwards=True)
