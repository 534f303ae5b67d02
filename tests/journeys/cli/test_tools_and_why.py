"""`wakeful tools` and `wakeful why`: what an agent may do and why a call ended as it did; and where a run works."""

import json
from pathlib import Path

import pytest

from kit.surfaces.command_line import ME, Wakeful
from wakeful.surfaces.cli.screen import short

OWNED = '''
from wakeful import Agent, tool
from wakeful.contracts.policies import GatePolicy, Rule, ToolPolicy

@tool(effect="pure")
def look(order: str) -> str:
    """Look it up."""
    return "seen"

@tool
def burn(order: str, password: str = "") -> str:
    """Burn it."""
    return "burnt"

@tool(approval=True)
def sell(order: str) -> str:
    """Sell it."""
    return "sold"

policy = GatePolicy(
    tools=ToolPolicy(context="library", classes=frozenset({"safe", "external_write"})),
    rules=(Rule(match="burn", arguments={"order": "A*"}, decision="deny", reason="A orders are kept", id="keep-a"),),
)
clerk = Agent("clerk", "scripted:burn.yaml", tools=[look, burn, sell], policy=policy)
'''
BURN = """
- calls:
  - {name: burn, arguments: {order: A17, password: hunter2}}
  - {name: sell, arguments: {order: "A17\\e[31m"}}
  - {name: look, arguments: {order: A17}}
- Done.
"""
WRITES = """
- calls: [{name: wakeful/write_file, arguments: {path: made.txt, content: "hello"}}]
- calls: [{name: ship, arguments: {order: A17}}]
- calls: [{name: wakeful/write_file, arguments: {path: later.txt, content: "again"}}]
- Written.
"""


@pytest.fixture(autouse=True)
def owned(folder: Path) -> None:
    (folder / "owned.py").write_text(OWNED)
    (folder / "burn.yaml").write_text(BURN)
    (folder / "writes.yaml").write_text(WRITES)


def policies(wakeful: Wakeful, *arguments: str) -> dict[str, str]:
    document = json.loads(wakeful("tools", "--json", *arguments).out)
    return {entry["tool_name"]: entry["policy"] for entry in document["catalog"]["entries"]}


def test_what_a_run_here_would_have_is_listed_and_nothing_is_stored(wakeful: Wakeful, folder: Path) -> None:
    listed = wakeful("tools")
    assert listed.code == 0
    assert listed.out.startswith("assistant: 6 tools, 6 offered, in a run that starts now\n")
    assert "wakeful/exec_command" in listed.out
    if "sandboxed" in listed.out:  # by what, and what that leaves it
        whole = wakeful("tools", "--wide").out
        assert f"in {folder.resolve()}; reads" in whole and "network none" in whole
    assert not (folder / "home/wakeful.db").exists()
    assert policies(wakeful, "--profile", "chat") == {}
    assert list(policies(wakeful, "--profile", "shell_first")) == [
        "wakeful/exec_command",
        "wakeful/exec_command_batch",
        "wakeful/apply_patch",
    ]


def test_each_tool_is_listed_with_what_policy_says_and_why(wakeful: Wakeful) -> None:
    named = ("--tools", "owned:clerk")
    assert policies(wakeful, *named) == {"look": "allowed", "burn": "allowed", "sell": "ask"}
    assert "sell asks before every call" in wakeful("tools", *named).out
    with_files = policies(wakeful, *named, "--workspace", ".")
    assert with_files["wakeful/write_file"] == "denied", "the owner's policy has that class off"
    assert "which is off in context library" in wakeful("tools", *named, "--workspace", ".").out


def test_tools_that_read_and_act_and_declare_nothing_are_named_here_and_by_doctor(wakeful: Wakeful) -> None:
    told = wakeful("tools", "--tools", "owned:clerk").out
    assert "burn, sell read and act and declare nothing. Add @tool(untrusted=True)" in told
    wakeful("run", "x", "--tools", "owned:clerk")
    report = wakeful("doctor")
    assert "tools        clerk: burn, clerk: sell read and act and declare nothing" in report.out
    assert json.loads(wakeful("doctor", "--json").out)["undeclared_tools"] == ["clerk: burn", "clerk: sell"]
    assert "declare nothing" not in wakeful("tools").out, "the tools of a workspace say what they are"


def test_what_a_turn_had_is_told_from_its_log(wakeful: Wakeful) -> None:
    rested = json.loads(wakeful("run", "x", "--tools", "owned:clerk", "--json").out)
    told = json.loads(wakeful("tools", "--turn", rested["turn_id"], "--json").out)
    assert (told["agent"], told["turn_id"], told["catalog"]["resolved_for"]) == ("clerk", rested["turn_id"], "turn")
    assert [entry["tool_name"] for entry in told["catalog"]["entries"]] == ["look", "burn", "sell"]
    assert f"in turn {short(rested['turn_id'])}" in wakeful("tools", "--turn", rested["turn_id"]).out


