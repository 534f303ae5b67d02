"""Threads: one row a conversation, from its first message on."""

from typing import NamedTuple, Protocol

from wakeful.ports.tables import RowQuery, Rows, Table, TableIndex


class ThreadRow(NamedTuple):
    """One thread of one agent."""

    agent_id: str
    thread_id: str
    agent_name: str
    """Of the agent that its newest turn began with."""
    turns: int
    newest_turn: str
    """Blank while its messages wait and no turn was opened."""
    began_at: int
    active_at: int
    """When a message last came, or a turn last took some. Unix microseconds."""


class ThreadPlace(NamedTuple):
    """A place in the list of threads: it stays where it is, whatever becomes of the thread."""

    active_at: int
    agent_id: str
    thread_id: str

    @classmethod
    def of(cls, row: ThreadRow) -> "ThreadPlace":
        return cls(row.active_at, row.agent_id, row.thread_id)


_BY_ACTIVITY = ("active_at", "agent_id", "thread_id")
THREADS_BY_ACTIVITY = RowQuery(_BY_ACTIVITY, served_by="threads_by_activity")
ACTIVE_OF_NAME = RowQuery(_BY_ACTIVITY, equal=("agent_name",), served_by="threads_of_name")
AGENTS_OF_NAME = RowQuery(("agent_id", "thread_id"), equal=("agent_name",), served_by="threads_by_name")
AGENT_NAMES = RowQuery(("agent_name", "agent_id", "thread_id"), served_by="threads_by_name")

THREADS = Table(
    "threads",
    ThreadRow,
    key=("agent_id", "thread_id"),
    indexes=(
        TableIndex("threads_by_activity", _BY_ACTIVITY),
        TableIndex("threads_of_name", ("agent_name", *_BY_ACTIVITY)),
        TableIndex("threads_by_name", ("agent_name", "agent_id", "thread_id")),
    ),
    queries=(THREADS_BY_ACTIVITY, ACTIVE_OF_NAME, AGENTS_OF_NAME, AGENT_NAMES),
)


class Threads(Rows, Protocol):
    """Reads which threads there are."""

    async def thread(self, agent_id: str, thread_id: str) -> ThreadRow | None:
        return await self.get_row(THREADS, agent_id, thread_id)

    async def threads(
        self, agent_name: str | None = None, *, limit: int, before: ThreadPlace | None = None
    ) -> list[ThreadRow]:
        """A page of the threads of all agents, or of those of one name, last active first; `before`: behind that."""
        place: tuple[int | str, ...] = () if before is None else before
        if agent_name is None:
            return await self.list_rows(THREADS, THREADS_BY_ACTIVITY, after=place, limit=limit, backwards=True)
        return await self.list_rows(THREADS, ACTIVE_OF_NAME, agent_name, after=place, limit=limit, backwards=True)

    async def agents_of_name(self, agent_name: str) -> list[str]:
        """The streams in which an agent of that name has a thread, in the order in which they came to this store."""
        found: list[str] = []
        while page := await self.list_rows(THREADS, AGENTS_OF_NAME, agent_name, after=found[-1:], limit=1):
            found.append(page[0].agent_id)
        return found

    async def agent_names(self, *, after: str | None = None, limit: int | None = None) -> list[str]:
        """The names of agents that have a thread, in alphabetical order, behind one of them: a step for each, however
        many it has."""
        found = [] if after is None else [after]
        known = len(found)
        while limit is None or len(found) < limit + known:
            page = await self.list_rows(THREADS, AGENT_NAMES, after=found[-1:], limit=1)
            if not page:
                break
            found.append(page[0].agent_name)
        return found[known:]
