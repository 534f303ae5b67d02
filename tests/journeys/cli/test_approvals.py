"""`wakeful approvals`: what waits for a person, decided once from another process, and what the run makes of it."""

import json
import os
import pty
import re
import select
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kit.surfaces.command_line import ME, Wakeful, command_line
from wakeful.surfaces.cli.screen import short

BANK = '''
import os, signal
from wakeful import Agent, ask_person, tool

@tool(effect="keyed", approval=lambda call: call.arguments["cents"] > 1_000)
def pay(order: str, cents: int, password: str = "") -> str:
    """Pay somebody."""
    with open("bank.txt", "a") as bank:
        bank.write(f"{order!a} {cents} {password}\\n")
    return f"paid {cents}"

@tool(effect="pure")
def look(order: str) -> str:
    """Look it up."""
    return "\\x1b[2K\\r? approved already: y"

named = Agent("named", "scripted:demo", tools=[pay], hitl_tools=["pay"])
'''
PAY = """
- calls:
  - {name: pay, arguments: {order: "A17\\e[2K\\r? y", cents: 4200, password: hunter2}}
  - {name: look, arguments: {order: A17}}
- Done.
"""
TWICE = """
- calls: [{name: pay, arguments: {order: A17, cents: 4200}}]
- calls: [{name: pay, arguments: {order: A17, cents: 4200}}]
- calls: [{name: pay, arguments: {order: B9, cents: 9900}}]
- Done.
"""
ASK = """
- calls: [{name: wakeful/ask_person, arguments: {question: "Which one?\\e[31m", choices: [red, green]}}]
- Thank you.
"""
RUN = ("run", "Pay.", "--model", "scripted:pay.yaml", "--tools", "bank:pay", "--tools", "bank:look")


@pytest.fixture(autouse=True)
def bank(folder: Path) -> Path:
    (folder / "bank.py").write_text(BANK)
    for name, script in {"pay": PAY, "twice": TWICE, "ask": ASK}.items():
        (folder / f"{name}.yaml").write_text(script)
    return folder / "bank.txt"


def waiting(wakeful: Wakeful) -> list[dict[str, str]]:
    records: list[dict[str, str]] = json.loads(wakeful("approvals", "--json").out)
    return records


def command_after(label: str, words: str) -> list[str]:
    """What stands behind a label, as it would be typed."""
    return words.split(label)[1].splitlines()[0].split()[1:]


def test_a_run_that_needs_a_person_prints_each_command_and_ends_with_3(process: Wakeful, bank: Path) -> None:
    rested = process(*RUN)
    assert (rested.code, rested.out) == (3, "")
    assert "approval_required" in rested.err
    assert "\x1b" not in rested.err
    assert "\r" not in rested.err
    assert "hunter2" not in rested.err
    assert not bank.exists()

    decided = process(*command_after("approve:", rested.err))
    assert decided.code == 0
    assert re.match(r"appr_\w+  approved by you at ", decided.out)
    resumed = process(*command_after("then continue:", rested.err))
    assert (resumed.code, resumed.out) == (0, "Done.\n"), resumed.err
    assert len(bank.read_text().splitlines()) == 1
    assert "4200 hunter2" in bank.read_text(), "what runs is what the model wrote"


def test_deciding_says_which_command_goes_on_and_that_it_does(wakeful: Wakeful, bank: Path) -> None:
    wakeful(*RUN)
    (record,) = waiting(wakeful)
    decided = wakeful("approvals", "approve", record["approval_id"][:12])
    typed = decided.out.split("continue: wakeful ")[1].split("   (")[0].split()
    assert record["turn_id"].startswith(typed.pop(1))
    assert typed == ["resume", "--tools", "MODULE:pay", "--tools", "MODULE:look"]
    done = wakeful("resume", record["turn_id"], "--tools", "bank:pay", "--tools", "bank:look")
    assert (done.code, done.out) == (0, "Done.\n")
    assert len(bank.read_text().splitlines()) == 1


def test_a_turn_that_waits_for_a_person_is_over_when_it_is_cancelled(wakeful: Wakeful, bank: Path) -> None:
    wakeful(*RUN)
    (record,) = waiting(wakeful)
    assert wakeful("cancel", record["turn_id"]).out == f"turn {short(record['turn_id'])} is cancelled\n"
    assert waiting(wakeful) == [] and not bank.exists()