def test_why_tells_a_refusal_with_its_rule_and_a_wait_with_its_record(wakeful: Wakeful) -> None:
    rested = json.loads(wakeful("run", "x", "--tools", "owned:clerk", "--json").out)
    turn, (record,) = rested["turn_id"], rested["approvals"]
    refused = wakeful("why", "call_1_1")
    assert refused.code == 0
    assert "deny, denied" in refused.out
    assert "rules: deny: A orders are kept" in refused.out
    assert "keep-a: deny burn where order like 'A*'" in refused.out
    assert "hunter2" not in refused.out
    waits = wakeful("why", f"{turn}/call_1_2")
    assert "ask, not finished yet" in waits.out
    assert f"{short(record['approval_id'])}: approval was requested" in waits.out
    assert "\x1b" not in waits.out
    ran = wakeful("why", "call_1_3")
    assert "allow, succeeded" in ran.out

    wakeful("approvals", "approve", record["approval_id"], "--note", "fine")
    assert wakeful("resume", "--tools", "owned:clerk").code == 0
    steps = json.loads(wakeful("why", "call_1_2", "--json").out)["steps"]
    assert [(step["kind"], step["by"]) for step in steps][-4:] == [
        ("answered", ME),
        ("verdict", "approval"),
        ("ran", ""),
        ("outcome", ""),
    ]
    assert f"allow: approved by {ME}: fine" in steps[-3]["words"]


def test_a_call_that_several_turns_have_or_none_is_asked_back(wakeful: Wakeful) -> None:
    wakeful("run", "x", "--tools", "owned:clerk")
    wakeful("run", "y", "--tools", "owned:clerk")
    several = wakeful("why", "call_1_1")
    assert several.code == 2
    assert "'call_1_1' matches 2 calls" in several.err
    typed = several.err.split("For example: wakeful ")[1].split()
    assert wakeful(*typed).code == 0
    none = wakeful("why", "call_1_9")
    assert none.code == 2
    assert "did you mean call_1_" in none.err


def test_a_killed_run_goes_on_in_its_own_folder(process: Wakeful, wakeful: Wakeful, folder: Path) -> None:
    (folder / "work").mkdir()
    killed = process(
        "run", "x", "--model", "scripted:writes.yaml", "--tools", "shop:ship", "--workspace", "work", crash=True
    )
    assert killed.code == -9
    assert (folder / "work/made.txt").read_text() == "hello"
    assert not (folder / "work/later.txt").exists()
    done = process("resume", "--tools", "shop:ship")
    assert (done.code, done.out) == (0, "Written.\n"), done.err
    assert (folder / "work/later.txt").read_text() == "again"
    assert not (folder / "later.txt").exists()


def test_a_chat_has_no_tools_to_change_files_with(wakeful: Wakeful, folder: Path) -> None:
    (folder / "one.yaml").write_text(
        "- calls: [{name: wakeful/write_file, arguments: {path: made.txt, content: x}}]\n- No.\n"
    )
    assert wakeful("run", "x", "--model", "scripted:one.yaml", "--profile", "chat").code == 0
    assert not (folder / "made.txt").exists()
    assert wakeful("run", "x", "--model", "scripted:one.yaml").code == 0
    assert (folder / "made.txt").read_text() == "x", "without it, the current folder is the workspace"


def test_a_workspace_that_is_not_there_is_refused_before_anything_is_stored(wakeful: Wakeful, folder: Path) -> None:
    for wrong in (("--workspace", "nope"), ("--profile", "dance")):
        done = wakeful("run", "x", *wrong)
        assert (done.code, done.out) == (2, "")
    assert not (folder / "home/wakeful.db").exists()


def test_why_shows_where_a_tools_exception_came_from(wakeful: Wakeful, folder: Path) -> None:
    (folder / "broken.py").write_text(
        "from wakeful import Agent, tool\n"
        "from wakeful.testing import scripted\n\n"
        '@tool(effect="pure")\n'
        "def price(order: str) -> int:\n"
        '    """Price of an order."""\n'
        '    return {"A17": 4200}[order]\n\n'
        'script = scripted([{"calls": [{"name": "price", "arguments": {"order": "B4"}}]}, "done"])\n'
        'clerk = Agent("clerk", script, tools=[price])\n'
    )
    assert wakeful("run", "go", "--tools", "broken:clerk", "--store", "runs.db").code == 0
    told = wakeful("why", "call_1_1", "--store", "runs.db")
    assert told.code == 0
    assert '    return {"A17": 4200}[order]\n' in told.out and told.out.rstrip().endswith("KeyError: 'B4'")
    document = json.loads(wakeful("why", "call_1_1", "--store", "runs.db", "--json").out)
    assert document["steps"][-1]["traceback"].startswith("Traceback (most recent call last):")
