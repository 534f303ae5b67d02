"""Profiles, and what every built-in tool declares. These tests take whatever `local_tools` gives."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ConfigDict, create_model

from kit.wires.model_requests import a_request
from wakeful import tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.errors import InvalidConfig, ToolReported
from wakeful.contracts.tools import ToolDeclaration
from wakeful.providers.anthropic.encode import AnthropicEncoder
from wakeful.providers.openai_chat.dialect import OPENAI
from wakeful.providers.openai_chat.encode import ChatEncoder
from wakeful.providers.openai_responses.encode import CODEX_RULES, OPENAI_RULES, ResponsesEncoder, WireRules
from wakeful.providers.profiles import profile_of
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.schemas import Dialect, emit
from wakeful.runtime.tasks import RuntimeTasks
from wakeful.sandbox.confinement import Sandbox
from wakeful.store.memory import MemoryStore
from wakeful.tools.context import RunContext
from wakeful.tools.local import PROFILES, local_tools
from wakeful.tools.local.command_batch import ExecCommandBatch
from wakeful.tools.local.commands import ExecCommand
from wakeful.tools.local.task_commands import ExecTaskCommand
from wakeful.tools.local.task_tools import task_tools
from wakeful.tools.person import ask_person
from wakeful.tools.tool import Tool
from wakeful.workspaces import Workspace


def run_program(command: str) -> str:
    """Run a command."""
    return command


COMMANDS = [
    tool(run_program, name="wakeful/exec_command"),
    tool(run_program, name="wakeful/exec_command_batch"),
    tool(run_program, name="wakeful/something_else"),
]


def built_in(root: Path) -> list[Tool[Any]]:
    """Every tool that ships: those of all profiles, commands too, and the question to a person."""
    sandbox = Sandbox(root)
    commands = [ExecCommand(sandbox), ExecCommandBatch(sandbox)]
    found = {each.name: each for profile in PROFILES for each in local_tools(None, profile, commands)}
    assert set(found) == {name for names in PROFILES.values() for name in names}
    return [*found.values(), ask_person, *of_a_runtime(root)]


def of_a_runtime(root: Path) -> list[Tool[Any]]:
    """Commands where they may go on as tasks, and the tools for tasks."""
    board = RuntimeTasks(new_engine(MemoryStore()), str(root / "tasks"), frozenset)
    sandbox = Sandbox(root)
    return [ExecTaskCommand(sandbox, board), *task_tools(sandbox, board)]


def signature_of(each: Tool[Any]) -> inspect.Signature:
    """The typed arguments a tool is made of."""
    found = vars(each).get("__signature__")
    assert isinstance(found, inspect.Signature), f"{each.name} has no signature to derive a schema from"
    return found


def without_words(fields: dict[str, Any]) -> dict[str, Any]:
    """Schemas without what is said about them to people."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {word: plain(inner) for word, inner in value.items() if word not in ("description", "title")}
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    return {name: plain(field) for name, field in fields.items()}


def objects_in(schema: Any) -> list[dict[str, Any]]:
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    own = [schema] if isinstance(schema, dict) and schema.get("type") == "object" else []
    return [*own, *(found for each in inner for found in objects_in(each))]


