"""`wakeful check` and `Runtime.check`: the files of a home, before anything runs with them."""

import json
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from wakeful import Runtime, tool
from wakeful.errors import InvalidRequest

AS_PRINTED = """\
name: ops
model: anthropic:claude-opus-4-7
fallbacks: [openai:gpt-5.5]
instructions_file: ops.AGENTS.md
tools: [coding, refund, mcp.github/*]
hitl_tools: [refund, mcp.github/merge_*]
budget: {per_run: {usd: 0.50, model_calls: 40, minutes: 20}, per_day: {usd: 2}}
wake: [{cron: "0 7 * * 1-5", timezone: Europe/Berlin, say: "Check the backups."}, {trigger: ci, say: "A build."}]
notify: {to: phone, on: [action_required, failure, budget]}
workspace: ./shop
"""
BAD = """\
name: bad
modle: x:y
model: scripted:demo
tools: [refnd, look]
wake:
  - {cron: "0 7 * * 1-5", say: a}
  - {cron: "0 77 * * 1-5", say: a}
  - cron: "0 7 * * 1-5"
    timezone: Europe/Berln
    say: b
  - {cron: "0 7 * * *", sya: b, say: x}
budget:
  per_day: {usd: -1}
  model_calls: 3
max_steps: 0
"""
BAD_OWNER = """\
stoer = "x"
[models]
alow = []
deny = "x"
[notify.phone]
to = "https://ntfy.example/x"
quite = "22:00-07:00"
[[hooks]]
command = ["true"]
[[hooks]]
comand = ["true"]
[providers.vllm]
base_url = "127"
keyenv = "x"
[runtime]
foo = 1
[budget]
per_day = {usd = "x"}
[retention]
turns = "long"
[collections.handbook]
foldr = "x"
"""


def lines(report: str) -> list[tuple[str, int | None, str, str]]:
    """File, line, field and level of each problem."""
    found = json.loads(report)["problems"]
    return [(Path(each["place"]).name, each["line"], each["field"], each["level"]) for each in found]


@pytest.fixture
def home(folder: Path) -> Path:
    home = folder / "home"
    (home / "agents").mkdir(parents=True)
    (home / "shop").mkdir()
    return home


def test_the_file_of_the_design_is_right_and_everything_in_it_counts(
    wakeful: Wakeful, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (home / "agents" / "ops.yaml").write_text(AS_PRINTED)
    (home / "agents" / "ops.AGENTS.md").write_text("Look after the backups.")
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"github": {"command": "true"}}}))
    (home / "wakeful.toml").write_text('[notify.phone]\nto_env = "PHONE_URL"\nquiet = "22:00-07:00"\n')
    before = sorted(path for path in home.rglob("*"))
    done = wakeful("check", "--tools", "shop:refund")
    assert (done.code, done.out) == (0, f"2 files of {home}: no errors\n")
    assert sorted(path for path in home.rglob("*")) == before, "nothing is written"
    (warning,) = lines(wakeful("check", "--json").out)
    assert warning == ("ops.yaml", 5, "tools.1", "warning"), "without code nobody can know the tool"
    misspelt = wakeful("check", "--tools", "shop:ship")
    assert misspelt.code == 2 and "names the tool 'refund', which was not supplied" in misspelt.out


