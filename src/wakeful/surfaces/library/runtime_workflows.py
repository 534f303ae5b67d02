"""Workflows that agents of a runtime run, as methods of `Runtime`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wakeful.contracts.values import JsonValue
from wakeful.surfaces.library.argument_checks import checked_arguments
from wakeful.surfaces.library.tool_refusals import open_to_tools

if TYPE_CHECKING:
    from wakeful.contracts.workflows import SavedWorkflow
    from wakeful.service.living_runtime import LivingRuntime
    from wakeful.views.workflow_runs import QueuedWorkflowRun


@checked_arguments
@open_to_tools("workflows", "workflow_run", "workflow_runs")
class RuntimeWorkflows:
    """A part of `Runtime`."""

    @property
    def _here(self) -> "LivingRuntime":
        raise NotImplementedError

    async def save_workflow(self, agent: str, graph: Mapping[str, Any]) -> "SavedWorkflow":
        """Keep a graph as a new revision, checked against the tools of the agent that is to run it.

        Nodes may name agents of the runtime. Raises AgentNotFound, or InvalidWorkflow, and then nothing is kept.
        """
        from wakeful.service.workflows.queued_runs import save_workflow

        return await save_workflow(self._here.supply, graph, agent)

    async def workflows(self) -> "list[SavedWorkflow]":
        """The newest revision of each saved workflow."""
        from wakeful.service import workflow_registry

        return await (await workflow_registry(self._here.engine)).list()

    async def start_workflow(
        self,
        agent: str,
        name: str,
        inputs: Mapping[str, JsonValue] | None = None,
        *,
        prompt: str = "",
        revision: int | None = None,
        thread: str | None = None,
        key: str | None = None,
        sender: str = "program",
    ) -> "QueuedWorkflowRun":
        """Have an agent run a saved workflow, with its tools, its policy and its budget. When this returns, the run is
        safe: a runtime that is killed goes on with it. `await rt.answer(run.run_id)` waits for it.

        It runs in a thread of its own, unless one is named. With `key`, the same line again is the same run. Raises
        AgentNotFound, AgentStopped, WorkflowNotFound, InvalidWorkflow, InvalidValue or KeyReused; then there is no run.
        """
        from wakeful.service.workflows.queued_runs import RunToQueue, queue_workflow

        wanted = RunToQueue(
            agent, name, revision, inputs, prompt, thread, key, sender, surface="run_once", admission="local_process"
        )
        async with self._here.refusals.counting(agent):
            return await queue_workflow(self._here.supply, wanted)

    async def workflow_run(self, run_id: str) -> "QueuedWorkflowRun":
        """A run of a workflow as it is now: how it stands, and once it is over what each node came to.

        Raises MessageNotFound.
        """
        from wakeful.service.workflows.queued_runs import queued_run

        return await queued_run(self._here.engine, run_id)

    async def workflow_runs(self, *, limit: int = 100) -> "list[QueuedWorkflowRun]":
        """Runs of workflows, the newest first, without what their nodes came to."""
        from wakeful.service.workflows.queued_runs import queued_runs

        return await queued_runs(self._here.engine, limit)

    async def cancel_workflow_run(self, run_id: str, *, by: str = "program") -> "QueuedWorkflowRun":
        """Have a run stopped, or never begun. One that is over stays as it is. Raises MessageNotFound."""
        from wakeful.service.workflows.queued_runs import cancel_run

        return await cancel_run(self._here.engine, run_id, by=by)
