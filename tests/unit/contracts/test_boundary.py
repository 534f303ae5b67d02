"""The values of the boundary together: their ids, their spelling, and what they do not speak about."""

import importlib
import json
import pkgutil
import re
import warnings
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

import wakeful.contracts
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts import audit, outcomes, principals, transcript
from wakeful.contracts.policies import ActionPolicy
from wakeful.contracts.schema import event_schema
from wakeful.hosts.compaction.compaction_items import CompactionItem
from wakeful.hosts.dispatch import dispatch_request
from wakeful.hosts.dispatch.dispatcher import Dispatcher
from wakeful.hosts.loop import conversation_request, conversation_result
from wakeful.hosts.packages import package_run
from wakeful.hosts.tools import tool_declaration
from wakeful.hosts.tools.runtime_policy import projected
from wakeful.service.queries.schemas import agent_schema, run_result_schema
from wakeful.store.memory import MemoryStore
from wakeful.tools.local.source import LocalTools
from wakeful.tools.person import ask_person
from wakeful.views import conversation_export

MODULES = (
    transcript,
    conversation_request,
    conversation_result,
    conversation_export,
    outcomes,
    principals,
    tool_declaration,
    audit,
    dispatch_request,
    package_run,
)
MODELS: list[type[BaseModel]] = sorted(
    {
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == module.__name__
    },
    key=lambda model: model.__name__,
)


@pytest.mark.spec("API-BND-05")
async def test_schema_ids_are_fixed_strings_and_say_their_version_once() -> None:
    models = {model for model in [*every_model(), *MODELS, CompactionItem] if "schema_id" in model.model_fields}
    ids = {}
    for model in models:
        field = model.model_fields["schema_id"]
        assert field.alias == "schema", model
        (word,) = get_args(field.annotation)
        version = model.model_fields.get("version")
        ids[word] = get_args(version.annotation) if version is not None else ()
    dotted = ("wakeful.message", "wakeful.conversation-result", "wakeful.run-outcome", "wakeful.compaction-item")
    slashed = ("task-input", "execution-placement", "executor-target", "task-result", "execution-metrics")
    assert ids == {**dict.fromkeys(dotted, (1,)), **{f"wakeful/{word}/v1": () for word in slashed}}
    # Two envelopes are no models of their own.
    system = new_engine(MemoryStore())
    assert (await Dispatcher(system).list_targets())["schema"] == "wakeful/execution-target-list/v1"
    assert projected(())["schema"] == "wakeful/runtime-tool-policy/v1"


@pytest.mark.spec("API-BND-04")
def test_every_value_is_immutable_has_a_json_schema_and_speaks_snake_case() -> None:
    assert len(MODELS) > 10
    for model in MODELS:
        assert model.model_config.get("frozen"), model
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            schema = model.model_json_schema()
        for name in schema["properties"]:
            assert re.fullmatch(r"[a-z][a-z0-9_]*", name), f"{model.__name__}.{name}"


def every_model() -> list[type[BaseModel]]:
    """Every value of the contracts, events included."""
    return [
        value
        for module in pkgutil.walk_packages(wakeful.contracts.__path__, "wakeful.contracts.")
        for value in vars(importlib.import_module(module.name)).values()
        if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == module.name
    ]


@pytest.mark.spec("API-BND-03")
async def test_no_contract_has_a_field_of_a_product_and_no_schema_names_a_tool(tmp_path: Path) -> None:
    """Jobs, posts, sites, tabs, tables and pull requests are a host's business; of a session there is an opaque id."""
    product = re.compile(
        r"job|post|site|browser|tab\b|pull|repo|worktree|branch|comment|page|wordpress|github|slack|chat"
        r"|table|column|bucket|redis|sqlite|postgres"
    )
    models = every_model()
    assert len(models) > 100
    # Git worktrees are the runtime's own, with names that its rules fix; no boundary speaks of them.
    theirs = [model for model in models if not model.__module__.endswith(".workspaces")]
    fields = {f"{model.__name__}.{name}" for model in theirs for name in model.model_fields}
    fields.remove("ChildSupervision.worktree")
    # One field has its name from the published payload of `context.resolved`: a list of references, like the others.
    fields.remove("ContextResolved.browser_refs")
    fields.remove("ClosureDecision.runtime_posture")  # no post: whether an agent is awake
    assert not {field for field in fields if product.search(field.rpartition(".")[2].lower())}
    sessions = {name for model in models for name in model.model_fields if "session" in name}
    assert sessions <= {"session_id"}, "whose session it is, and nothing about it"
    built_in = {tool.name for tool in (await LocalTools(tmp_path, "coding").offer()).tools} | {ask_person.name}
    bare = {name.rpartition("/")[2] for name in built_in}
    assert "exec_command" in bare
    schemas = (event_schema(), run_result_schema(), agent_schema(), *(model.model_json_schema() for model in MODELS))
    words = {word for schema in schemas for word in re.findall(r"[a-z][a-z0-9_]*", json.dumps(schema))}
    assert not words & (bare | {"build_workflow", "run_subtask", "google_search", "memory_read", "memory_write"})


@pytest.mark.spec("API-BND-06")
def test_the_reference_lists_every_field_of_messages_requests_results_and_policies(root: Path) -> None:
    page = (root / "docs/reference/conversation.md").read_text()
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")}
    policies = [model for model in every_model() if model.__module__ == "wakeful.contracts.policies"]
    assert {model.__name__ for model in policies} >= {"GatePolicy", "PolicyFragment", "Rule", "ToolPolicy"}
    for model in (
        transcript.Message,
        conversation_request.ConversationRequest,
        conversation_result.ConversationResult,
        *policies,
    ):
        for name, field in model.model_fields.items():
            assert f"`{field.alias or name}`" in sections[model.__name__], f"{model.__name__}.{name}"
    assert all(f"- `{word}`" in sections["ActionPolicy"] for word in ActionPolicy)
