"""Errors as a person gets them."""

import json
import sys

import pytest

from wakeful.contracts.errors import (
    AgentMissing,
    NotBuiltYet,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    UnknownProvider,
    WakefulError,
)
from wakeful.surfaces.cli.problems import NeedsPerson, WrongRequest, exit_code_of


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreFull("there is no room left", "Free some space."), 1),
        (StoreLocked("another process keeps it", "Close it."), 1),
        (StoreDamaged("agent a is not what was written", "Restore it.", agent_id="a"), 1),
        (UnknownProvider("no provider 'x'", "Try scripted:demo"), 2),
        (NotBuiltYet("the demo 'wake'", "wait for it"), 2),
        (WrongRequest("the prompt is empty", "say something"), 2),
        (AgentMissing("the agent is missing", "supply it"), 3),
        (NeedsPerson("somebody has to look", "wakeful unknown"), 3),
    ],
)
def test_every_error_is_its_message_what_to_do_next_and_its_exit_code(
    error: WakefulError, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(error) == code
    assert capsys.readouterr() == ("", f"Error: {error.message}\nHint: {error.hint[0].lower()}{error.hint[1:]}\n")


def test_words_of_others_in_an_error_are_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    exit_code_of(WrongRequest("said \x1b[2J", "first\nsecond"))
    assert capsys.readouterr().err == "Error: said \\x1b[2J\nHint: first\n  second\n"


def test_a_program_gets_the_error_as_json_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(WrongRequest("said \x1b[2J", "say it"), as_json=True) == 2
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {
        "error": {"type": "WrongRequest", "message": "said \x1b[2J", "hint": "say it", "exit_code": 2}
    }
    assert "\x1b" not in shown.out and shown.err == ""


def test_a_long_error_is_wrapped_on_a_screen_and_its_commands_are_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = WrongRequest("word " * 30 + "end", f"wakeful run {'x' * 90}")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    exit_code_of(error)
    assert len(capsys.readouterr().err.splitlines()) == 2, "nobody reads it on a screen"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    exit_code_of(error)
    *words, hint = capsys.readouterr().err.splitlines()
    assert len(words) == 3 and all(len(line) <= 80 for line in words)
    assert hint == f"Hint: wakeful run {'x' * 90}"


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        exit_code_of(ZeroDivisionError("ours"))
