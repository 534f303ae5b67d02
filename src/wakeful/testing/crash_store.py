"""A store whose process can be killed around each commit. All the rest is the real store's."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

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
from wakeful.testing.crash_switch import CrashSwitch


class CrashingStore(TableReads):
    """Kills, when its switch says so, before or after `admit` and `append`.

    With `acknowledged`, the number of facts of each commit that returned is noted there, outside the store: what was
    acknowledged must still be in the log after a kill.
    """

    def __init__(
        self,
        location: str,
        open_store: Callable[[], Awaitable[Store]],
        switch: CrashSwitch,
        acknowledged: Path | None = None,
    ) -> None:
        self.location = location
        self._open = open_store
        self._switch = switch
        self._acknowledged = acknowledged
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Future[Store]] = WeakKeyDictionary()

    async def _real(self) -> Store:
        """The store of the running loop: a store stays on the loop that opened it, and `run_sync` brings its own."""
        loop = asyncio.get_running_loop()
        if loop not in self._opened:
            self._opened[loop] = asyncio.ensure_future(self._open())
        return await self._opened[loop]

    def _here(self) -> Store:
        """The same for what cannot wait: something else has been asked of the store before."""
        return self._opened[asyncio.get_running_loop()].result()

    async def admit(
        self, agent_id: str, facts: Sequence[Fact], *, reserve: bool = False, claim: bool = False
    ) -> AdmissionAnswer | None:
        with self._switch.around("admit"):
            admitted = await (await self._real()).admit(agent_id, facts, reserve=reserve, claim=claim)
            if admitted is None or admitted.created:
                self._note(len(facts))
            return admitted

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        with self._switch.around("append"):
            others = await (await self._real()).append(claim, facts, barrier=barrier, rest=rest, last=last)
            self._note(len(facts))
            return others

    def _note(self, facts: int) -> None:
        if self._acknowledged is not None:
            with self._acknowledged.open("ab", buffering=0) as file:
                file.write(b"%d\n" % facts)

    @property
    def runtime_id(self) -> str:
        return self._here().runtime_id

    @property
    def secret(self) -> bytes:
        return self._here().secret

    @property
    def dispatches(self) -> Dispatches:
        return self._here().dispatches

    @property
    def retention(self) -> RetentionStore:
        return self._here().retention

    @property
    def transfer(self) -> LogTransfer:
        return self._here().transfer

    @property
    def imported_agents(self) -> ImportedAgents:
        return self._here().imported_agents

    async def claim(self, turn_id: str, *, reservation: str | None = None) -> Claim:
        return await (await self._real()).claim(turn_id, reservation=reservation)

    async def claim_thread(self, agent_id: str, thread_id: str, turn_id: str) -> Claim:
        return await (await self._real()).claim_thread(agent_id, thread_id, turn_id)

    async def give_up(self, turn_id: str, reservation: str) -> None:
        await (await self._real()).give_up(turn_id, reservation)

    async def release(self, claim: Claim) -> None:
        await (await self._real()).release(claim)

    async def hold(self, claim: Claim) -> None:
        await (await self._real()).hold(claim)

    async def sync(self) -> None:
        await (await self._real()).sync()

    async def read(
        self,
        agent_id: str,
        *,
        after: int = 0,
        thread_id: str | None = None,
        turn_id: str | None = None,
        limit: int | None = None,
    ) -> list[StoredFact]:
        return await (await self._real()).read(agent_id, after=after, thread_id=thread_id, turn_id=turn_id, limit=limit)

    async def is_held(self, agent_id: str, thread_id: str) -> bool:
        return await (await self._real()).is_held(agent_id, thread_id)

    async def agents(self) -> list[str]:
        return await (await self._real()).agents()

    async def head(self, agent_id: str) -> int:
        return await (await self._real()).head(agent_id)

    async def count_rows(self, table: Table[Any]) -> int:
        return await (await self._real()).count_rows(table)

    async def get_row(self, table: Table[Row], *key: Value) -> Row | None:
        return await (await self._real()).get_row(table, *key)

    async def list_rows(
        self,
        table: Table[Row],
        query: RowQuery,
        *equal: Value,
        after: Sequence[Value] = (),
        limit: int | None = None,
        backwards: bool = False,
    ) -> list[Row]:
        return await (await self._real()).list_rows(table, query, *equal, after=after, limit=limit, backwards=backwards)

    async def find_rows(
        self, table: Table[Row], matches: Sequence[Match], *, order: Sequence[str], limit: int | None = None
    ) -> list[Row]:
        return await (await self._real()).find_rows(table, matches, order=order, limit=limit)

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
        real = await self._real()
        return await real.save_workflow(
            name, graph, new_id=new_id, created_at=created_at, workflow_id=workflow_id, key=key
        )

    async def workflow(self, workflow_id: str, revision: int | None = None) -> WorkflowRow | None:
        return await (await self._real()).workflow(workflow_id, revision)

    async def workflows(self) -> list[WorkflowRow]:
        return await (await self._real()).workflows()

    async def delete_workflow(self, workflow_id: str) -> bool:
        return await (await self._real()).delete_workflow(workflow_id)

    async def put_blob(self, data: bytes, media_type: str) -> BlobRef:
        return await (await self._real()).put_blob(data, media_type)

    async def get_blob(self, digest: str) -> bytes:
        return await (await self._real()).get_blob(digest)

    def turn_reader(self, agent_id: str, turn_id: str) -> TurnReader:
        return self._here().turn_reader(agent_id, turn_id)

    def watch(self, agent_id: str, *, thread_id: str | None = None, feed: Feed = "all", keeps: bool = False) -> Watch:
        return self._here().watch(agent_id, thread_id=thread_id, feed=feed, keeps=keeps)

    def watch_wakes(self) -> Watch:
        return self._here().watch_wakes()

    def watch_feed(self) -> Watch:
        return self._here().watch_feed()

    async def rebuild_views(self) -> None:
        await (await self._real()).rebuild_views()

    async def verify(self) -> list[Damage]:
        return await (await self._real()).verify()

    async def close(self) -> None:
        await (await self._real()).close()
        del self._opened[asyncio.get_running_loop()]
