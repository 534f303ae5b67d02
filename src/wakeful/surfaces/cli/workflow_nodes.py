"""`wakeful workflow nodes`: the node types that a workflow can use here."""

import asyncio

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.workflows import NodeType
from wakeful.service import workflow_registry
from wakeful.surfaces.cli.options import (
    AgentOption,
    JsonOption,
    ProfileOption,
    ToolsOption,
    WideOption,
    WorkspaceOption,
)
from wakeful.surfaces.cli.screen import columns
from wakeful.surfaces.cli.shown_values import json_text, one_line, out
from wakeful.surfaces.cli.workflow_code import WorkflowCode, workflow_code


def command(
    tools: ToolsOption = None,
    agent: AgentOption = None,
    workspace: WorkspaceOption = None,
    profile: ProfileOption = None,
    json: JsonOption = False,
    wide: WideOption = False,
) -> None:
    """List the node types that a workflow can use: built-in tools, tools of --tools, agents, and the approval.

    With --json, each has the JSON Schema of its inputs. Required inputs are marked with *.
    """
    types = asyncio.run(_types(workflow_code(tools, agent, workspace, profile)))
    if json:
        out(json_text([each.model_dump(mode="json") for each in types], indent=2))
        return
    rows = [(each.ref, each.kind, _inputs(each), one_line(each.description, 200)) for each in types]
    out(columns(rows, ("REF", "KIND", "INPUTS", "DESCRIPTION"), wide=wide))


def _inputs(node: NodeType) -> str:
    required = node.input_schema.get("required", ())
    names = [f"{name}*" if name in required else name for name in node.input_schema.get("properties", {})]
    return ", ".join(names) or "-"


async def _types(code: WorkflowCode) -> tuple[NodeType, ...]:
    async with opened_store(None) as opened:
        return (await workflow_registry(new_engine(opened), code.agent, code.agents)).list_node_types()
