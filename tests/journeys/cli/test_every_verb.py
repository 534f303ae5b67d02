"""Every command, through a real daemon, with `--json`, and on the file of the same store with `--store`.

The table of commands says which there are: one without a journey here, or in a suite that is named here, fails.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kit.runs.repositories import repository
from kit.runs.workflow_graphs import data
from kit.surfaces.command_line import Done, Wakeful
from kit.surfaces.same_moments import read_both
from kit.surfaces.served_home import ServedHome, served
from wakeful.service.serving.options import ServeOptions
from wakeful.surfaces.cli.command_table import COMMANDS
from wakeful.surfaces.cli.main import app_of

NEW = count()
ASK = {"id": "ask", "kind": "approval", "inputs": {"question": "Go on?"}}
AGE = re.compile(r"\d+ (?:s|min) *")
OWNER = "[budget]\nper_day = {usd = 5}\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    folder = tmp_path_factory.mktemp("verbs") / "home"
    folder.mkdir()
    (folder / "wakeful.toml").write_text(OWNER)
    notes = folder / "agents" / "archivist" / "memory"
    notes.mkdir(parents=True)
    (notes / "self.md").write_text("".join(f"# Server {number}\nServer {number} is orca.\n\n" for number in range(8)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder.parent))  # templates are kept there
        with served(folder, ServeOptions(port=0, tools=("kit.surfaces.verb_agents:agents",))) as found:
            found.client.post("/agents", {"definition": {"name": "ops", "model": "scripted:demo", "work_items": True}})
            yield found
            for task in found.client.get("/tasks").body:
                found.client.post(f"/tasks/{task['task_id']}/stop", {})
            until = time.monotonic() + 60
            while (
                any(each["ended_at"] is None for each in found.client.get("/tasks").body) and time.monotonic() < until
            ):
                time.sleep(0.05)


class Stage:
    """What a journey may ask for: things that the command is then about."""

    def __init__(self, home: ServedHome, folder: Path, wakeful: Wakeful) -> None:
        self.home = home
        self.folder = folder
        self.wakeful = wakeful
        self.file = ("--store", str(home.folder / "wakeful.db"))

    def told(self, *arguments: str, code: int = 0) -> Any:
        done = self.wakeful(*arguments, "--json")
        assert done.code == code, done
        return json.loads(done.out)

    def name(self, word: str) -> str:
        return f"{word}-{next(NEW)}"

    def turn(self) -> str:
        return str(self.told("run", "hello", "--agent", "clerk", "--thread", self.name("t"))["turn_id"])

    def artifact(self) -> str:
        turn = self.told("run", "log 5000", "--agent", "clerk", "--thread", self.name("t"))["turn_id"]
        return str(self.told("artifacts", turn)[0]["artifact_id"])

    def waiting(self) -> str:
        """A turn that waits for an approval."""
        words = f"refund {1000 + next(NEW)}"  # a rule of another journey may allow that one
        return str(self.told("run", words, "--agent", "clerk", "--thread", self.name("t"), code=3)["turn_id"])

    def approval(self) -> str:
        turn = self.waiting()
        return str(next(a["approval_id"] for a in self.told("approvals") if a["turn_id"] == turn))

    def rule(self) -> str:
        kept = self.told("approvals", "always", self.approval(), "--for", "1h")
        return str(kept["rule_id"])

    def request(self) -> str:
        turn = self.told("run", "pick", "--agent", "picker", "--thread", self.name("t"), code=3)["turn_id"]
        return str(next(r["request_id"] for r in self.told("requests") if r["turn_id"] == turn))

    def unknown(self) -> str:
        turn = self.told("run", "ship", "--agent", "shipper", "--thread", self.name("t"))["turn_id"]
        return f"{turn}/{next(each['call_id'] for each in self.told('unknown') if each['turn_id'] == turn)}"

    def agent(self, **more: Any) -> str:
        name = self.name("agent")
        made = self.home.client.post("/agents", {"definition": {"name": name, "model": "scripted:demo", **more}})
        assert made.status == 200, made
        return name

    def changed(self) -> str:
        """An agent with two revisions."""
        name = self.agent()
        assert (
            self.home.client.ask("PATCH", f"/agents/{name}", {"changes": {"instructions": "Be brief."}}).status == 200
        )
        return name

    def timer(self) -> str:
        name = self.agent(wake=[{"cron": "0 7 * * *", "say": "Check the backups."}])
        return str(self.told("timer", "list", name)[0]["timer_id"])

    def task(self) -> str:
        known = {each["task_id"] for each in self.told("task", "list")}
        self.told("run", self.name("begin b"), "--agent", "builder", "--thread", self.name("t"))
        return str(next(each["task_id"] for each in self.told("task", "list") if each["task_id"] not in known))

    def memory(self) -> str:
        """An entry of the archivist that no other journey has taken."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if entries := self.told("memory", "list", "archivist", "--find", "orca"):
                return str(entries[0]["source_ref"])
            self.told("run", "hello", "--agent", "archivist", "--thread", self.name("t"))
        raise AssertionError("nothing is remembered")

    def trigger(self) -> str:
        name = self.name("ci")
        self.told("trigger", "create", "ops", name, "--say", "A build.")
        return f"ops/{name}"

    def address(self) -> str:
        return str(self.told("trigger", "url", self.trigger())["trigger_url"])

    def workspace(self) -> tuple[str, str]:
        agent, folder = self.agent(), self.folder / self.name("shop")
        folder.mkdir()
        known = self.told("workspace", "attach", agent, str(folder))
        return agent, str(known["attached_workspaces"][-1]["workspace_id"])

    def worktree(self) -> tuple[str, str]:
        """A worktree that was kept because it has a change, which is gone since."""
        agent = self.agent()
        repo = repository(self.folder / self.name("repo"))
        self.told("workspace", "use", agent, "--path", str(repo), "--isolated")
        session = self.told("workspace", "list", agent)["worktree_session"]
        (kept := Path(session["worktree_path"], "tea.txt")).write_text("tea\n")
        self.told("workspace", "use", agent, "agent_home")
        kept.unlink()
        return agent, str(self.told("workspace", "list", agent)["worktrees"][0]["worktree_id"])

    def workflow(self) -> str:
        name = self.name("flow")
        (self.folder / f"{name}.json").write_text(
            json.dumps(data(name=name, nodes=[ASK], edges=[], inputs={}, required_inputs=[], outputs={}))
        )
        assert self.wakeful("workflow", "save", f"{name}.json").code == 0
        return name

    def channel(self) -> str:
        name = self.name("phone")
        self.told("channel", "add", "ntfy", name, "--server", "http://127.0.0.1:9", "--allow-private")
        return name

    def template(self) -> str:
        folder = self.folder / self.name("desk")
        folder.mkdir()
        (folder / "AGENTS.md").write_text("Be kind.\n")
        return str(folder)

    def logs(self) -> str:
        other, file = self.name("other"), f"{self.name('logs')}.jsonl"
        assert self.wakeful("run", "hello", "--model", "scripted:demo", "--store", f"{other}.db").code == 0
        assert self.wakeful("store", "export", file, "--store", f"{other}.db").code == 0
        return file


