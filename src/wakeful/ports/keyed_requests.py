"""Requests that came with an idempotency key: what each was, and its answer. Rows leave with the log of their day."""

from typing import NamedTuple, Protocol

from wakeful.ports.tables import RowQuery, Rows, Table, TableIndex


class KeyedRequestRow(NamedTuple):
    """A request with a key, from its begin on."""

    caller: str
    request_key: str
    agent_id: str
    """The stream of its day."""
    route: str
    digest: str
    begun_at: int
    status: int | None
    """None: it is under way, or was cut off."""
    answer: str | None
    answered_at: int | None


REQUESTS_BY_AGE = RowQuery(("begun_at", "caller", "request_key"), served_by="keyed_requests_by_age")
KEYED_REQUESTS = Table(
    "keyed_requests",
    KeyedRequestRow,
    key=("caller", "request_key"),
    indexes=(TableIndex("keyed_requests_by_age", ("begun_at", "caller", "request_key")),),
    queries=(REQUESTS_BY_AGE,),
    fixed=("begun_at",),
)


class KeyedRequests(Rows, Protocol):
    """Reads requests by their keys."""

    async def keyed_request(self, caller: str, request_key: str) -> KeyedRequestRow | None:
        return await self.get_row(KEYED_REQUESTS, caller, request_key)

    async def oldest_keyed_request(self) -> KeyedRequestRow | None:
        return next(iter(await self.list_rows(KEYED_REQUESTS, REQUESTS_BY_AGE, limit=1)), None)
