"""The documents: every program in them runs, every setting is taken, every command and every link is there. Offline."""

import asyncio
import importlib
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import typer

import wakeful
from kit.runs.engine_runs import calls
from kit.surfaces.doc_snippets import compiled, documents, snippets
from wakeful import Agent, Rule, run, tool
from wakeful.contracts.workflows import WorkflowGraph
from wakeful.decisions.workflows.graph_reader import read_graph
from wakeful.providers.endpoint_settings import provider_settings
from wakeful.providers.endpoints import endpoint
from wakeful.service.owner_hooks import owner_hooks
from wakeful.settings.connect_profiles import connect_profiles
from wakeful.settings.daemon import owner_drain
from wakeful.settings.heartbeat import owner_heartbeat
from wakeful.settings.model_rules import model_rules
from wakeful.settings.notify_targets import owner_targets
from wakeful.settings.owner_file import owner_file
from wakeful.settings.retention import owner_retention
from wakeful.settings.retry import owner_patience
from wakeful.settings.spend_windows import owner_windows
from wakeful.settings.telemetry import owner_log, owner_telemetry
from wakeful.surfaces.cli.command_table import COMMANDS, FAMILIES
from wakeful.testing import scripted

ROOT = Path(__file__).resolve().parents[2]
Names = dict[str, Any]


@tool(effect="pure")
def look_up(order: str) -> str:
    """Find an order."""
    return f"order {order}"


@tool(effect="keyed", approval=True)
def refund(order: str, cents: int) -> str:
    """Give the money back."""
    return f"{cents} for {order}"


@tool(external=True)
def pick_file(folder: str) -> str:
    """Let the person pick a file."""
    raise AssertionError("a client runs it")


def asking() -> Agent[None, str]:
    asks = calls(("refund", {"order": "A17", "cents": 4200}))
    return Agent("clerk", scripted([asks, "Done."], leftover="ignore"), tools=[refund])


GRAPH = {
    "schema": "wakeful.workflow", "version": 1, "name": "refund", "inputs": {"order": {"type": "string"}},
    "required_inputs": ["order"], "nodes": [{"id": "look_up", "kind": "tool", "ref": "look_up"}],
    "edges": [{"source": "$input", "source_output": "order", "target": "look_up", "target_input": "order"}],
    "outputs": {"receipt": {"node": "look_up"}},
}  # fmt: skip


# --- programs ---------------------------------------------------------------------------------------------------------


def of_client_tools() -> Names:
    script = scripted([calls(("client/pick_file", {"folder": "."})), "Read."])
    return {"agent": Agent("reader", script, tools=[pick_file])}


SETTINGS: dict[str, Callable[[], Names]] = {
    "answers.md": dict,
    "approvals.md": lambda: {"agent": asking()},
    "attachments.md": dict,
    "budgets.md": lambda: {"agent": Agent("ops", scripted(["ok"]))},
    "client-tools.md": of_client_tools,
    "context.md": dict,
    "durability.md": dict,
    "hooks.md": lambda: {"model": scripted(["ok"]), "refund": refund},
    "permission-rules.md": lambda: {"model": scripted(["ok"])},
    "routing.md": dict,
    "security.md": dict,
    "settings.md": dict,
    "dispatch.md": lambda: {"look_up": look_up},
    "workflows.md": lambda: {
        "agent": Agent("desk", "scripted:demo", tools=[look_up]),
        "clerk": Agent("writer", "scripted:demo"),
        "graph": WorkflowGraph.model_validate(GRAPH),
    },
    "providers.md": lambda: {"read_from_your_vault": lambda: "key"},
}
"""What each document takes for granted, beside the names of `wakeful`. All others print what they use."""
CLAIMS = {
    "approvals.md": 'result.status == "approval_required"',
    "client-tools.md": 'result.output == "Read."',
    "chat.md": "result.completed",
    "dispatch.md": '[each["success"] for each in results] == [True, False]',  # the second bundle is only dots
    "workflows.md": 'outcome.result.outputs == {"receipt": "order A17"}',
}
"""What it says of the end."""


def programs(file: Path) -> list[str]:
    """All but whole stories: the README's first (`test_readme`), the examples for hosts (`test_hosts`)."""
    found = [each.text for each in snippets(file) if each.kind == "python"]
    return found[1:] if file.name == "README.md" else [each for each in found if "asyncio.run(" not in each]


async def ran(source: str, names: Names) -> None:
    """Run a program, and wait for what it made and did not wait for.

    Off the loop, as a program that is not async runs; one that awaits something gives a coroutine back.
    """
    done = await asyncio.to_thread(eval, compiled(source), names)
    if inspect.isawaitable(done):
        await done
    names["shown"] = [await each if inspect.isawaitable(each) else each for each in names["shown"]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder and home, with the files that the documents speak of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "home"))
    (tmp_path / "docs").mkdir()
    (tmp_path / ".config").mkdir()
    servers = {"mcpServers": {"github": {"command": "some-server"}}}
    (tmp_path / ".config" / "my-servers.json").write_text(json.dumps(servers))
    bundle = {"agent": {"agent_slug": "writer", "model": "scripted:demo", "tools": ["look_up"]}}
    (tmp_path / "writer.json").write_text(json.dumps({**bundle, "package_slug": "shop", "package_version": "2.0"}))
    return tmp_path