class Journey(NamedTuple):
    """What stands behind a command, made for each of the three ways anew, and what comes of it."""

    arguments: Callable[[Stage], list[str]] = lambda _: []
    says: str = ""
    code: int = 0
    same: bool = False
    """It only reads: the daemon and the file say the same."""


def read(*arguments: str, says: str = "") -> Journey:
    return Journey(lambda _: [*arguments], says, same=True)


def of(kind: str, *more: str, says: str = "", before: tuple[str, ...] = (), code: int = 0) -> Journey:
    """About one thing that the stage makes."""

    def arguments(stage: Stage) -> list[str]:
        made = getattr(stage, kind)()
        return [*before, *(made if isinstance(made, tuple) else (made,)), *more]

    return Journey(arguments, says, code)


DECIDED = "by you"
JOURNEYS: Mapping[str, Journey] = {
    "run": Journey(lambda s: ["hello", "--agent", "ops", "--thread", s.name("t")]),
    "prompt": Journey(lambda s: ["hello", "--agent", "clerk", "--thread", s.name("t")], "hello"),
    "cancel": of("waiting", says="turn turn_"),
    "pause": of("waiting", says="pause"),
    "interject": of("waiting", "hurry", says="reads it with its next model request"),
    "send": Journey(lambda s: ["ops", "hello", "--thread", s.name("t")], "is stored for agent ops"),
    "agent": read(says="clerk"),
    "agent list": read("clerk", says="clerk"),
    "agent show": read("clerk", says="clerk"),
    "agent create": Journey(lambda s: [s.name("agent"), "--model", "scripted:demo"], "is created"),
    "agent model": of("agent", "scripted:demo", says="scripted:demo"),
    "agent history": of("changed", says="REVISION"),
    "agent diff": of("changed", says="+"),
    "agent archive": of("agent", says="archived"),
    "agent delete": of("agent", says="deleted"),
    "agent pause": of("agent", says="paused"),
    "agent stop": of("agent", says="refuses messages"),
    "agent resume": of("agent", says="running"),
    "config": read(says="budget.per_day"),
    "config show": read("budget", says="wakeful.toml, line 2"),
    "config path": read(says="wakeful.toml"),
    "config check": read(says="no errors"),
    "check": read(says="no errors"),
    "template": read(says="wakeful-default"),
    "template list": read(says="wakeful-default"),
    "template show": read("wakeful-developer", says="# How you work"),
    "template add": of("template", says="is in "),
    "tail": read("clerk", says="hello"),
    "transcript": read("clerk", says="hello"),
    "reload": Journey(),
    "notices": read(),
    "notify test": Journey(lambda _: ["clerk"], "is stored"),
    "channel": read(),
    "channel list": read(),
    "channel add": Journey(
        lambda s: ["ntfy", s.name("phone"), "--server", "http://127.0.0.1:9", "--allow-private"], "is added"
    ),
    "channel pair": of("channel", says="is open for pairing"),
    "channel remove": of("channel", says="is removed"),
    "timer list": read(),
    "timer run": of("timer", says="is due now"),
    "timer cancel": of("timer", says="is cancelled"),
    "trigger": read(says="clerk"),
    "trigger list": read("ops", says="ops"),
    "trigger create": Journey(lambda s: ["ops", s.name("ci"), "--say", "A build."], "is active"),
    "trigger url": of("trigger", says="/callbacks/"),
    "trigger rotate": of("trigger", says="has another address"),
    "trigger revoke": of("trigger", says="revoked"),
    "trigger deliver": of("address", "--body", '{"ok": true}', says="accepted"),
    "memory": read("archivist", says="Server"),
    "memory list": read("archivist", "--find", "orca", says="Server"),
    "memory show": read("archivist"),
    "memory edit": of("memory", "It is beluga now.", before=("archivist",), says="says this now"),
    "memory forget": of("memory", before=("archivist",), says="forgotten"),
    "work": read("ops"),
    "work add": Journey(lambda s: ["ops", s.name("Make the beds")], "is in the queue"),
    "skills": read("ops"),
    "task": read(),
    "task list": read("builder"),
    "task show": of("task", says="sleep 600"),
    "task output": of("task"),
    "task stop": of("task", says="task"),
    "workspace": read("ops", says="agent_home"),
    "workspace list": read("ops", says="agent_home"),
    "workspace attach": Journey(lambda s: [s.agent(), str(s.folder)], "may work in"),
    "workspace use": of("workspace", says="works in"),
    "workspace detach": of("workspace"),
    "workspace clean": of("worktree"),
    "approve": of("approval", says=DECIDED),
    "reject": of("approval", "ask", "for", "a", "photo", says=DECIDED),
    "approvals": read(),
    "approvals list": read("--all"),
    "approvals show": of("approval", says="refund"),
    "approvals approve": of("approval", says=DECIDED),
    "approvals reject": of("approval", says=DECIDED),
    "approvals edit": of("approval", "cents=7", says="now  refund(cents=7)"),
    "approvals answer": of("approval", "it was paid back", says=DECIDED),
    "approvals always": of("approval", "--for", "1h", says="new rule"),
    "approvals rules": read("--all"),
    "approvals revoke": of("rule", says="was revoked by"),
    "workflow": read(),
    "workflow list": read(),
    "workflow nodes": read(),
    "workflow show": of("workflow", says="flow-"),
    "workflow validate": Journey(lambda s: [f"{s.workflow()}.json"], "is valid"),
    "workflow save": Journey(lambda s: [f"{s.workflow()}.json"], "revision 2"),
    "workflow runs": read(),
    "workflow delete": of("workflow", says="deleted"),
    "dispatch": read(),
    "dispatch list": read(),
    "targets": read(),
    "unknown": Journey(lambda s: [s.unknown()][:0], "ship"),
    "resolve": of("unknown", "--happened", "shipped", says="happened: shipped"),
    "requests": Journey(lambda s: [s.request()][:0], "client/pick_file"),
    "requests list": read(),
    "requests show": of("request", says="runtime_tool_pending"),
    "requests submit": of("request", '{"file": "a.txt"}', says="runtime_tool_completed"),
    "requests timeout": of("request", says="runtime_tool_timeout"),
    "requests cancel": of("request", says="runtime_tool_timeout"),
    "status": read(says="clerk"),
    "events": of("turn", says="turn.completed"),
    "events validate": Journey(),
    "tree": of("artifact", says="read_log")._replace(arguments=lambda s: [s.artifact()][:0]),
    "artifacts": Journey(lambda s: [s.artifact()][:0], "read_log"),
    "artifacts show": of("artifact", says="line 4999"),
    "replay": of("turn"),
    "tools": read("--profile", "chat"),
    "why": read("clerk"),
    "context": of("turn"),
    "debug context": of("turn"),
    "debug prompt": read("--profile", "chat"),
    "debug latency": of("turn"),
    "cost": read("--by", "agent"),
    "budget": read(says="day"),
    "budget grant": Journey(lambda _: ["--usd", "1"], "day"),
    "models": read(),
    "models list": read("--provider", "anthropic"),
    "models show": read("anthropic:claude-opus-4-7"),
    "mcp": read(),
    "mcp list": read(),
    "daemon status": Journey(says="the daemon runs"),
    "daemon logs": Journey(),
    "token list": read(),
    "token create": Journey(lambda s: [s.name("phone")], "phone-"),
    "store stats": Journey(says="wakeful.db"),
    "store compact": Journey(),
    "store verify": read(says="everything is what was written"),
    "store export": Journey(lambda s: [f"{s.name('logs')}.jsonl"], "written to"),
    "store import": of("logs", says="taken in from"),
    "schema": read("agent"),
}
ELSEWHERE: Mapping[str, str] = {
    **{name: "test_demo.py" for name in COMMANDS if name.split()[0] == "demo"},
    **dict.fromkeys(("init", "agent new"), "test_init.py"),
    **dict.fromkeys(("resume",), "test_resume.py"),
    **dict.fromkeys(("stop", "chat", "skills show"), "test_daemon_commands.py"),
    **dict.fromkeys(("channel test",), "../test_channels.py"),
    **dict.fromkeys(("approvals reask",), "test_approvals.py"),
    **dict.fromkeys(("workflow run",), "test_workflow.py"),
    **dict.fromkeys(("workflow cancel",), "test_daemon_work.py"),
    **dict.fromkeys(("dispatch run", "dispatch show", "dispatch resume", "dispatch cancel"), "test_dispatch.py"),
    **dict.fromkeys(("package import", "package run"), "test_dispatch.py"),
    **dict.fromkeys(("models test",), "test_models.py"),
    **dict.fromkeys(("mcp tools", "mcp approve", "mcp login"), "test_mcp.py"),
    **dict.fromkeys(("trust",), "test_trust.py"),
    **dict.fromkeys(("doctor",), "test_stores.py"),
    **dict.fromkeys(("serve", "daemon start", "daemon stop", "daemon restart", "token revoke"), "test_daemon.py"),
    **dict.fromkeys(("daemon install",), "test_daemon_install.py"),
    **dict.fromkeys(("tui",), "../tui/test_terminal.py"),
    **dict.fromkeys(("store forget",), "test_stores.py"),
    **dict.fromkeys(("backup", "restore"), "test_backup.py"),
    **dict.fromkeys(("completion",), "test_completion.py"),
}
"""Commands that end the daemon, need a model, a person, a program outside or a process of their own."""
NO_JSON = ("schema",)
"""What is printed is JSON already."""


