"""The host of a process that serves a store: work goes to the runtime, and bundles to the registry of the store."""

from collections.abc import Mapping
from typing import Any

from wakeful.contracts.errors import AgentStopped, InvalidValue
from wakeful.contracts.principals import CapabilityCeiling, ExecutionPrincipal
from wakeful.hosts.agent_registry import AgentRegistry
from wakeful.hosts.dispatch.dispatcher import Dispatcher
from wakeful.hosts.dispatch.records import DispatchRecords
from wakeful.hosts.dispatch.runtime_target import RUNTIME, RuntimeTarget
from wakeful.hosts.packages.imports import BundleImporter
from wakeful.hosts.run_access import MANAGE, RunRefused
from wakeful.service.agent_supply import AgentSupply
from wakeful.service.commands.agents import addressed
from wakeful.service.commands.runtime_holds import refuse_if_stopped
from wakeful.service.host_door import WorkToDispatch

NEWEST = 1_000
"""Runs that are looked at when the process begins: one that a kill left without its message is among the last."""


class ServedHost:
    """Keeps the promise of `service.host_door`."""

    def __init__(self, supply: AgentSupply) -> None:
        self._engine = supply.engine
        self._target = RuntimeTarget(supply.engine)
        self._dispatcher = Dispatcher(supply.engine, local=self._target)
        self._records = DispatchRecords(supply.engine)
        self._importer = BundleImporter(AgentRegistry(supply.engine, tools=supply.tools))

    async def take_up(self) -> None:
        """Hand on what was recorded and did not come to its message before the process before this one was killed."""
        for run in await self._records.readable(NEWEST):
            mine = run.result.executor_id == RUNTIME and not run.result.is_over
            if mine and await self._target.message(run.given) is None:
                try:
                    await self._dispatcher.resume(run.result.session_id, run.given.run_id, _manager("runtime"))
                except RunRefused:
                    continue  # its agent is gone or stopped: the record says so

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
        return (await self._dispatcher.run(given, _manager(by))).run_id

    async def look_at(self, run_id: str) -> None:
        run = await self._records.readable_one(run_id)
        if run is not None and run.result.executor_id == RUNTIME:
            await self._dispatcher.get(run.result.session_id, run_id, _manager("runtime"))

    async def cancel(self, run_id: str, *, by: str) -> None:
        found = await self._dispatcher.find(run_id, _manager(by))
        await self._dispatcher.cancel(found.session_id, found.run_id, _manager(by))

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
