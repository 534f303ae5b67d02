"""A hostile agent writes code for the runtime: into its environment, its tools, or where Python looks for modules.

Each attempt is also made where nothing holds it, and succeeds there.
"""

import ast
import importlib
import importlib.util
import json
import logging
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kit.gates.confined_commands import PYTHON, place_outside, sandbox, sh
from kit.gates.hostile_model import READ, WRITE, command
from kit.gates.planted import SOURCES, environment_in, path_without_bubblewrap, run_program
from kit.surfaces.command_line import command_line
from wakeful import Agent, run
from wakeful.contracts.errors import ModuleRefused
from wakeful.contracts.telemetry import Telemetry
from wakeful.sandbox.import_guard import ImportGuard
from wakeful.sandbox.late_imports import load_late_imports
from wakeful.sandbox.own_code import NEW_ENVIRONMENT, code_places
from wakeful.telemetry.packages import load_packages
from wakeful.testing import scripted

PROGRAM = """
import asyncio, json, sys
from wakeful import Agent, SandboxSettings, run
from wakeful.testing import scripted
import own_tools
steps = json.load(open("steps.json"))
readable = SandboxSettings(read_roots=tuple(path for path in sys.path if path.startswith("/")))
agent = Agent(
    "hostile", scripted([*steps, "done"], leftover="ignore"), workspace=".", tools=[own_tools.look], sandbox=readable
)
result = asyncio.run(run(agent, "go", store="runs.db"))
held = {entry.fact.event.mode for entry in result.facts() if entry.fact.event.kind == "sandbox.applied"}
answers = [entry.fact.event for entry in result.facts() if entry.fact.event.kind in ("tool.result", "tool.failed")]
told = {event.item.call_id: event.item.text for event in answers}
print(json.dumps([sorted(held), [[call.status, call.result, told[call.call_id]] for call in result.calls()]]))
"""
TOOLS = '''
from wakeful import tool

@tool(effect="pure")
def look() -> str:
    """Imports a library when it is first called, as many do."""
    import referencing
    return referencing.__file__
'''
ATTEMPTS = {
    "a package of the environment": "echo x > .venv/lib/$(ls .venv/lib)/site-packages/evil.py",
    "a file that runs at every start": "echo 'import evil' > .venv/lib/$(ls .venv/lib)/site-packages/evil.pth",
    "the interpreter": "rm .venv/bin/python && cp /bin/sh .venv/bin/python",
    "the environment's own settings": "echo >> .venv/pyvenv.cfg",
    "the whole environment, moved": "mv .venv old",
    "a tool": "echo 'print(1)' >> own_tools.py",
    "a tool, replaced": "echo > new_tools.py; mv new_tools.py own_tools.py",
    "a tool's bytecode": "mkdir -p __pycache__ && echo x > __pycache__/own_tools.cpython-311.pyc",
    "the program": "echo 'print(1)' >> program.py",
}
FILES = (
    ".venv/pyvenv.cfg",
    ".venv/bin/activate",
    "own_tools.py",
    "program.py",
    "__pycache__/own_tools.cpython-311.pyc",
)


def session(root: Path, calls: list[tuple[str, Any]], path: str) -> tuple[list[str], list[Any]]:
    """An owner's program, run from an environment in its own workspace; what held commands, and what came of each."""
    (root / "own_tools.py").write_text(TOOLS)
    steps = [{"calls": [{"name": name, "arguments": arguments}]} for name, arguments in calls]
    (root / "steps.json").write_text(json.dumps(steps))
    done = run_program(root / ".venv/bin/python", PROGRAM, root, path)
    assert done.returncode == 0, done.stderr
    held, ended = json.loads(done.stdout.splitlines()[-1])
    return held, ended


