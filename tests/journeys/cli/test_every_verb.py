"""Every command, through a real daemon, with `--json`, and on the file of the same store with `--store`.

The table of commands says which there are: one without a journey here, or in a suite that is named here, fails.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kit.surfaces.command_line import Done, Wakeful
from kit.surfaces.journey_calls import Call, not_run, ways_of
from kit.surfaces.same_moments import read_both
from kit.surfaces.served_home import ServedHome
from kit.surfaces.verb_stage import Stage, home_of_verbs
from wakeful.surfaces.cli.command_table import COMMANDS

AGE = re.compile(r"\d+ (?:s|min) *")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    folder = tmp_path_factory.mktemp("verbs") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder.parent))  # templates are kept there
        with home_of_verbs(folder) as found:
            yield found


class Journey(NamedTuple):
    """What stands behind a command, made for each of the three ways anew, and what comes of it."""

    arguments: Callable[[Stage], list[str]] = lambda _: []
    says: str = ""
    code: int = 0
    same: bool = False
    """It only reads: the daemon and the file say the same."""


def read(*arguments: str, says: str = "", after: str = "") -> Journey:
    """`after`: what the stage makes first, so that there is something to read."""

    def given(stage: Stage) -> list[str]:
        if after:
            getattr(stage, after)()
        return [*arguments]

    return Journey(given, says, same=True)


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
    "retry": of("failed", says="is tried again"),
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
    "thread": read(says="clerk"),
    "thread list": read("clerk", says="clerk"),
    "thread delete": of("thread", says="is deleted"),
    "reload": Journey(),
    "notices": read(says="test", after="notice"),
    "notify test": Journey(lambda _: ["clerk"], "is stored"),
    **dict.fromkeys(("channel", "channel list"), read(says="ntfy", after="channel")),
    "channel add": Journey(
        lambda s: ["ntfy", s.name("phone"), "--server", "http://127.0.0.1:9", "--allow-private"], "is added"
    ),
    "channel pair": of("channel", says="is open for pairing"),
    "channel remove": of("channel", says="is removed"),
    "timer list": read(says="agent-", after="timer"),
    "timer run": of("timer", says="is due now"),
    "timer cancel": of("timer", says="is cancelled"),
    "trigger": read(says="clerk"),
    "trigger list": read("ops", says="ops"),
    "trigger create": Journey(lambda s: ["ops", s.name("ci"), "--say", "A build."], "is active"),
    "trigger url": of("trigger", says="/callbacks/"),
    "trigger rotate": of("trigger", says="has a new address"),
    "trigger revoke": of("trigger", says="revoked"),
    "trigger deliver": of("address", "--body", '{"ok": true}', says="accepted"),
    "memory": read("archivist", says="Server"),
    "memory list": read("archivist", "--find", "orca", says="Server"),
    "memory show": read("archivist"),
    "memory edit": of("memory", "It is beluga now.", before=("archivist",), says="has the new text"),
    "memory forget": of("memory", before=("archivist",), says="forgotten"),
    "work": read("ops", says="Make the beds", after="work_item"),
    "work add": Journey(lambda s: ["ops", s.name("Make the beds")], "is in the queue"),
    "skills": of("skill", says="Tidy up")._replace(arguments=lambda s: [*s.skill()][:1]),
    "skills show": of("skill", says="Begin upstairs"),
    **dict.fromkeys(("task", "task list"), read("builder", says="sleep 600", after="task")),
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
    "approvals": read(says="refund", after="approval"),
    "approvals list": read("--all", says="refund", after="approval"),
    "approvals show": of("approval", says="refund"),
    "approvals approve": of("approval", says=DECIDED),
    "approvals reject": of("approval", says=DECIDED),
    "approvals edit": of("approval", "cents=7", says="now  refund(cents=7)"),
    "approvals answer": of("approval", "it was paid back", says=DECIDED),
    "approvals always": of("approval", "--for", "1h", says="new rule"),
    "approvals rules": read("--all", says="refund", after="rule"),
    "approvals reask": of("expired", says="it may ask again"),
    "approvals revoke": of("rule", says="was revoked by"),
    **dict.fromkeys(("workflow", "workflow list"), read(says="flow-", after="workflow")),
    "workflow nodes": read(),
    "workflow show": of("workflow", says="flow-"),
    "workflow validate": Journey(lambda s: [f"{s.workflow()}.json"], "is valid"),
    "workflow save": Journey(lambda s: [f"{s.workflow()}.json"], "revision 2"),
    "workflow runs": read(says="flow-", after="workflow_run"),
    "workflow cancel": of("workflow_run", says="was asked to stop"),
    "workflow delete": of("workflow", says="deleted"),
    **dict.fromkeys(("dispatch", "dispatch list"), read(after="dispatched")),
    "dispatch show": of("dispatched", says="approval_required"),
    "dispatch cancel": of("dispatched", says="was asked to stop"),
    "targets": read("--tools", "shop:other", says="local"),
    "unknown": Journey(lambda s: [s.unknown()][:0], "ship"),
    "resolve": of("unknown", "--happened", "shipped", says="happened: shipped"),
    "requests": Journey(lambda s: [s.request()][:0], "client/pick_file"),
    "requests list": read(says="client/pick_file", after="request"),
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
    **dict.fromkeys(("mcp", "mcp list"), Journey(lambda s: ["--config", s.servers()], "github", same=True)),
    "daemon status": Journey(says="the daemon runs"),
    "daemon logs": Journey(),
    "token list": read(says="phone-", after="token"),
    "token revoke": of("token", says="is revoked"),
    "token create": Journey(lambda s: [s.name("phone")], "phone-"),
    "store stats": Journey(says="wakeful.db"),
    "store compact": Journey(),
    "store verify": read(says="every row is as it was written"),
    "store export": Journey(lambda s: [f"{s.name('logs')}.jsonl"], "written to"),
    "store import": of("logs", says="taken in from"),
    "schema": read("agent"),
}
NO_JSON = ("schema",)
"""What is printed is JSON already."""
NEVER = ("chat --store",)
"""It is refused: a chat needs a daemon."""
MARK = re.compile(r"mark\.journey\(([^)]*)\)")


def test_every_command_has_a_journey() -> None:
    """Here, or in a test that says so: one that ends the daemon, or needs a model, a person, a program outside or a
    process of its own. `pytest_runtest_call` of these suites sees to it that the test runs what it says."""
    tests = Path(__file__).parents[1]
    marks = [found[1] for path in tests.rglob("test_*.py") for found in MARK.finditer(path.read_text())]
    said = {way for mark in marks for way in re.findall(r'"([^"]+)"', mark)}
    assert set(JOURNEYS) <= set(COMMANDS)
    assert said == {way for name in COMMANDS if name not in JOURNEYS for way in ways_of(name)} - set(NEVER)


def test_only_what_a_test_runs_is_its_journey() -> None:
    ways = ["approvals reask", "approvals reask --json", "approvals reask --store"]
    calls = [Call(("approvals", "reask", "appr_1"), 2), Call(("approvals", "--json"), 0)]
    assert not_run(ways, calls) == ways
    calls += [Call(("approvals", "reask", "appr_1", "--json", "--store=runs.db"), 0)]
    assert not_run(ways, calls) == ["approvals reask"]
    assert not_run(ways, [*calls, Call(("approvals", "reask", "appr_1"))]) == []


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
    if journey.same and name in ("tail", "transcript", "tree"):
        stage.told("run", "hello", "--agent", "clerk")
    words = stage.wakeful(*verb, *journey.arguments(stage))
    assert words.code == journey.code and "Traceback" not in words.err, words
    assert journey.says in words.out, words
    ways = ways_of(name)
    assert (f"{name} --json" in ways) != (name in NO_JSON), f"{name} takes no --json"
    if name in NO_JSON:
        return
    asked = journey.arguments(stage)
    by_daemon = stage.wakeful(*verb, *asked, "--json")
    assert by_daemon.code == journey.code, by_daemon
    found = documents(by_daemon)
    assert any(found), "nothing is compared with nothing"
    if f"{name} --store" not in ways:
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