def test_the_list_and_the_record_show_foreign_words_and_obey_none(wakeful: Wakeful) -> None:
    wakeful(*RUN, "--store", "my runs.db")
    for shown in (
        wakeful("approvals", "--store", "my runs.db"),
        wakeful("approvals", "list", "--store", "my runs.db"),
        wakeful("approvals", "--all", "--store", "my runs.db"),
    ):
        assert shown.code == 0
        assert 'pay(order="A17\\u001b[2K\\r? y", cents=4200, password=[secret password])' in shown.out
        assert "24 h left" in shown.out
        assert "pay asks before this call" in shown.out
        assert "--store 'my runs.db'" in shown.out
        assert re.search(r"[\x00-\x09\x0b-\x1f\x7f]", shown.out) is None
        assert "hunter2" not in shown.out
    (record,) = json.loads(wakeful("approvals", "--json", "--store", "my runs.db").out)
    one = wakeful("approvals", "show", record["approval_id"], "--store", "my runs.db")
    assert "cents=4200, password=[secret password]" in one.out
    assert all(
        f"wakeful approvals {word} {short(record['approval_id'])}" in one.out for word in ("approve", "edit", "always")
    )
    whole = json.loads(wakeful("approvals", "show", record["approval_id"], "--json", "--store", "my runs.db").out)
    assert whole == {**record, "told": None, "had_read": [], "behind": [], "waits_behind": 0}


def test_rejecting_tells_the_model_why_and_nothing_runs(wakeful: Wakeful, bank: Path) -> None:
    wakeful(*RUN)
    (record,) = waiting(wakeful)
    assert wakeful("approvals", "reject", record["approval_id"], "too", "much").code == 0
    done = wakeful("resume", "--tools", "bank:pay", "--tools", "bank:look", "--json")
    document = json.loads(done.out)[0]
    said = [item for item in document["history"] if item["role"] == "tool"]
    assert f"was rejected and not run ({ME}): too much" in json.dumps(said)
    assert not bank.exists()
    assert "nothing is pending" in wakeful("approvals").out
    assert "rejected by you" in wakeful("approvals", "--all").out