NOT_TAKEN = {"oneOf", "allOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "default"}
"""Words of JSON Schema that a strict function does not take."""


def words_in(schema: Any) -> list[str]:
    """Every keyword of a schema; names of properties and definitions are none."""
    if isinstance(schema, list):
        return [word for each in schema for word in words_in(each)]
    if not isinstance(schema, dict):
        return []
    named = ("properties", "$defs")
    inner = [each for word, value in schema.items() for each in (value.values() if word in named else [value])]
    return [*schema, *(word for each in inner for word in words_in(each))]


# --- profiles ---------------------------------------------------------------------------------------------------------


def test_a_profile_gives_its_tools_in_its_order() -> None:
    commands = ["wakeful/exec_command", "wakeful/exec_command_batch"]
    files = ["wakeful/read_file", "wakeful/edit_file", "wakeful/write_file", "wakeful/apply_patch"]
    assert [each.name for each in local_tools(None, "coding", COMMANDS)] == [*commands, *files]
    assert [each.name for each in local_tools(None, "shell_first", COMMANDS)] == [*commands, "wakeful/apply_patch"]
    assert local_tools(None, "chat", COMMANDS) == []
    with pytest.raises(InvalidConfig, match="there is no profile 'codign'"):
        local_tools(None, "codign")  # type: ignore[arg-type]


async def test_a_profile_with_commands_has_the_tools_for_tasks_where_there_are_tasks(tmp_path: Path) -> None:
    tasks = [f"wakeful/task_{name}" for name in ("status", "output", "input", "stop")]
    for profile in ("coding", "shell_first"):
        names = [each.name for each in local_tools(None, profile, of_a_runtime(tmp_path))]  # type: ignore[arg-type]
        assert names[-4:] == tasks
    assert local_tools(None, "chat", of_a_runtime(tmp_path)) == []


def sent_to_providers(tools: list[ToolDeclaration]) -> dict[str, list[dict[str, Any]]]:
    """The tool lists of real request bodies."""
    request = a_request(tools=tuple(tools))
    names = WireNames(tools)
    encoders: dict[str, Any] = {
        "anthropic": AnthropicEncoder("claude-opus-4-7", profile_of("claude-opus-4-7"), tuple(tools)),
        "openai_responses": ResponsesEncoder("gpt-5.5", profile_of("gpt-5.5"), names),
        "openai_chat": ChatEncoder("gpt-5.5", profile_of("gpt-5.5"), names, provider="openai", dialect=OPENAI),
    }
    return {name: json.loads(b"".join(encoder.body(request)))["tools"] for name, encoder in encoders.items()}


@pytest.mark.spec("HOL-REPO-02", "HOL-REPO-03")
def test_the_shell_first_catalog_reads_through_commands_and_changes_files_by_patches() -> None:
    shell_first = [each.declaration for each in local_tools(None, "shell_first", COMMANDS)]
    for provider, sent in sent_to_providers(shell_first).items():
        names = [each.get("name") or each["function"]["name"] for each in sent]
        assert "wakeful__apply_patch" in names, provider
        assert not [name for name in names for word in ("read", "glob", "grep") if word in name], provider
    for profile in PROFILES:
        for commands in ([], COMMANDS):
            names = [each.name for each in local_tools(None, profile, commands)]
            assert ("wakeful/apply_patch" in names) == bool(names), "wherever there are local tools"
    assert local_tools(None, "chat", COMMANDS) == [], "the profile decides"


@pytest.mark.spec("HOL-REPO-05")
async def test_anthropic_gets_apply_patch_as_a_closed_object_with_one_text(tmp_path: Path) -> None:
    (tmp_path / "path").write_text("a\n")
    (patch,) = (
        each for each in local_tools(Workspace.at(tmp_path), "shell_first") if each.name == "wakeful/apply_patch"
    )
    (sent,) = sent_to_providers([patch.declaration])["anthropic"]
    schema = sent["input_schema"]
    assert schema["type"] == "object" and schema["additionalProperties"] is False
    assert schema["required"] == ["patch"] == list(schema["properties"])
    assert schema["properties"]["patch"]["type"] == "string"
    assert emit(patch.declaration.input_schema, "strict", "anthropic").schema == schema, "strict changes nothing"
    arguments = {"patch": "--- a/path\n+++ b/path\n@@ -1 +1 @@\n-a\n+b\n"}
    assert await patch.invoke(RunContext(None), arguments) == "M path"
    assert (tmp_path / "path").read_text() == "b\n"


# --- declarations -----------------------------------------------------------------------------------------------------


def test_every_file_tool_declares_what_the_gate_asks(tmp_path: Path) -> None:
    writers = {"wakeful/write_file", "wakeful/edit_file", "wakeful/apply_patch"}
    for each in local_tools(Workspace.at(tmp_path)):
        said, writes = each.declaration, each.name in writers
        assert (said.permission, said.runtime_owner) == ("workspace_write", "local")
        assert said.capabilities == ("filesystem", "write" if writes else "read")
        assert said.locks == (("workspace_fs",) if writes else ())
        assert (said.effect, said.is_read_only) == (("probeable", False) if writes else ("pure", True))
        assert (said.serial, said.parallel_safe, each.has_probe) == (writes, not writes, writes)
        assert not said.is_destructive and not said.leaves_machine
        assert said.description and all(field.get("description") for field in said.input_schema["properties"].values())
        assert each.working_directory({}) == str(tmp_path.resolve())


@pytest.mark.spec("HOL-SCHEMA-01", "HOL-SCHEMA-02", "HOL-SCHEMA-03")
async def test_input_schemas_come_from_typed_arguments_and_are_the_same_for_every_provider(tmp_path: Path) -> None:
    for each in built_in(tmp_path):
        parameters = [parameter for parameter in signature_of(each).parameters.values() if parameter.name != "ctx"]
        model: Any = create_model(
            "Arguments",
            __config__=ConfigDict(extra="forbid"),
            **{
                parameter.name: (
                    parameter.annotation,
                    ... if parameter.default is parameter.empty else parameter.default,
                )
                for parameter in parameters
            },
        )
        derived, source = model.model_json_schema(), each.declaration.input_schema
        plain, wanted = without_words(source["properties"]), without_words(derived["properties"])
        assert plain == wanted, each.name
        assert without_words(source.get("$defs", {})) == without_words(derived.get("$defs", {})), each.name
        optional = [parameter.name for parameter in parameters if parameter.default is not parameter.empty]
        assert sorted(source["required"]) == sorted(set(plain) - set(optional)), "what is optional stays so"
        for provider, (sent,) in sent_to_providers([each.declaration]).items():
            function = sent.get("function", sent)
            seen = function.get("input_schema") or function["parameters"]
            assert set(seen["properties"]) == set(source["properties"]), provider
            assert sorted(seen["required"]) == sorted(source["required"]), provider
        assert "strict" not in source and "additionalProperties" in source


@pytest.mark.spec("HOL-SCHEMA-14", "HOL-SCHEMA-15")
async def test_source_and_strict_schemas_of_every_built_in_tool_are_sound(tmp_path: Path) -> None:
    dialects: tuple[Dialect, ...] = ("openai", "anthropic")
    for each in built_in(tmp_path):
        source = each.declaration.input_schema
        Draft202012Validator.check_schema(source)
        for dialect in dialects:
            emitted = emit(source, "strict", dialect)
            Draft202012Validator.check_schema(emitted.schema)
            assert emitted.strict
            for found in objects_in(emitted.schema):
                assert found["additionalProperties"] is False, (each.name, dialect)
                assert sorted(found["required"]) == sorted(found["properties"]), (each.name, dialect)


@pytest.mark.spec("HOL-SCHEMA-16")
@pytest.mark.parametrize("rules", [OPENAI_RULES, CODEX_RULES], ids=["openai", "openai-codex"])
async def test_the_full_set_of_built_in_tools_is_sent_strictly_to_openai(tmp_path: Path, rules: WireRules) -> None:
    tools = tuple(each.declaration for each in built_in(tmp_path))
    encoder = ResponsesEncoder("gpt-5.5", profile_of("gpt-5.5"), WireNames(tools), rules=rules, schemas="strict")
    sent = json.loads(b"".join(encoder.body(a_request(tools=tools))))["tools"]
    assert [each["name"] for each in sent] == [tool.name.replace("/", "__") for tool in tools]
    for each in sent:
        assert each["strict"] is True, each["name"]
        Draft202012Validator.check_schema(each["parameters"])
        for found in objects_in(each["parameters"]):
            assert found["additionalProperties"] is False, each["name"]
            assert sorted(found["required"]) == sorted(found["properties"]), each["name"]
        assert not NOT_TAKEN & set(words_in(each["parameters"])), each["name"]


async def test_without_a_workspace_every_built_in_file_tool_refuses() -> None:
    for each in local_tools(None, "coding"):
        required = each.declaration.input_schema["required"]
        with pytest.raises(ToolReported) as raised:
            await each.invoke(RunContext(None), dict.fromkeys(required, "x"))
        assert raised.value.error.kind == "no_workspace"
        assert each.working_directory({}) is None
