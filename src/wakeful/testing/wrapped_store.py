"""A store that hands everything on to another. A wrapper overrides the one method its rule is about."""

from collections.abc import Sequence
from typing import Any

from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.ports import (
    AdmissionAnswer,
    Claim,
    Damage,
    Dispatches,
    Feed,
    ImportedAgents,
    Match,
    Row,
    RowQuery,
    Store,
    Table,
    TableReads,
    TurnReader,
    Value,
    Watch,
    WorkflowRow,
)
from wakeful.ports.retention import RetentionStore
from wakeful.ports.transfer import LogTransfer


class WrappedStore(TableReads):
    """Behaves as the store inside it."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    @property
    def location(self) -> str:
        return self.inner.location

    @property
    def runtime_id(self) -> str:
        return self.inner.runtime_id

    @property
    def secret(self) -> bytes:
        return self.inner.secret

    @property
    def dispatches(self) -> Dispatches:
        return self.inner.dispatches

    @property
    def retention(self) -> RetentionStore:
        return self.inner.retention

    @property
    def transfer(self) -> LogTransfer:
        return self.inner.transfer

    @property
    def imported_agents(self) -> ImportedAgents:
        return self.inner.imported_agents

    async def admit(
        self, agent_id: str, facts: Sequence[Fact], *, reserve: bool = False, claim: bool = False
    ) -> AdmissionAnswer | None:
        return await self.inner.admit(agent_id, facts, reserve=reserve, claim=claim)

    async def claim(self, turn_id: str, *, reservation: str | None = None) -> Claim:
        return await self.inner.claim(turn_id, reservation=reservation)

    async def claim_thread(self, agent_id: str, thread_id: str, turn_id: str) -> Claim:
        return await self.inner.claim_thread(agent_id, thread_id, turn_id)

    async def give_up(self, turn_id: str, reservation: str) -> None:
        await self.inner.give_up(turn_id, reservation)

    async def release(self, claim: Claim) -> None:
        await self.inner.release(claim)

    async def hold(self, claim: Claim) -> None:
        await self.inner.hold(claim)

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        return await self.inner.append(claim, facts, barrier=barrier, rest=rest, last=last)

    async def sync(self) -> None:
        await self.inner.sync()

    async def read(
        self,
        agent_id: str,
        *,
        after: int = 0,
        thread_id: str | None = None,
        turn_id: str | None = None,
        limit: int | None = None,
    ) -> list[StoredFact]:
        return await self.inner.read(agent_id, after=after, thread_id=thread_id, turn_id=turn_id, limit=limit)

    async def is_held(self, agent_id: str, thread_id: str) -> bool:
        return await self.inner.is_held(agent_id, thread_id)

    async def agents(self) -> list[str]:
        return await self.inner.agents()

    async def head(self, agent_id: str) -> int:
        return await self.inner.head(agent_id)

    async def count_rows(self, table: Table[Any]) -> int:
        return await self.inner.count_rows(table)

    async def get_row(self, table: Table[Row], *key: Value) -> Row | None:
        return await self.inner.get_row(table, *key)

    async def list_rows(
        self,
        table: Table[Row],
        query: RowQuery,
        *equal: Value,
        after: Sequence[Value] = (),
        limit: int | None = None,
        backwards: bool = False,
    ) -> list[Row]:
        return await self.inner.list_rows(table, query, *equal, after=after, limit=limit, backwards=backwards)

    async def find_rows(
        self, table: Table[Row], matches: Sequence[Match], *, order: Sequence[str], limit: int | None = None
    ) -> list[Row]:
        return await self.inner.find_rows(table, matches, order=order, limit=limit)

    async def save_workflow(
        self,
        name: str,
        graph: str,
        *,
        new_id: str,
        created_at: int,
        workflow_id: str | None = None,
        key: str | None = None,
    ) -> WorkflowRow:
        return await self.inner.save_workflow(
            name, graph, new_id=new_id, created_at=created_at, workflow_id=workflow_id, key=key
        )

    async def workflow(self, workflow_id: str, revision: int | None = None) -> WorkflowRow | None:
        return await self.inner.workflow(workflow_id, revision)

    async def workflows(self) -> list[WorkflowRow]:
        return await self.inner.workflows()

    async def delete_workflow(self, workflow_id: str) -> bool:
        return await self.inner.delete_workflow(workflow_id)

    async def put_blob(self, data: bytes, media_type: str) -> BlobRef:
        return await self.inner.put_blob(data, media_type)

    async def get_blob(self, digest: str) -> bytes:
        return await self.inner.get_blob(digest)

    def turn_reader(self, agent_id: str, turn_id: str) -> TurnReader:
        return self.inner.turn_reader(agent_id, turn_id)

    def watch(self, agent_id: str, *, thread_id: str | None = None, feed: Feed = "all", keeps: bool = False) -> Watch:
        return self.inner.watch(agent_id, thread_id=thread_id, feed=feed, keeps=keeps)

    def watch_wakes(self) -> Watch:
        return self.inner.watch_wakes()

    def watch_feed(self) -> Watch:
        return self.inner.watch_feed()

    async def rebuild_views(self) -> None:
        await self.inner.rebuild_views()

    async def verify(self) -> list[Damage]:
        return await self.inner.verify()

    async def close(self) -> None:
        await self.inner.close()
