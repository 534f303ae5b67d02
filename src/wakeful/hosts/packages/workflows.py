"""A package that was imported here, run as what it is: a workflow whose nodes may be its agents.

A library has no opinion on packages (see `packages`). A program that has imported one, like the command line, runs it
with this where no hook says otherwise. The run is a turn with a key of its own: killed, or at rest for a person, it is
gone on with like any other, and `settle_package` tells the package's record what became of it.
"""

import json
from dataclasses import replace
from typing import Any

from wakeful.contracts.errors import InvalidWorkflow
from wakeful.contracts.workflows import SavedWorkflow, WorkflowGraph
from wakeful.decisions.workflows.graph_reader import read_graph
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.engine.workflow_parts import workflow_registry
from wakeful.engine.workflow_registry import WorkflowRegistry
from wakeful.hosts.agent_registry import AgentRegistry
from wakeful.hosts.packages.package_run import PackageRunRequest
from wakeful.hosts.packages.runs import Handler, PackageRuns
from wakeful.ports import TurnRow
from wakeful.service.run_result import RunResult
from wakeful.service.workflows.runs import WorkflowOutcome, run_workflow, workflow_result

KEY = "package:"
"""What the key of such a run begins with; its id follows."""


class PackageWorkflows:
    """Finds who runs a package: this, when its agents were imported here."""

    def __init__(self, engine: Engine, agents: AgentRegistry, request: RunRequest) -> None:
        """`request` says with whose tools and policy, and who is asked and told."""
        self._engine = engine
        self._agents = agents
        self._request = request

    async def find(self, asked: PackageRunRequest) -> Handler | None:
        """None for a package of which nothing was imported. Raises for one whose agents cannot be made here."""
        slug, version = str(asked.package.get("slug") or ""), str(asked.package.get("version") or "")
        found = await self._agents.of_package(slug, version) if slug else []
        if not found:
            return None

        async def handle(_: dict[str, Any]) -> dict[str, Any]:
            terms = self._request.workflows
            agents = (*terms.agents, *(each.agent for each in found))
            request = replace(self._request, key=KEY + asked.run_id, workflows=replace(terms, agents=agents))
            registry = await workflow_registry(self._engine, request.agent, agents)
            workflow = await _workflow(registry, asked)
            return _answer(await run_workflow(self._engine, registry, workflow, request, asked.input))

        return handle


async def settle_package(engine: Engine, row: TurnRow, run: RunResult[Any]) -> None:
    """Tell the record of a package's run what its turn came to, if that is what the turn was."""
    if row.key is None or not row.key.startswith(KEY):
        return
    now = await engine.store.turn(row.turn_id) or row
    if not now.is_open:
        answer = _answer(WorkflowOutcome(run, await workflow_result(engine.store, now)))
        await PackageRuns(engine).settle(row.key.removeprefix(KEY), answer)


async def _workflow(registry: WorkflowRegistry, asked: PackageRunRequest) -> SavedWorkflow | WorkflowGraph:
    """The one that is saved under this id or name, or the one that stands in the request."""
    spec = asked.workflow.get("spec")
    if not spec:
        return await registry.find(str(asked.workflow["id"]))
    graph = read_graph(json.dumps(spec))
    if not isinstance(graph, WorkflowGraph):
        raise InvalidWorkflow("workflow.spec is not a workflow", graph)
    return graph


def _answer(outcome: WorkflowOutcome) -> dict[str, Any]:
    """In the words of a package's run. One that waits for somebody is pending, and says what for."""
    run, result = outcome
    about = {"turn_id": run.turn_id}
    if result is None:
        return {"status": "pending", "result": {"waits_for": run.message}, "metadata": about}
    if run.completed:
        return {"status": "succeeded", "result": {"outputs": result.outputs}, "metadata": about}
    status = "cancelled" if run.status == "cancelled" else "failed"
    return {"status": status, "error": {"code": run.stop_reason, "message": run.message}, "metadata": about}