@pytest.mark.parametrize("file", [each for each in documents(ROOT) if programs(each)], ids=lambda file: file.name)
async def test_every_program_in_the_documents_runs(file: Path, place: Path) -> None:
    names: Names = {"shown": []}
    page = str(file.relative_to(file.parent.parent)) if file.parent.name == "guides" else file.name
    if page in SETTINGS:
        names |= {name: getattr(wakeful, name) for name in wakeful.__all__} | SETTINGS[page]()
    if page == "budgets.md":
        names["result"] = await run(names["agent"], "go")
    try:
        for source in programs(file):
            await ran(source, names)
            names["turn_id"] = next((each.turn_id for each in names["shown"] if hasattr(each, "turn_id")), None)
    finally:
        for each in names["shown"]:
            if isinstance(each, FunctionType) and each.__name__ == "remove":
                each()
    assert eval(CLAIMS.get(page, "True"), names)


async def test_a_program_that_does_not_run_is_found(place: Path) -> None:
    with pytest.raises(TypeError, match="strore"):
        await ran('run_sync(agent, "go", strore="runs.db")\n', {"run_sync": wakeful.run_sync, "agent": 0, "shown": []})


# --- settings and JSON ------------------------------------------------------------------------------------------------

READERS: dict[str, Callable[[dict[str, str]], object]] = {
    "budget": owner_windows,
    "principals": owner_windows,
    "models": model_rules,
    "retention": owner_retention,
    "hooks": lambda environ: owner_hooks(environ, frozenset),
    "notify": owner_targets,
    "heartbeat": lambda environ: owner_heartbeat({**environ, "HEARTBEAT_URL": "https://ping.example/1"}),
    "retry": owner_patience,
    "daemon": owner_drain,
    "telemetry": owner_telemetry,
    "log": owner_log,
    "connect": lambda environ: connect_profiles(owner_file(environ)),
    "providers": lambda environ: endpoint(next(iter(provider_settings(environ)[1])), environ=environ),
}


def of_kind(kind: str) -> Iterator[Any]:
    for file in documents(ROOT):
        for number, each in enumerate(one for one in snippets(file) if one.kind == kind):
            yield pytest.param(each.text, id=f"{file.name}-{number}")


@pytest.mark.parametrize("text", [*of_kind("toml")])
def test_every_setting_in_the_documents_is_taken(text: str, tmp_path: Path) -> None:
    (tmp_path / "wakeful.toml").write_text(text)
    for table in tomllib.loads(text):
        READERS[table]({"WAKEFUL_HOME": str(tmp_path)})


@pytest.mark.parametrize("text", [*of_kind("json")])
def test_every_json_in_the_documents_is_what_it_says(text: str) -> None:
    if "..." in text:  # a form, not a value
        return
    try:
        whole = json.loads(text)
    except ValueError:  # one a line: rules
        assert all(Rule.model_validate_json(line) for line in text.splitlines())
        return
    if whole.get("schema") == "wakeful.workflow":
        assert isinstance(read_graph(text), WorkflowGraph)


# --- commands and links -----------------------------------------------------------------------------------------------

_TYPED = re.compile(r"(?<!from )(?<!exec )\bwakeful ([a-z]+)((?: [^`\n\"|]*)?)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
_FILE = re.compile(r"`([a-z_]+(?:/[a-z_]+)+\.py)`")
READ = [ROOT / "AGENTS.md", ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md", ROOT / "docs" / "reference" / "README.md"]


def options_of(name: str) -> set[str]:
    """What a command takes, by its own declaration."""
    app = typer.Typer(add_completion=False)
    module = importlib.import_module(f"wakeful.surfaces.cli.{COMMANDS[name].module}")
    app.command()(getattr(module, COMMANDS[name].function))
    found = typer.main.get_command(app).params
    return {option for each in found for option in (*each.opts, *each.secondary_opts)} | {"--help"}


def wrong_commands(text: str) -> Iterator[str]:
    """Of what is written as code: commands and options that are not there."""
    code = "\n".join(re.findall(r"`[^`\n]+`|^    .*", text, re.M))
    for first, rest in _TYPED.findall(code):
        two = " ".join([first, *rest.split()[:1]])
        name = two if two in COMMANDS else first
        if name not in COMMANDS:
            if name not in (*FAMILIES, "help"):
                yield f"wakeful {name}"
            continue
        options = set(_OPTION.findall(rest))
        yield from (f"wakeful {name} {option}" for option in sorted(options - options_of(name)) if options)


@pytest.mark.parametrize("file", [*documents(ROOT), *READ], ids=lambda file: file.name)
def test_every_command_link_and_file_that_a_document_names_is_there(file: Path) -> None:
    text = file.read_text()
    assert list(wrong_commands(text)) == []
    assert [link for link in _LINK.findall(text) if not (file.parent / link).exists()] == []
    folders = (ROOT / "src" / "wakeful", ROOT)
    assert [name for name in _FILE.findall(text) if not any((folder / name).exists() for folder in folders)] == []


def test_a_command_or_an_option_that_is_not_there_is_found() -> None:
    assert list(wrong_commands("`wakeful reply TURN`\n\n    wakeful run x --moddel m --key k\n")) == [
        "wakeful reply",
        "wakeful run --moddel",
    ]
