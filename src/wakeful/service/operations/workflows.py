"""What may be asked about saved workflows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import NoRequest, OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.contracts.workflows import SavedWorkflow


@dataclass(frozen=True, slots=True)
class WorkflowName:
    """A saved workflow by its name or id; None: its newest revision."""

    name: str
    revision: int | None = None


async def _workflows(opened: OpenStore, asked: NoRequest) -> "list[SavedWorkflow]":
    from wakeful.engine.workflow_parts import workflow_registry

    return await (await workflow_registry(opened.engine)).list()


async def _workflow(opened: OpenStore, asked: WorkflowName) -> "SavedWorkflow":
    from wakeful.engine.workflow_parts import workflow_registry

    return await (await workflow_registry(opened.engine)).find(asked.name, asked.revision)


async def _delete(opened: OpenStore, asked: WorkflowName) -> "SavedWorkflow":
    from wakeful.engine.workflow_parts import workflow_registry

    registry = await workflow_registry(opened.engine)
    saved = await registry.find(asked.name)
    await registry.delete(saved.workflow_id)
    return saved


_WORKFLOW = "wakeful.contracts.workflows.SavedWorkflow"
LIST_WORKFLOWS = Operation("workflows.list", "observe", NoRequest, _WORKFLOW, _workflows, many=True)
SHOW_WORKFLOW = Operation("workflows.show", "observe", WorkflowName, _WORKFLOW, _workflow)
DELETE_WORKFLOW = Operation("workflows.delete", "operate", WorkflowName, _WORKFLOW, _delete, repeatable=True)