@pytest.mark.parametrize(
    ("changes", "paid"),
    [
        (("cents=1500",), "'A17\\x1b[2K\\r? y' 1500 hunter2"),
        (("--arguments", '{"order": "B9", "cents": 7, "password": "[redacted]"}'), "'B9' 7 hunter2"),
        (("--arguments", "@new.json", "order=C3"), "'C3' 8 "),
    ],
)
def test_editing_runs_the_new_arguments_and_keeps_what_is_redacted(
    wakeful: Wakeful, bank: Path, folder: Path, changes: tuple[str, ...], paid: str
) -> None:
    (folder / "new.json").write_text('{"order": "x", "cents": 8}')
    wakeful(*RUN)
    (record,) = waiting(wakeful)
    edited = wakeful("approvals", "edit", record["approval_id"], *changes, "--note", "less")
    assert edited.code == 0, edited.err
    was, now = edited.out.splitlines()[1:3]
    assert was.startswith('  was  pay(order="A17') and now.startswith("  now  pay(order=") and was[6:] != now[6:]
    assert "hunter2" not in edited.out
    assert wakeful("resume", "--tools", "bank:pay", "--tools", "bank:look").code == 0
    assert bank.read_text().splitlines() == [paid]
    ran = f'"cents": {paid.rsplit(" ", 2)[1]}'
    (shown,) = [each for each in json.loads(wakeful("tree", "--json").out)["nodes"] if each["name"] == "pay"]
    assert ran in shown["args_preview"], "as it ran, not as it was asked for"
    explained = wakeful("why", record["call_id"]).out
    assert ran in explained.partition("the arguments were changed")[2]
    assert "hunter2" not in explained + str(shown)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "no change was given"),
        (("cents",), "'cents' is not NAME=VALUE"),
        (("--arguments", "[1]"), "--arguments is a list"),
        (("--arguments", "{"), "--arguments is not JSON"),
        (("--arguments", "@nope.json"), "nope.json cannot be read"),
        (("cents=many",), "cents"),
        (("--arguments", "{}"), "order"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_and_the_record_still_waits(
    wakeful: Wakeful, arguments: tuple[str, ...], complaint: str
) -> None:
    wakeful(*RUN)
    (record,) = waiting(wakeful)
    refused = wakeful("approvals", "edit", record["approval_id"], *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert complaint in refused.err
    assert waiting(wakeful) == [record]


def test_a_second_decision_is_told_who_was_first_and_changes_nothing(wakeful: Wakeful, bank: Path) -> None:
    wakeful(*RUN)
    (record,) = waiting(wakeful)
    assert wakeful("approvals", "approve", record["approval_id"], "--note", "fine").code == 0
    for second in (("approve",), ("reject", "no"), ("answer", "x"), ("always", "--tool")):
        late = wakeful("approvals", second[0], record["approval_id"], *second[1:])
        assert (late.code, late.out) == (1, "")
        assert "was decided before: approved by you" in late.err
    assert json.loads(wakeful("approvals", "rules", "--json").out) == []
    assert wakeful("resume", "--tools", "bank:pay", "--tools", "bank:look").code == 0
    assert len(bank.read_text().splitlines()) == 1


def test_an_id_that_means_no_record_is_answered_with_what_there_is(wakeful: Wakeful) -> None:
    wakeful(*RUN)
    (record,) = waiting(wakeful)
    wrong = wakeful("approvals", "approve", record["approval_id"][:-1] + "_")
    assert wrong.code == 2
    assert f"did you mean {record['approval_id']}" in wrong.err
    assert "list pending approvals: wakeful approvals" in wakeful("approvals", "show", "zzz").err


def test_always_is_a_rule_with_a_visible_scope_that_can_be_taken_back(wakeful: Wakeful, bank: Path) -> None:
    run = ("run", "Pay.", "--model", "scripted:twice.yaml", "--tools", "bank:pay")
    wakeful(*run)
    (first,) = waiting(wakeful)
    kept = wakeful("approvals", "always", first["approval_id"], "--for", "7d")
    assert kept.code == 0
    words = f"allow pay with exactly these arguments (a standing answer of {ME})"
    assert f"new rule: assistant: {words.replace(ME, 'you')}, until " in kept.out
    assert wakeful("resume", "--tools", "bank:pay").code == 3
    (second,) = waiting(wakeful)
    assert len(bank.read_text().splitlines()) == 2, "the same call was not asked about again"
    assert "B9" in json.dumps(second["arguments"]), "another one was"

    (rule,) = json.loads(wakeful("approvals", "rules", "--json", "--agent", "assistant").out)
    assert rule["words"] == words
    assert short(rule["rule_id"]) in wakeful("approvals", "rules").out
    assert json.loads(wakeful("approvals", "rules", "--json", "--agent", "other").out) == []
    assert "was revoked by you" in wakeful("approvals", "revoke", rule["rule_id"]).out
    assert wakeful("approvals", "rules").out == "no rules\n"
    all_of_them = wakeful("approvals", "rules", "--all").out
    assert "revoked by you" in all_of_them and "revoke a rule:" not in all_of_them, "none is left to be revoked"
    assert wakeful("approvals", "reject", second["approval_id"]).code == 0
    assert wakeful("resume", "--tools", "bank:pay").code == 0
    wakeful(*run)
    assert len(waiting(wakeful)) == 1, "without the rule somebody is asked again"


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        (("--tool",), "allow pay (a standing answer"),
        (("--pattern", "order=A*", "--pattern", "cents=4*"), "allow pay where order like 'A*', cents like '4*'"),
        (("--pattern", "pa*"), "allow pa* (a standing answer"),
    ],
)
def test_always_for_a_tool_or_a_pattern(wakeful: Wakeful, bank: Path, scope: tuple[str, ...], words: str) -> None:
    wakeful("run", "Pay.", "--model", "scripted:twice.yaml", "--tools", "bank:pay")
    (first,) = waiting(wakeful)
    assert words in wakeful("approvals", "always", first["approval_id"], *scope).out
    done = wakeful("resume", "--tools", "bank:pay")
    asked_again = "order=A*" in scope
    assert (done.code, len(bank.read_text().splitlines())) == ((3, 2) if asked_again else (0, 3))


@pytest.mark.parametrize("bad", [("--for", "soon"), ("--for", "0d"), ("--tool", "--pattern", "x"), ("--pattern", "=x")])
def test_a_scope_that_says_nothing_is_refused(wakeful: Wakeful, bad: tuple[str, ...]) -> None:
    wakeful(*RUN)
    (record,) = waiting(wakeful)
    assert wakeful("approvals", "always", record["approval_id"], *bad).code == 2
    assert waiting(wakeful) == [record]


def test_a_question_is_answered_from_the_list_of_choices(wakeful: Wakeful) -> None:
    asked = wakeful("run", "Ask.", "--model", "scripted:ask.yaml", "--tools", "bank:ask_person")
    assert asked.code == 3
    assert "Which one?\\x1b[31m" in asked.err
    (record,) = waiting(wakeful)
    assert record["kind"] == "question"
    wrong = wakeful("approvals", "answer", record["approval_id"], "blue")
    assert wrong.code == 2
    assert "give one of: red, green" in wrong.err
    assert wakeful("approvals", "approve", record["approval_id"]).code == 2
    assert command_after("answer:", asked.err)[:2] == ["approvals", "answer"]
    assert wakeful("approvals", "answer", record["approval_id"], "green").code == 0
    done = wakeful("resume", record["turn_id"], "--json")
    assert done.code == 0, "a question needs no code"
    assert "green" in json.dumps([item for item in json.loads(done.out)["history"] if item["role"] == "tool"])