def test_every_command_has_a_journey() -> None:
    assert set(JOURNEYS) | set(ELSEWHERE) == set(COMMANDS)
    assert not set(JOURNEYS) & set(ELSEWHERE)
    for name, file in ELSEWHERE.items():
        words = (Path(__file__).parent / file).read_text()
        assert f'"{name.split()[0]}"' in words or f"wakeful {name}" in words, (name, file)


@pytest.fixture
def stage(home: ServedHome, folder: Path, wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("WAKEFUL_HOME", str(home.folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    return Stage(home, folder, wakeful)


def documents(done: Done) -> list[Any]:
    """What a program reads: one document, or one a line."""
    try:
        return [json.loads(done.out)]
    except ValueError:
        return [json.loads(line) for line in done.out.splitlines()]


def shape(value: Any) -> Any:
    return sorted(value) if isinstance(value, dict) else type(value).__name__


@pytest.mark.parametrize("name", JOURNEYS)
def test_a_command_works_through_the_daemon_as_json_and_on_the_file(stage: Stage, name: str) -> None:
    journey, verb = JOURNEYS[name], name.split()
    command = COMMANDS[name]
    if journey.same and name in ("tail", "transcript", "tree"):
        stage.told("run", "hello", "--agent", "clerk")
    words = stage.wakeful(*verb, *journey.arguments(stage))
    assert words.code == journey.code and "Traceback" not in words.err, words
    assert journey.says in words.out, words
    takes = signature(next(iter(app_of(name).registered_commands)).callback or len).parameters
    assert ("json" in takes) != (name in NO_JSON), f"{command.usage} takes no --json"
    if name in NO_JSON:
        return
    asked = journey.arguments(stage)
    by_daemon = stage.wakeful(*verb, *asked, "--json")
    assert by_daemon.code == journey.code, by_daemon
    found = documents(by_daemon)
    assert found or journey.same, by_daemon
    if "store" not in takes:
        return
    if not journey.same:
        by_file = stage.wakeful(*verb, *journey.arguments(stage), "--json", *stage.file)
        assert by_file.code == journey.code, by_file
        assert [shape(each) for each in documents(by_file)][:1] == [shape(each) for each in found][:1]
        return

    def read(*more: str) -> list[Any]:
        done = stage.wakeful(*verb, *asked, "--json", *more)
        assert done.code == journey.code, done
        return documents(done)

    def shown(*more: str) -> str:
        """But for the way back to the file."""
        return AGE.sub("<age>", stage.wakeful(*verb, *asked, *more).out).replace(f" {' '.join(stage.file)}", "")

    for way in (read, shown):
        of_daemon, of_file = read_both(way, lambda way=way: way(*stage.file))
        assert of_daemon == of_file
