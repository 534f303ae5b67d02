"""What people mistype, and what they are told: one voice, the value that is wrong, and what to do next."""

import json
import shlex
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful

HELP = "options and an example: wakeful {} --help"
TURNS = "list the turns: wakeful events"
WRONG: dict[str, tuple[str, str]] = {
    # commands
    "runn hello": ("there is no command 'runn'", "did you mean wakeful run?"),
    "approvals aprove x": ("there is no command 'approvals aprove'", "did you mean wakeful approvals approve or "),
    "models lst": ("there is no command 'models lst'", "did you mean wakeful models list or wakeful models test?"),
    "debug": ("wakeful debug needs one more word", "there are: wakeful debug prompt, wakeful debug latency, "),
    "logs": ("there is no command 'logs'", "did you mean wakeful daemon logs or wakeful tail?"),
    "timer create ops": (
        "there is no command 'timer create'",
        "times stand in an agent's file: wakeful agent new NAME --at",
    ),
    "agent edit ops": ("there is no command 'agent edit'", "edit its file, agents/NAME.yaml in the home"),
    "work remove ops 1": ("there is no command 'work remove'", "an agent closes its items itself. Tell it: "),
    "turns": ("there is no command 'turns'", "did you mean wakeful events?"),
    "zzz": ("there is no command 'zzz'", "list the commands: wakeful --help"),
    # a run
    "run": ("the prompt is empty", 'say something: wakeful run "hello"'),
    "prompt ''": ("the prompt is empty", 'say something: wakeful prompt "hello"'),
    "run '  '": ("the prompt is empty", 'say something: wakeful run "hello"'),
    "run hello --modle x": ("no such option: --modle", "did you mean --model? All options: wakeful run --help"),
    "run hello --model nope:x": ("there is no provider 'nope'", "there are: anthropic"),
    "run hello --model scripted:nope.yaml": ("nope.yaml: there is no such script", "did you mean "),
    "run hello --model gpt": (
        "Agent 'assistant': model='gpt' does not name a provider",
        "write provider:model, such as anthropic:claude-opus-4-7 (`wakeful models` lists them)",
    ),
    "run hello --max-steps 0": ("invalid value for '--max-steps': it must be 1 or more", HELP.format("run")),
    "run hello --max-steps many": ("invalid value for '--max-steps': it must be a whole number", HELP.format("run")),
    "run hello --budget-usd much": (
        "Budget: usd='much' is not an amount of money",
        "give an amount in dollars, 0 or more",
    ),
    "run hello --budget-usd -1": ("Budget: usd='-1' is not an amount of money", "give an amount in dollars, 0 or more"),
    "run hello --budget-seconds 0": ("Budget: seconds=0.0 is not a valid time", "give a positive number of seconds"),
    "run hello --tools shop": ("--tools shop is not MODULE:NAME", "write it like this: --tools shop:refund"),
    "run hello --tools shop.py:refund": (
        "--tools takes a module, not the file shop.py",
        "write --tools shop:refund",
    ),
    "run hello --tools shp:refund": (
        "there is no module 'shp' (from --tools shp:refund)",
        "did you mean --tools shop:refund?",
    ),
    "run hello --tools shop:refnd": ("the module 'shop' has no 'refnd'", "did you mean --tools shop:refund?"),
    "run hello --tools shop:price": ("shop:price is not a tool but of type int", "name a function, a tool made with"),
    "run hello --tools unfinished:tool": (
        "the module unfinished cannot be imported: ModuleNotFoundError",
        "raised at ",
    ),
    "run hello --agent nope.yaml": ("nope.yaml cannot be read: No such file or directory", "name a YAML or JSON file"),
    "run hello --agent bad.yaml": (
        "bad.yaml holds a list, not an agent's configuration",
        "name a YAML or JSON file",
    ),
    "run hello --agent typo.yaml": (
        "the configuration of agent 'a' has no field 'instrutions'",
        "did you mean instructions",
    ),
    "run hello --tools shop:clerk --agent good.yaml": (
        "a run has one agent, and several were named: clerk, good.yaml",
        "leave all but one out",
    ),
    "run hello --approve nope": ("--approve nope: no tool of this run has that name", "there are: wakeful/"),
    "run hello --profile codng": ("Agent 'assistant': profile='codng'", "give one of: coding, shell_first, chat"),
    "run hello --workspace nope": ("Agent 'assistant': workspace: ", "make it first, or give another one"),
    "run hello --image nope.png": (
        "nope.png cannot be read: No such file or directory",
        "give a picture: --image photo.png",
    ),
    "run hello --image shop.py": (
        "shop.py is not a picture but text/x-python",
        "attach it as a file: --file shop.py",
    ),
    "run hello --file nope.pdf": (
        "nope.pdf cannot be read: No such file or directory",
        "give a file: --file report.pdf",
    ),
    "run hello --mcp github": ("there is no MCP server 'github' in ", "add one: docs/guides/mcp.md"),
    "run hello --store .": (". is a folder, not a store", "name a file in it: --store runs.db"),
    "run hello --store no/such/runs.db": (
        "there is no folder no/such to put the store runs.db in",
        "mkdir -p no/such",
    ),
    # turns
    "resume turn_zzzz": ("there is no turn 'turn_zzzz' in ", TURNS),
    "resume --store nope.db": ("there is no store nope.db", 'this creates it: wakeful run "hello" --store nope.db'),
    "cancel": ("missing argument 'TURN'", HELP.format("cancel")),
    "cancel ticket-404": ("there is no turn 'ticket-404' in ", TURNS),
    "pause ticket-404": ("there is no turn 'ticket-404' in ", TURNS),
    "interject ticket-404 hi": ("there is no turn 'ticket-404' in ", TURNS),
    "replay ticket-404": ("there is no turn 'ticket-404' in ", TURNS),
    "tree ticket-404": ("there is no turn 'ticket-404' in ", TURNS),
    "artifacts ticket-404": ("there is no turn 'ticket-404' in ", TURNS),
    "artifacts show 4be1c0": ("there is no artifact '4be1c0' in ", "list them: wakeful artifacts TURN"),
    "context ticket-1 --step 99": ("turn turn_", "it has 1 to 1"),
    "events --kind model.requested": ("--kind needs a turn", "name one: wakeful events TURN"),
    "events ticket-1 --kind nope": ("no event is called 'nope'", "for example "),
    "events ticket-1 --as transcript --kind tool.result": (
        "--kind filters the log, and --as transcript shows another view",
        "leave one of them out",
    ),
    "events ticket-1 --as nope": ("invalid value for '--as'", HELP.format("events")),
    # approvals, unknown outcomes, client requests
    "approvals show appr_zzzz": ("there is no approval 'appr_zzzz' in ", "list pending approvals: wakeful approvals"),
    "approvals approve nope": ("there is no approval 'nope' in ", "list pending approvals: wakeful approvals"),
    "approvals edit nope": (
        "no change was given",
        "name the arguments to change: wakeful approvals edit nope NAME=VALUE",
    ),
    "approvals edit nope cents": ("'cents' is not NAME=VALUE", "write it like this: cents=4200"),
    "approvals edit nope --arguments {": ("--arguments is not JSON: ", "write it like this: --arguments "),
    "approvals always nope --for soon": (
        "--for soon is not a duration",
        "give a number and s, m, h, d or w: --for 7d",
    ),
    "approvals always nope --tool --pattern x": ("--tool and --pattern were both given", "give one of them"),
    "approvals revoke rule_nope": ("there is no rule 'rule_nope' in ", "list the rules: wakeful approvals rules"),
    "resolve call_9": (
        "resolve needs --happened TEXT or --did-not-happen, and not both",
        'wakeful resolve call_9 --happened "its result"',
    ),
    "resolve call_9 --happened x": ("there is no call 'call_9' with an unknown outcome in ", "list unknown outcomes"),
    "why call_9": ("there is no call 'call_9' in ", "list the calls of a turn: wakeful tree TURN"),
    "requests submit nope": (
        "submit needs a result as JSON or --error TEXT, and not both",
        "wakeful requests submit nope",
    ),
    "requests submit nope {": ("the result is not JSON ", "quote a text: "),
    "requests show nope": ("there is no request 'nope' in ", "list pending requests: wakeful requests"),
    # money
    "cost --by colour": ("--by colour: there is no such grouping", "give one of: model, agent, day, depth"),
    "cost --today --all": ("--today, --since and --all exclude each other", "give one of them"),
    "cost --since yesterday": ("--since 'yesterday' is not a day", "write 2026-11-01, or 2026-11-01T08:00"),
    "cost --turn ticket-1 --agent a": (
        "--turn and --agent were both given",
        "a turn has one agent: leave --agent out",
    ),
    "budget grant": ("missing option '--usd'", HELP.format("budget grant")),
    "budget grant --usd 5 --window week": ("--window week: there is no such period", "give one of: hour, day, month"),
    "budget grant --usd five --window day": ("grant: usd='five'", "give an amount in dollars, 0 or more"),
    # the rest
    "models show nope:x": ("there is no provider 'nope'", "there are: anthropic"),
    "models list --provider opnai": ("there is no provider 'opnai'", "did you mean openai"),
    "mcp tools github": ("there is no MCP server 'github' in ", "add one: docs/guides/mcp.md"),
    "mcp approve github": ("no tool of an MCP server 'github' was ever seen", "list the servers: wakeful mcp list"),
    "trust nope": ("nope cannot be read: No such file or directory", "name a file or a folder."),
    "schema event": ("there is no schema 'event'", "there are: events, standard-events"),
    "demo crsh": ("there is no demo 'crsh'", "did you mean wakeful demo crash?"),
    "workflow show nope": ("there is no workflow 'nope' in ", "none is saved in this store."),
    "workflow validate nope.json": ("nope.json cannot be read: No such file or directory", "name a JSON file"),
    "workflow validate shop.py": ("shop.py is not a valid workflow", "invalid_graph: not JSON"),
    "dispatch show nope": ("there is no dispatched run 'nope'", "list them: wakeful dispatch list"),
    "package run shop.py": ("shop.py is not JSON: ", "name a JSON file"),
    "store forget .": (". is a folder, not a store", "name the file"),
}