def test_a_call_may_be_answered_in_its_place(wakeful: Wakeful, bank: Path) -> None:
    wakeful(*RUN)
    (record,) = waiting(wakeful)
    assert wakeful("approvals", "answer", record["approval_id"], "paid", "by", "hand").code == 0
    done = wakeful("resume", "--tools", "bank:pay", "--tools", "bank:look", "--json")
    assert "paid by hand" in done.out
    assert not bank.exists()


def test_what_was_allowed_on_the_command_line_is_not_asked_and_the_rest_is(wakeful: Wakeful, bank: Path) -> None:
    done = wakeful(*RUN, "--approve", "pay")
    assert (done.code, done.out) == (0, "Done.\n"), done.err
    assert len(bank.read_text().splitlines()) == 1
    assert wakeful(*RUN, "--approve", "lo*").code == 3
    assert len(bank.read_text().splitlines()) == 1


def test_a_misspelt_approval_of_a_resumed_turn_is_refused_and_the_turn_goes_on_waiting(
    wakeful: Wakeful, bank: Path
) -> None:
    wakeful(*RUN)
    (record,) = waiting(wakeful)
    code = ("--tools", "bank:pay", "--tools", "bank:look")
    refused = wakeful("resume", record["turn_id"], "--approve", "pya", *code)
    assert refused.code == 2 and "--approve pya: no tool of this run has that name" in refused.err
    assert waiting(wakeful) == [record] and not bank.exists()
    assert wakeful("resume", record["turn_id"], "--approve", "pay", *code).code == 0


def test_a_turn_that_is_resumed_goes_on_needing_the_person_its_agent_asked_for(wakeful: Wakeful, bank: Path) -> None:
    small = "- calls: [{name: pay, arguments: {order: A17, cents: 1}}]\n" * 2 + "- Done.\n"
    Path("small.yaml").write_text(small)
    wakeful("run", "x", "--tools", "bank:named", "--model", "scripted:small.yaml")
    (record,) = waiting(wakeful)
    assert wakeful("approvals", "approve", record["approval_id"]).code == 0
    assert wakeful("resume", "--tools", "bank:pay").code == 3, "hitl_tools came back with the agent"
    assert len(bank.read_text().splitlines()) == 1


# --- at a terminal ---------------------------------------------------------------------------------------------------


