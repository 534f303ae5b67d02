"""No inert setting of the loop: constants, policies, messages in and out. What there is is read from the code."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.bites import fields_of, joined
from kit.bites.budgets import BUDGET, CONSTANTS
from kit.bites.chats import CALLS, CLIENTS, MESSAGES, chat
from kit.bites.graphs import BOUNDS, GRAPHS, TOOL_FIELDS
from kit.bites.policies import TOOLS
from kit.bites.told import ALWAYS, KINDS, everything
from wakeful.contracts import budgets, workflows
from wakeful.contracts.budgets import Budget, Limits
from wakeful.contracts.policies import ToolPolicy
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.runtime_answers import SCRATCH_TOOLS, SUBTASK_TOOL
from wakeful.hosts.chat.client_bridge import ClientToolResult
from wakeful.hosts.chat.client_manifest import FIELDS
from wakeful.hosts.chat.messages import ChatMessage
from wakeful.hosts.chat.routing import IGNORED, route
from wakeful.settings.limit_overrides import OVERRIDABLE
from wakeful.tools.workflows import BUILD_WORKFLOW

TABLE = joined(CONSTANTS, BOUNDS, TOOLS, TOOL_FIELDS, MESSAGES, CLIENTS, CALLS, GRAPHS)


@pytest.mark.spec("LOOP-INV-06")
@pytest.mark.parametrize("setting", TABLE)
async def test_a_run_with_another_value_comes_to_something_else(setting: str, tmp_path: Path) -> None:
    await TABLE.check(setting, tmp_path)


def bounds_of(module: Any) -> Iterator[str]:
    return (name for name in vars(module) if name.startswith("MAX_"))


@pytest.mark.spec("LOOP-INV-06")
def test_every_constant_and_every_field_of_a_policy_is_looked_at() -> None:
    CONSTANTS.check_whole(bounds_of(budgets))
    assert set(CONSTANTS) == set(OVERRIDABLE)
    BOUNDS.check_whole([*bounds_of(workflows), "MAX_CORRECTIONS", "TIMEOUT_SECONDS", "PREVIEW_CHARS"])
    set_by = {name.removeprefix("budget.") for name in BUDGET} | {each.field for each in OVERRIDABLE.values()}
    assert set(Limits.model_fields) <= set_by, "what a turn is held to can be set, and is looked at then"
    assert set(Budget.model_fields) <= set_by
    TOOLS.check_whole(fields_of(ToolPolicy, "policy.tools."))
    said = ("permission_class", "parallel_safe", "requires_exclusive_lock")
    assert all(hasattr(ToolDeclaration, name) or name in ToolDeclaration.model_fields for name in said)
    TOOL_FIELDS.check_whole(f"tool.{name}" for name in said)


class Asked(dict[str, Any]):
    """A message that notes what is asked of it, and of what is in it."""

    def __init__(self, given: dict[str, Any], names: set[str], prefix: str = "") -> None:
        inside = {k: Asked(v, names, f"{k}.") if isinstance(v, dict) else v for k, v in given.items()}
        super().__init__(inside)
        self._names, self._prefix = names, prefix

    def get(self, name: str, default: Any = None) -> Any:
        self._names.add(self._prefix + name)
        return super().get(name, default)


def asked_by_routing() -> set[str]:
    names: set[str] = set()
    for context in ({"kind": "editor", "workflow_id": "w"}, {"kind": "thread"}):
        route(Asked({"chat_context": context, "media_generation": {"mode": "chat"}}, names))
    route(Asked({"workflow_target": "workflow", "workflow_id": "w"}, names))
    return names - {"chat_context", "media_generation"}


@pytest.mark.spec("LOOP-INV-06")
def test_every_field_of_what_clients_and_models_send_is_looked_at() -> None:
    MESSAGES.check_whole({*ChatMessage.model_fields, *asked_by_routing()})
    answers = (f"result.{name}" for name in ClientToolResult.model_fields if name != "type")
    CLIENTS.check_whole([*(f"manifest.{name}" for name in FIELDS), *answers])
    CALLS.check_whole(
        f"{declared.name}.{name}"
        for declared in (SUBTASK_TOOL, *SCRATCH_TOOLS, BUILD_WORKFLOW)
        for name in declared.input_schema["properties"]
    )
    parts = {"graph": workflows.WorkflowGraph, "node": workflows.WorkflowNode}
    parts |= {"edge": workflows.WorkflowEdge, "output": workflows.WorkflowOutput}
    GRAPHS.check_whole(name for part, kind in parts.items() for name in fields_of(kind, f"{part}."))


@pytest.mark.spec("LOOP-INV-06")
async def test_every_field_of_what_a_client_is_sent_says_something() -> None:
    """A field that nobody filled would have one value in all these turns: its default."""
    told = await everything()
    single = {
        f"{kind.__name__}.{name}": values
        for kind in KINDS
        for name in kind.model_fields
        if name != "type" and len(values := told.values(kind, name)) < 2
    }
    assert single == {name: {json.dumps(value)} for name, value in ALWAYS.items()}


@pytest.mark.parametrize("name", IGNORED)
async def test_what_a_client_cannot_say_changes_nothing(name: str) -> None:
    """These are inert by promise, and by nothing else."""
    seen = []
    for fields in ({}, {name: ["weigh", "vault"] if name == "tools" else "true"}):
        client = await chat()
        result = await client.say(**fields)
        shown = [each.name for each in client.server.asked[0].tools]
        seen.append(
            (result.output, shown, client.types(), [row.agent_name for row in await client.server.store.turns()])
        )
    assert seen[0] == seen[1]