@pytest.fixture
def typed(folder: Path, wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch) -> Wakeful:
    """A user's folder with a few files that are not what they should be, and one finished turn."""
    monkeypatch.delenv("WAKEFUL_STORE", raising=False)
    (folder / "unfinished.py").write_text("import nothing_like_it\n")
    (folder / "bad.yaml").write_text("- a list\n")
    (folder / "good.yaml").write_text("name: a\nmodel: scripted:demo\n")
    (folder / "typo.yaml").write_text("name: a\nmodel: scripted:demo\ninstrutions: x\n")
    assert wakeful("run", "hello", "--key", "ticket-1", "--profile", "chat").code == 0
    return wakeful


def test_there_are_enough_of_them() -> None:
    assert len(WRONG) >= 60


def test_each_is_told_with_its_value_and_what_to_do_next(typed: Wakeful) -> None:
    for words, (message, hint) in WRONG.items():
        done = typed(*shlex.split(words))
        assert (done.code, done.out) == (2, ""), words
        first, *rest = done.err.splitlines()
        assert first.startswith(f"Error: {message}"), words
        told = [line for line in rest if line.startswith("Hint: ")]
        assert len(told) == 1 and told[0].startswith(f"Hint: {hint}"), (words, rest)
        assert "Traceback" not in done.err, words