def test_each_problem_has_its_file_its_line_and_a_near_name(wakeful: Wakeful, home: Path) -> None:
    (home / "agents" / "bad.yaml").write_text(BAD)
    (home / "agents" / "worse.yaml").write_text("name: worse\nmodel: [unclosed\n")
    (home / "agents" / "twice.json").write_text('{"name": "twice",\n "model": "scripted:demo",\n "name": "again"}')
    (home / "wakeful.toml").write_text(BAD_OWNER)
    done = wakeful("check", "--tools", "shop:refund", "--json")
    assert done.code == 2
    assert lines(done.out) == [
        ("bad.yaml", 2, "modle", "error"),
        ("bad.yaml", 4, "tools.0", "error"),
        ("bad.yaml", 4, "tools.1", "error"),
        ("bad.yaml", 7, "wake.1.cron", "error"),
        ("bad.yaml", 9, "wake.2.timezone", "error"),
        ("bad.yaml", 11, "wake.3.sya", "error"),
        ("bad.yaml", 13, "budget.per_day", "error"),
        ("bad.yaml", 14, "budget.model_calls", "error"),
        ("bad.yaml", 15, "max_steps", "error"),
        ("twice.json", 3, "", "error"),
        ("worse.yaml", 3, "", "error"),
        ("wakeful.toml", 1, "stoer", "error"),
        ("wakeful.toml", 3, "models.alow", "error"),
        ("wakeful.toml", 4, "models.deny", "error"),
        ("wakeful.toml", 7, "notify.phone.quite", "error"),
        ("wakeful.toml", 11, "hooks.1.comand", "error"),
        ("wakeful.toml", 13, "providers.vllm.base_url", "error"),
        ("wakeful.toml", 14, "providers.vllm.keyenv", "error"),
        ("wakeful.toml", 16, "runtime.foo", "error"),
        ("wakeful.toml", 18, "budget.per_day", "error"),
        ("wakeful.toml", 20, "retention.turns", "error"),
        ("wakeful.toml", 21, "collections.handbook", "error"),
    ]
    hints = {each["field"]: each["hint"] for each in json.loads(done.out)["problems"]}
    assert hints["modle"] == "did you mean model?"
    assert hints["tools.0"].startswith("did you mean refund?")
    assert hints["wake.3.sya"].startswith("did you mean say?")
    assert hints["stoer"] == "Did you mean store?"
    assert hints["notify.phone.quite"] == "Did you mean quiet?"
    shown = wakeful("check", "--tools", "shop:refund").out
    assert f"{home}/agents/bad.yaml:2: error: the configuration of agent 'bad' has no field 'modle'\n" in shown
    assert shown.endswith(f"4 files of {home}: 22 errors\n")


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("name: a\nmodel: antropic:x\n", 2, "there is no provider 'antropic'"),
        ("name: a\nmodel: scripted:demo\nnotify: {to: phone}\n", 3, "there is no [notify.phone]"),
        ("name: a\nmodel: scripted:demo\nmcp: [github]\n", 3, "there is no MCP server 'github'"),
        ("name: a\nmodel: scripted:demo\ninstructions_file: gone.md\n", 3, "gone.md cannot be read"),
        ("name: a\nmodel: scripted:demo\ninstructions_file: a\ninstructions: b\n", 3, "has instructions and"),
        ("name: a\nmodel: scripted:demo\nworkspace: ./gone\n", 3, "gone is not a folder"),
        ("name: a\nmodel: scripted:demo\ntools: [coding]\n", None, "works on files, and no workspace was given"),
        ("name: a\nmodel: scripted:demo\ntools: [mcp.x/one]\n", 3, "only all tools of a server can be named"),
        ("name: a\nmodel: scripted:demo\nprofile: chat\ntools: [coding]\n", 4, "has the profiles chat and coding"),
        ("name: a\nmodel: scripted:demo\nspawn: [1]\n", 3, "spawn=[1]"),
    ],
)
def test_names_that_lead_nowhere_are_found_before_anything_runs(
    wakeful: Wakeful, home: Path, text: str, line: int | None, says: str
) -> None:
    (home / "agents" / "a.yaml").write_text(text)
    done = wakeful("check", "--json")
    (problem,) = [each for each in json.loads(done.out)["problems"] if each["level"] == "error"]
    assert done.code == 2 and says in problem["message"]
    assert line is None or problem["line"] == line
    assert problem["hint"]


def test_a_home_by_its_path_and_what_is_not_in_force_there(wakeful: Wakeful, home: Path, folder: Path) -> None:
    other = folder / "other"
    (other / "agents").mkdir(parents=True)
    assert "there are no files in" in wakeful("check", "other").out
    (other / "agents" / "a.yaml").write_text("name: a\nmodel: scripted:demo\n")
    (other / "wakeful.toml").write_text("[retention]\nturns = 3\n")
    done = wakeful("check", "other", "--json")
    (warning,) = json.loads(done.out)["problems"]
    assert done.code == 0 and warning["message"] == f"it is not in force: the owner's file is {home}/wakeful.toml"
    assert json.loads(done.out)["agents"] == ["a"]
    assert wakeful("check", "nowhere").code == 2


def test_a_program_checks_its_home_with_its_own_tools(home: Path) -> None:
    @tool(effect="pure")
    def refund() -> str:
        """Give it back."""
        return ""

    (home / "agents" / "a.yaml").write_text("name: a\nmodel: scripted:demo\ntools: [refund]\n")
    assert Runtime(home, tools=[refund]).check().valid
    report = Runtime(home).check()
    (problem,) = report.problems
    assert (report.valid, problem.line, problem.agent) == (False, 3, "a")
    assert not (home / "wakeful.db").exists()
    with pytest.raises(InvalidRequest, match="no files"):
        Runtime(store="x.db").check()
