"""The host of a process that serves a store: work goes to the runtime, and bundles to the registry of the store."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from wakeful.contracts.errors import AgentStopped, InvalidValue, StoreDamaged, TurnDeleted, WakefulError
from wakeful.contracts.principals import CapabilityCeiling, ExecutionPrincipal
from wakeful.hosts.agent_registry import AgentRegistry
from wakeful.hosts.dispatch.dispatcher import Dispatcher
from wakeful.hosts.dispatch.records import DispatchRecords
from wakeful.hosts.dispatch.runtime_target import RuntimeTarget, agent_of
from wakeful.hosts.packages.imports import BundleImporter
from wakeful.hosts.run_access import MANAGE, RunRefused
from wakeful.service.agent_supply import AgentSupply
from wakeful.service.commands.agents import addressed
from wakeful.service.commands.runtime_holds import refuse_if_stopped
from wakeful.service.ended_turns import EndedTurns
from wakeful.service.host_door import WorkToDispatch
from wakeful.service.queries.dispatch_states import RUNTIME

LOG = logging.getLogger(__name__)
NEWEST = 1_000
"""Runs that are looked at when the process begins: one that a kill left without its message is among the last."""
MOST = 200
"""Turns that are looked at together."""
LOOK_AGAIN_SECONDS = 30.0


class ServedHost:
    """Keeps the promise of `service.host_door`."""

    def __init__(self, supply: AgentSupply) -> None:
        self._engine = supply.engine
        self._target = RuntimeTarget(supply.engine)
        self._dispatcher = Dispatcher(supply.engine, local=self._target)
        self._elsewhere = Dispatcher(supply.engine)
        """Stops runs of other processes on the store."""
        self._records = DispatchRecords(supply.engine)
        self._open: dict[str, tuple[str, str]] = {}
        """Runs that are not over, each with the agent and the thread of its turn."""
        self._open_since = 0
        self._any = asyncio.Event()
        self._importer = BundleImporter(AgentRegistry(supply.engine, tools=supply.tools))

    async def take_up(self) -> None:
        """Hand on what was recorded and did not come to its message before the process before this one was killed, and
        keep what ended meanwhile."""
        for run in await self._records.readable(NEWEST):
            if run.result.executor_id != RUNTIME or run.result.is_over:
                continue
            with (
                suppress(RunRefused),
                self._apart(run.given.run_id),
            ):  # its agent is gone or stopped: the record says so
                if await self._target.message(run.given) is None:
                    await self._dispatcher.resume(run.result.session_id, run.given.run_id, _manager("runtime"))
                await self._keep(run.given.run_id)

    async def keep_ends(self) -> None:
        """Have the records of runs say how they ended, as their turns end. Runs until it is cancelled."""
        store = self._engine.store
        watch = store.watch_feed()
        try:
            while True:
                await self._any.wait()
                cursor = EndedTurns(self._open_since)
                while self._open:
                    are_more = False
                    with suppress(WakefulError):  # the store cannot be read or written now: the next look does it
                        cursor.turn_back(self._engine.clock.now())
                        ended = await cursor.fresh(store, MOST)
                        threads = {(row.agent_id, row.thread_id) for row in ended}
                        for run_id in [name for name, thread in self._open.items() if thread in threads]:
                            with self._apart(run_id):
                                await self._keep(run_id)
                        cursor.take(ended)
                        are_more = len(ended) == MOST
                    if not are_more:
                        await watch.wait(timeout=LOOK_AGAIN_SECONDS)
        finally:
            watch.close()

    @contextmanager
    def _apart(self, run_id: str) -> Iterator[None]:
        """A run whose turn cannot be read any more is left as it is on record: it holds up no other, and no start."""
        try:
            yield
        except (StoreDamaged, TurnDeleted) as problem:
            LOG.warning("the end of the dispatched run %s is not known: %s", run_id, problem.message)
            self._forget(run_id)

    def _forget(self, run_id: str) -> None:
        self._open.pop(run_id, None)
        if not self._open:
            self._any.clear()

    async def _keep(self, run_id: str) -> None:
        """Have the record of a run say what became of it; one that is not over is looked at again."""
        run = await self._records.readable_one(run_id)
        if run is None or run.result.executor_id != RUNTIME:
            return  # it was changed by hand, or is not for this process to run
        if not self._open:
            self._open_since = self._engine.clock.now()
        self._open[run_id] = (agent_of(run.given), run.result.session_id)
        self._any.set()
        now = await self._dispatcher.get(run.result.session_id, run_id, _manager("runtime"))
        if now.is_over:
            self._forget(run_id)

    async def dispatch(self, work: WorkToDispatch, *, by: str) -> str:
        store = self._engine.store
        row = await addressed(store, work.agent)
        await refuse_if_stopped(store)
        if row.control == "stopped":
            raise AgentStopped(
                f"agent {work.agent} was stopped by {row.changed_by}: it takes no work",
                f"Let it run again first: wakeful agent resume {work.agent}",
            )
        given = {
            "task": {"id": work.task, "instructions": work.instructions, "input": dict(work.input)},
            "placement": {"allowed_targets": [RUNTIME]},
            "metadata": {"agent": work.agent},
            "session_id": work.session,
            "run_id": work.run_id,
        }
        run_id = (await self._dispatcher.run(given, _manager(by))).run_id
        await self._keep(run_id)
        return run_id

    async def cancel(self, run_id: str, *, by: str) -> None:
        found = await self._dispatcher.find(run_id, _manager(by))
        whose = self._dispatcher if found.executor_id == RUNTIME else self._elsewhere
        await whose.cancel(found.session_id, found.run_id, _manager(by))
        await self._keep(found.run_id)

    async def import_bundle(self, bundle: Mapping[str, Any], *, slug: str | None, on_conflict: str) -> str:
        given = {"on_conflict": on_conflict, **({"slug": slug} if slug is not None else {})}
        [done] = await self._importer.import_all([{"bundle": bundle}], given)
        if not done["success"]:
            error = done["error"]
            raise InvalidValue(error["code"], error.get("data", {}).get("path", ""), error["message"])
        return str(done["agent_slug"])


def _manager(name: str) -> ExecutionPrincipal:
    """Whoever may operate the runtime manages every run."""
    ceiling = CapabilityCeiling(allowed=(MANAGE,))
    return ExecutionPrincipal.user_session(name, "operator", request_context="http", capability_ceiling=ceiling)