@pytest.mark.parametrize("words", ["run hello --modle x", "tree ticket-404", "events --store nope.db", "zzz"])
def test_a_program_gets_the_same_as_json_on_stdout(typed: Wakeful, words: str) -> None:
    for_people = typed(*words.split())
    done = typed(*words.split(), "--json")
    assert (done.code, done.err) == (for_people.code, "")
    error = json.loads(done.out)["error"]
    assert error["exit_code"] == 2 and for_people.err.startswith(f"Error: {error['message']}\n")
    assert set(error) == {"type", "message", "hint", "exit_code"}


def test_a_wrong_run_leaves_no_turn_behind(typed: Wakeful) -> None:
    for words in ("run hello --mcp github", "run hello --model nope:x", "run hello --image nope.png"):
        assert typed(*words.split()).code == 2
    assert len(typed("events", "--json").out.splitlines()) == 1


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="this system has no such place")
@pytest.mark.parametrize(
    "line",
    [
        "run hello",
        "init --model scripted:demo --yes",
        "agent new ops --say hello --model scripted:demo",
        "agent create ops --model scripted:demo",
        "daemon start --listen none",
        "token create phone",
    ],
)
def test_a_home_that_cannot_be_made_is_told_in_a_sentence(
    wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    home = Path("/proc/nowhere")  # where nobody makes a folder, not even root
    monkeypatch.setenv("WAKEFUL_HOME", str(home))
    done = wakeful(*shlex.split(line))
    assert done.code != 0 and "Traceback" not in done.err, done
    assert f"Error: {home}" in done.err and " cannot be used: No such file or directory" in done.err, done.err
    assert f"see whose it is: ls -ld {home}; or name another home: WAKEFUL_HOME=FOLDER" in done.err
    told = json.loads(wakeful(*shlex.split(line), "--json").out)["error"]
    assert (told["type"], told["exit_code"]) == ("Failure", 1)