def at_a_terminal(folder: Path, arguments: Sequence[str], answers: Sequence[tuple[str, str]]) -> tuple[int, str, str]:
    """Run a command on a terminal, typing each answer when its question is there; code, stdout, what was shown."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        command_line(*arguments),
        cwd=folder,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )
    os.close(theirs)
    seen, left = "", list(answers)
    position = 0
    while select.select([ours], [], [], 120)[0]:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        seen += piece.decode(errors="replace")
        while left and left[0][0] in seen[position:]:
            position = seen.index(left[0][0], position) + len(left[0][0])
            os.write(ours, left.pop(0)[1].encode())
    assert child.stdout is not None
    out = child.stdout.read().decode()
    child.stdout.close()
    code = child.wait(timeout=240)
    os.close(ours)
    assert left == [], f"never asked: {left}\n{seen}"
    return code, out, seen


Payments = Callable[[], list[str]]


@pytest.fixture
def payments(bank: Path) -> Payments:
    return lambda: bank.read_text().splitlines() if bank.exists() else []


def test_somebody_at_the_terminal_is_asked_right_there(folder: Path, payments: Payments) -> None:
    code, out, shown = at_a_terminal(folder, RUN, [("\n> ", "s\n"), ("> ", "y\n")])
    assert (code, out) == (0, "Done.\n"), shown
    assert len(payments()) == 1
    assert '? pay(order="A17\\u001b[2K\\r? y", cents=4200, password=[secret password])' in shown
    assert "why: pay asks before this call" in shown
    assert "hunter2" not in shown


def test_words_are_a_no_that_the_model_reads(folder: Path, payments: Payments, wakeful: Wakeful) -> None:
    code, out, _ = at_a_terminal(folder, RUN, [("> ", "yes, but only 10\n")])
    assert (code, out, payments()) == (0, "Done.\n", [])
    (record,) = json.loads(wakeful("approvals", "--all", "--json").out)
    assert (record["status"], record["note"]) == ("rejected", "yes, but only 10")


def test_nothing_typed_leaves_it_for_later(folder: Path, payments: Payments, wakeful: Wakeful) -> None:
    code, _, shown = at_a_terminal(folder, RUN, [("> ", "\n")])
    assert (code, payments()) == (3, [])
    assert "wakeful approvals approve appr_" in shown
    assert len(waiting(wakeful)) == 1
    code, out, _ = at_a_terminal(folder, ("resume", "--tools", "bank:pay", "--tools", "bank:look"), [("> ", "y\n")])
    assert (code, out, len(payments())) == (0, "Done.\n", 1)


def test_always_and_edit_can_be_said_at_the_terminal(folder: Path, payments: Payments, wakeful: Wakeful) -> None:
    run = ("run", "Pay.", "--model", "scripted:twice.yaml", "--tools", "bank:pay")
    edit = [("> ", "e\n"), ("as JSON> ", '{"order": "B9", "cents": 2}\n')]
    code, out, shown = at_a_terminal(folder, run, [("> ", "a\n"), ("go back> ", "c\n"), *edit])
    assert (code, out) == (0, "Done.\n"), shown
    assert [line.strip() for line in payments()] == ["'A17' 4200", "'A17' 4200", "'B9' 2"]
    assert "with exactly these arguments" in wakeful("approvals", "rules").out


def test_a_question_is_answered_at_the_terminal(folder: Path) -> None:
    ask = ("run", "Ask.", "--model", "scripted:ask.yaml", "--tools", "bank:ask_person")
    code, out, shown = at_a_terminal(folder, ask, [("later> ", "blue\n"), ("later> ", "2\n")])
    assert (code, out) == (0, "Thank you.\n"), shown
    assert "  | Which one?\\x1b[31m" in shown


def test_nobody_is_asked_when_the_command_says_so(folder: Path, payments: Payments) -> None:
    code, _, shown = at_a_terminal(folder, (*RUN, "--no-input"), [])
    assert (code, payments()) == (3, [])
    assert "y yes" not in shown


LONG = """
- calls:
  - {name: pay, arguments: {order: "LINES", cents: 4200}}
- Done.
"""


def test_a_call_that_was_cut_is_approved_by_its_number_once_it_was_shown(wakeful: Wakeful, folder: Path) -> None:
    order = "\\n".join(f"    line {number}" for number in range(60)) + "\\nlast"
    (folder / "pay.yaml").write_text(LONG.replace("LINES", order))
    wakeful(*RUN)
    listed = wakeful("approvals").out
    assert "      |     line 0\n" in listed and "last" not in listed, "the beginning, with its indentation"
    assert re.search(r"\n    \.\.\. \d+ more lines: wakeful approvals show appr_\w+\n", listed)
    assert "approve:" not in listed and "reject:" in listed
    for command in (("approve", "1"), ("approvals", "edit", "1", "cents=1"), ("approvals", "always", "1")):
        refused = wakeful(*command)
        assert refused.code == 2 and "the call of row 1 was not shown whole" in refused.err
        assert "wakeful approvals show appr_" in refused.err
    (record,) = json.loads(wakeful("approvals", "--json").out)
    assert record["status"] == "pending"
    wakeful("approvals")
    assert "      | last\n" in wakeful("approvals", "show", "1").out
    assert wakeful("approve", "1").code == 0


def test_wide_cuts_nothing(wakeful: Wakeful, folder: Path) -> None:
    order = "\\n".join(f"line  {number}" for number in range(60)) + "\\nlast"
    (folder / "pay.yaml").write_text(LONG.replace("LINES", order))
    wakeful(*RUN)
    listed = wakeful("approvals", "--wide").out
    assert "      | line  59\n      | last\n" in listed and "line  59\\nlast" in listed.splitlines()[1]
    assert "…" not in listed and "more lines" not in listed
    assert wakeful("approve", "1").code == 0


def test_a_call_too_long_for_its_record_is_read_from_the_log_before_it_is_approved(
    wakeful: Wakeful, folder: Path
) -> None:
    (folder / "pay.yaml").write_text(LONG.replace("LINES", "x" * 60_000 + " last"))
    wakeful(*RUN)
    listed = wakeful("approvals").out
    assert "its arguments are not shown here: wakeful approvals show" in listed and "approve:" not in listed
    assert wakeful("approve", "1").code == 2
    shown = wakeful("approvals", "show", "1").out
    assert "x last\n" in shown and "password" not in shown
    assert wakeful("approve", "1").code == 0