@pytest.mark.parametrize("confined_by", ["bubblewrap", "landlock"])
def test_the_environment_the_package_and_the_tools_are_read_only_for_commands_and_file_tools(confined_by: str) -> None:
    with place_outside() as root, path_without_bubblewrap() as without:
        environment_in(root)
        (root / "src").mkdir()
        attempts = [command(f"( {attempt} ) && echo ended well") for attempt in ATTEMPTS.values()]
        writes = [(WRITE, {"path": path, "content": "spoilt"}) for path in FILES]
        works = [command("echo x > src/made.txt && .venv/bin/python -c 'print(6 * 7)'")]
        path = os.environ["PATH"] if confined_by == "bubblewrap" else without
        held, ended = session(root, [*attempts, *writes, *works], path)
        assert held == [confined_by]
        for name, (_, result, error) in zip(ATTEMPTS, ended, strict=False):
            assert "ended well" not in f"{result}{error}", name
        for name, (status, _, error) in zip(FILES, ended[len(ATTEMPTS) :], strict=False):
            assert (status, "protected" in error) == ("error", True), (name, error)
        assert "42" in ended[-1][1], ended[-1]
        assert (root / "own_tools.py").read_text() == TOOLS
        assert (root / "program.py").read_text() == PROGRAM
        assert not list(root.glob(".venv/lib/*/site-packages/evil*"))


@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_without_a_sandbox_each_of_them_is_written(attempt: str) -> None:
    with place_outside() as root:
        environment_in(root)
        (root / "own_tools.py").write_text(TOOLS)
        ended = await sh(sandbox(root, "not_enforced"), ATTEMPTS[attempt])
        assert ended.exit_status == 0


