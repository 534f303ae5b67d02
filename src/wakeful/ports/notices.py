"""Notices, and what holds the whole runtime: rows that follow from facts of agents and of the runtime's own stream."""

from typing import Any, NamedTuple, Protocol

from wakeful.contracts.agent_identity import AgentControl
from wakeful.contracts.events.holds import RUNTIME_STREAM
from wakeful.contracts.models import FailureKind
from wakeful.contracts.notices import NoticeKind, NoticeState
from wakeful.ports.tables import RowQuery, Rows, Table, TableIndex


class NoticeRow(NamedTuple):
    """Something people are told without asking, and whether it arrived."""

    notice_id: str
    agent_id: str
    thread_id: str
    turn_id: str
    kind: NoticeKind
    cause: str
    """The kind of the event that it follows from."""
    about: str
    words: str
    created_seq: int
    created_at: int
    state: NoticeState
    attempts: int
    to: str
    error: str
    settled_at: int | None


NOTICES_BY_AGE = RowQuery(("created_at", "notice_id"), served_by="notices_by_age")
NOTICES_OF_AGENT = RowQuery(("created_seq",), equal=("agent_id",), served_by="notices_of_agent")

NOTICES = Table(
    "notices",
    NoticeRow,
    key=("notice_id",),
    indexes=(
        TableIndex("notices_by_age", ("created_at", "notice_id")),
        TableIndex("notices_of_agent", ("agent_id", "created_seq")),
    ),
    queries=(NOTICES_BY_AGE, NOTICES_OF_AGENT),
    renamed={"to": "sent_to"},
)


class RuntimeHoldRow(NamedTuple):
    """Whether all agents may run. One row, and none before somebody said anything."""

    agent_id: str
    """The runtime's own stream."""
    control: AgentControl
    changed_by: str
    reason: str
    changed_at: int


RUNTIME_HOLDS = Table("runtime_holds", RuntimeHoldRow, key=("agent_id",))


class RuntimeFilesRow(NamedTuple):
    """How the files of the home stood when they were read last. One row."""

    agent_id: str
    """The runtime's own stream."""
    problems: tuple[dict[str, Any], ...]
    loaded_at: int


RUNTIME_FILES = Table("runtime_files", RuntimeFilesRow, key=("agent_id",))


class ParkedProviderRow(NamedTuple):
    """A provider that lets nobody in. The row goes when it answers again."""

    provider: str
    agent_id: str
    """The stream that it follows from."""
    found_by: str
    """The agent whose model a probe asks."""
    model_ref: str
    failure_kind: FailureKind
    message: str
    since: int
    probes: int
    probes_at: int


ALL_PARKED = RowQuery(("provider",), few="there are few providers")
PARKED_PROVIDERS = Table("parked_providers", ParkedProviderRow, key=("provider",), queries=(ALL_PARKED,))


class ToldResultRow(NamedTuple):
    """What an agent came to when it was last told of as a change."""

    agent_id: str
    source: str
    """The timer or trigger that woke it; blank: something else did."""
    digest: str
    changed_at: int


TOLD_RESULTS = Table("told_results", ToldResultRow, key=("agent_id", "source"))


class Notices(Rows, Protocol):
    """Reads notices."""

    async def notice(self, notice_id: str) -> NoticeRow | None:
        return await self.get_row(NOTICES, notice_id)

    async def told_result(self, agent_id: str, source: str) -> ToldResultRow | None:
        return await self.get_row(TOLD_RESULTS, agent_id, source)

    async def notices(
        self, agent_id: str | None = None, *, limit: int | None = None, after: NoticeRow | None = None
    ) -> list[NoticeRow]:
        """The newest first, of an agent or of all; `after` is the last one of the page before."""
        query, equal = (NOTICES_BY_AGE, ()) if agent_id is None else (NOTICES_OF_AGENT, (agent_id,))
        place = () if after is None else NOTICES.values_of(after, query.order)
        return await self.list_rows(NOTICES, query, *equal, after=place, limit=limit, backwards=True)


class RuntimeHolds(Rows, Protocol):
    """Reads what holds the whole runtime, or the agents of a provider."""

    async def runtime_hold(self) -> RuntimeHoldRow | None:
        """What was said last of all agents; None: nothing ever was."""
        return await self.get_row(RUNTIME_HOLDS, RUNTIME_STREAM)

    async def runtime_files(self) -> RuntimeFilesRow | None:
        """How the files of the home stand; None: none was ever read."""
        return await self.get_row(RUNTIME_FILES, RUNTIME_STREAM)

    async def parked_provider(self, provider: str) -> ParkedProviderRow | None:
        return await self.get_row(PARKED_PROVIDERS, provider)

    async def parked_providers(self) -> list[ParkedProviderRow]:
        return await self.list_rows(PARKED_PROVIDERS, ALL_PARKED)