@pytest.mark.parametrize("confined_by", ["bubblewrap", "landlock"])
def test_an_installation_into_the_runtimes_own_environment_is_refused_with_the_line_that_makes_another(
    confined_by: str,
) -> None:
    with place_outside() as root, path_without_bubblewrap() as without:
        environment_in(root)
        (root / "wheels").mkdir()
        with zipfile.ZipFile(root / "wheels/evil-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("evil.py", "")
            wheel.writestr("evil-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
            wheel.writestr("evil-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr("evil-1.0.dist-info/RECORD", "")
        pip = Path(sys.base_prefix, "lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")
        install = f"PYTHONPATH={pip} .venv/bin/python -m pip install --no-index wheels/evil-1.0-py3-none-any.whl"
        path = os.environ["PATH"] if confined_by == "bubblewrap" else without
        _, [(status, _, error)] = session(root, [command(install)], path)
        assert status == "error"
        assert "read-only for commands" in error, error
        assert NEW_ENVIRONMENT in error, error


def test_what_an_agent_writes_on_the_search_path_is_not_imported_in_the_middle_of_a_run() -> None:
    """`referencing` is imported when the first schema is validated: the workspace stands before it on `sys.path`."""
    with place_outside() as root:
        environment_in(root)
        spoilt = "open('mark', 'w').close()\n"
        names = ("referencing", "jsonschema", "httpx2", "h2", "trio", "yaml", "difflib", "socksio")
        calls: list[tuple[str, Any]] = [(WRITE, {"path": f"{name}.py", "content": spoilt}) for name in names]
        calls += [(READ, {"path": "referencing.py"}), ("look", {}), command("echo x")]
        _, ended = session(root, calls, os.environ["PATH"])
        assert [status for status, _, _ in ended] == ["success"] * len(ended), ended
        assert "site-packages/referencing" in ended[-2][1]
        assert not (root / "mark").exists()
        subprocess.run([root / ".venv/bin/python", "-c", "import referencing"], cwd=root, check=True)
        assert (root / "mark").exists(), "a first import would have found it"


def test_nothing_is_looked_for_on_the_search_path_once_an_agent_has_its_tools() -> None:
    """Not by any wire format either: what would be imported late was imported before."""
    program = """
import asyncio, sys
import kit.wires.provider_server as provider
from kit.runs.engine_runs import calls
from wakeful import Agent, run
from wakeful.providers import AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses
from wakeful.tools.local.source import LocalTools

class Listening:
    looked_for = []
    def find_spec(self, name, path, target=None):
        if LocalTools.begun:
            self.looked_for.append(name)

class Begins(LocalTools):
    async def offer(self):
        offered = await super().offer()
        LocalTools.begun = True
        return offered

LocalTools.begun = False
sys.meta_path.insert(0, Listening())
wires = {"chat": lambda url: OpenAIChat("m", base_url=url + "/v1", api_key="k"),
         "responses": lambda url: OpenAIResponses("m", base_url=url + "/v1", api_key="k"),
         "messages": lambda url: AnthropicMessages("m", base_url=url, api_key="k"),
         "gemini": lambda url: Gemini("m", base_url=url + "/v1beta", api_key="k")}
kind = sys.argv[1] if len(sys.argv) > 1 else open("kind").read()
with provider.serving() as server:
    call = getattr(provider, kind + "_call")
    server.answers = [provider.refusal(500, "server_error", "again"), lambda asked: call(asked, {"cmd": "ls"}),
                      lambda asked: call(asked, {"cmd": 7}), getattr(provider, kind + "_words")("done")]
    agent = Agent("late", wires[kind](server.url), tools=[Begins(__import__("pathlib").Path.cwd(), "coding")])
    result = asyncio.run(run(agent, "go", store="runs.db"))
print(result.status, Listening.looked_for)
"""
    tests = str(Path(__file__).parents[1])
    with place_outside() as root:
        for kind in ("chat", "responses", "messages", "gemini"):
            (root / "kind").write_text(kind)
            done = run_program(sys.executable, program, root, os.environ["PATH"], {"PYTHONPATH": tests})
            assert done.stdout == "completed []\n", (kind, done.stdout, done.stderr)


def imported_late(files: Iterable[Path]) -> set[str]:
    """Names of modules that functions import."""
    late: set[str] = set()
    for file in files:
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    late |= {each.name for each in node.names} if isinstance(node, ast.Import) else set()
                    late |= {node.module} if isinstance(node, ast.ImportFrom) and node.module else set()
    return {name for name in late if not name.startswith("wakeful")}


def test_whatever_wakeful_imports_inside_a_function_is_among_what_is_loaded_early() -> None:
    spared = {"testing", "cli", "foreign", "telemetry"}
    files = [file for file in (SOURCES / "wakeful").rglob("*.py") if not spared & set(file.parts)]
    late = imported_late(file for file in files if file.name not in ("guard.py", "launcher.py"))
    for room in ("wakeful.surfaces.http", "wakeful.surfaces.tui", "wakeful.hosts"):
        importlib.import_module(room)
    load_late_imports()
    assert sorted(late - sys.modules.keys()) == []
    assert {"referencing", "httpx2"} <= late, "there are such imports"


def test_the_packages_of_telemetry_are_loaded_before_a_runtime_begins() -> None:
    late = imported_late((SOURCES / "wakeful" / "telemetry").glob("*.py"))
    load_packages(Telemetry(endpoint="http://127.0.0.1:4318", metrics_route=True))
    assert sorted(late - sys.modules.keys()) == []
    assert "opentelemetry.sdk.trace" in late, "there are such imports"


# --- the command line -------------------------------------------------------------------------------------------------

LATE_TOOLS = '''
from wakeful import tool

@tool(effect="pure")
def late(name: str) -> str:
    """Imports a module of its own folder."""
    try:
        return str(__import__(name).SAYS)
    except ImportError as error:
        return f"{type(error).__name__}: {error}"
'''


def wakeful(root: Path, steps: list[Any]) -> "subprocess.CompletedProcess[str]":
    (root / "steps.json").write_text(json.dumps([*steps, "done"]))
    line = command_line("run", "go", "--tools", "shop:late", "--model", "scripted:steps.json", "--store", "runs.db")
    environ = {**os.environ, "WAKEFUL_HOME": str(root / ".home")}
    return subprocess.run(
        [*line, "--json"], cwd=root, env=environ, capture_output=True, text=True, timeout=240, check=False
    )


def one(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def test_the_command_line_imports_no_module_that_an_agent_made_or_changed() -> None:
    with place_outside() as root:
        (root / "shop.py").write_text(LATE_TOOLS)
        for name in ("kept", "changed", "cached"):
            (root / f"{name}.py").write_text(f"SAYS = 'as {name} was'\n")
        spoilt = "open('mark', 'w').close()\nSAYS = 'spoilt'\n"
        (root / "spoilt.txt").write_text(spoilt)
        forge = (
            "import importlib._bootstrap_external as b, importlib.util as u, pathlib;"
            "p = pathlib.Path(u.cache_from_source('cached.py')); p.parent.mkdir(exist_ok=True);"
            "s = compile(pathlib.Path('spoilt.txt').read_text(), 'cached.py', 'exec');"
            "p.write_bytes(b._code_to_hash_pyc(s, b'0' * 8, False))"
        )
        steps = [
            one(WRITE, {"path": "made.py", "content": spoilt}),
            one(WRITE, {"path": "yaml.py", "content": spoilt}),
            one(*command("touch -r kept.py stamp; cat spoilt.txt > changed.py; touch -r stamp changed.py")),
            one(*command(f'{PYTHON} -I -c "{forge}"')),
            *(one("late", {"name": name}) for name in ("kept", "made", "changed", "cached")),
        ]
        done = wakeful(root, steps)
        assert done.returncode == 0, done.stderr
        log = subprocess.run(
            command_line("events", json.loads(done.stdout)["turn_id"], "--store", "runs.db", "--json"),
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert "as kept was" in log
        assert "as cached was" in log, "bytecode that says something else is not looked at"
        assert f"ModuleRefused: made is not imported from {root}/made.py: the file was made since" in log
        assert f"ModuleRefused: changed is not imported from {root}/changed.py: the file was changed since" in log
        assert not (root / "mark").exists()
        (root / "mark").unlink(missing_ok=True)
        subprocess.run([sys.executable, "-c", "import made, cached"], cwd=root, check=True)
        assert (root / "mark").exists(), "without the guard both run"


def test_a_file_in_the_current_folder_takes_the_place_of_no_library() -> None:
    """In the next session: `--tools` puts the folder after everything that is installed."""
    with place_outside() as root:
        (root / "shop.py").write_text(LATE_TOOLS)
        for name in ("referencing", "jsonschema", "httpx2", "yaml", "typer", "difflib"):
            (root / f"{name}.py").write_text("open('mark', 'w').close()\n")
        done = wakeful(root, [one("late", {"name": "shop"})])
        assert done.returncode == 0, done.stderr
        assert not (root / "mark").exists()
        subprocess.run([sys.executable, "-c", "import difflib"], cwd=root, check=True)
        assert (root / "mark").exists(), "before what is installed, it is found"


def test_a_guard_that_watches_nothing_lets_everything_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "planted_module.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    guard = ImportGuard()
    assert guard.find_spec("planted_module", None) is None, "it leaves that to the others"
    assert importlib.util.find_spec("planted_module") is not None
    guard.watch([str(tmp_path)])
    assert guard.find_spec("planted_module", None) is not None, "it was there before"
    (tmp_path / "later_module.py").write_text("")
    importlib.invalidate_caches()
    with caplog.at_level(logging.WARNING, "wakeful"), pytest.raises(ModuleRefused, match="made since the agent began"):
        guard.find_spec("later_module", None)
    assert "later_module is not imported" in caplog.text


# --- around it --------------------------------------------------------------------------------------------------------


LOADING = """
import sys
from pathlib import Path
from kit.gates.confined_commands import sandbox
from wakeful.service.hooks import HookRegistry
for root in sys.argv[1:]:
    sandbox(Path(root), "not_enforced")
HookRegistry().load()
"""


def test_hooks_of_a_package_that_an_agent_may_have_made_are_not_loaded(tmp_path: Path) -> None:
    """In processes of their own: what agents may write is known to a process until it ends."""
    (tmp_path / "evil-1.0.dist-info").mkdir()
    (tmp_path / "evil-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (tmp_path / "evil-1.0.dist-info/entry_points.txt").write_text(
        "[wakeful.hooks]\nloop_event.evil = evil_hooks:told\n"
    )
    mark = tmp_path / "mark"
    (tmp_path / "evil_hooks.py").write_text(f"open({str(mark)!r}, 'w').close()\ndef told(*_): ...\n")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])])}

    def load(*roots: str) -> str:
        line = [sys.executable, "-c", LOADING, *roots]
        done = subprocess.run(line, env=environ, cwd="/", capture_output=True, text=True, check=True)
        return done.stderr

    load()
    assert mark.exists(), "from a folder that no agent may write, they are"
    mark.unlink()
    assert "the hook loop_event.evil is not loaded" in load(str(tmp_path))
    assert not mark.exists()


async def test_doctor_says_where_code_is_within_reach_of_agents() -> None:
    with place_outside() as root:
        python = environment_in(root)
        program = (
            "import asyncio\nfrom wakeful import doctor\nprint(*asyncio.run(doctor('runs.db')).warnings, sep='\\n')\n"
        )
        done = run_program(python, program, root, os.environ["PATH"])
        on_path, environment = done.stdout.splitlines()
        assert on_path.startswith(f"{root} is on sys.path, and agents may write it")
        assert environment.startswith(f"wakeful runs from {root}/.venv") and NEW_ENVIRONMENT in environment
    with place_outside() as elsewhere:
        line = command_line("doctor", "--store", "runs.db")
        shown = subprocess.run(line, cwd=elsewhere, capture_output=True, text=True, check=False).stdout
        assert "sandbox" in shown and "warning" not in shown


def test_packages_are_held_whole_and_lone_modules_with_their_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path.resolve())
    for name in ("held_package/__init__.py", "held_package/inner/__init__.py", "held_package/inner/deep.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "held_module.py").write_text("")
    monkeypatch.syspath_prepend(root)
    assert code_places([root]) == ()
    __import__("held_package.inner.deep")
    __import__("held_module")
    assert set(code_places([root])) == {f"{root}/held_package/", f"{root}/held_module.py", f"{root}/__pycache__/"}
    assert set(code_places([f"{root}/held_package"])) == {
        f"{root}/held_package/__init__.py",
        f"{root}/held_package/__pycache__/",
        f"{root}/held_package/inner/",
    }
    for name in ("held_package.inner.deep", "held_package.inner", "held_package", "held_module"):
        sys.modules.pop(name)


async def test_an_environment_that_is_reached_through_a_link_in_the_workspace_is_not_left_open() -> None:
    """The link could be exchanged for a folder of the agent's: a command is refused where that cannot be prevented."""
    with place_outside() as folder:
        work, elsewhere = folder / "work", folder / "elsewhere"
        work.mkdir()
        elsewhere.mkdir()
        environment_in(elsewhere)
        (work / ".venv").symlink_to(elsewhere / ".venv")
        (work / "own_tools.py").write_text(TOOLS)
        _, [(status, _, error)] = session(work, [command("rm .venv && mkdir -p .venv/bin")], os.environ["PATH"])
        assert (status, f"{work}/.venv is a link" in error) == ("error", True), error
        assert (work / ".venv").is_symlink()


async def test_a_run_without_modules_in_the_workspace_is_held_as_before(tmp_path: Path) -> None:
    steps = [{"calls": [{"name": "wakeful/exec_command", "arguments": {"cmd": "echo x > made && cat made"}}]}, "done"]
    result = await run(Agent("plain", scripted(steps), workspace=tmp_path), "go", store=tmp_path / "runs.db")
    assert [call.status for call in result.calls()] == ["success"]
