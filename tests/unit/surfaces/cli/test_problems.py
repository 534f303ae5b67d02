"""Errors as a person gets them."""

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
    assert capsys.readouterr() == ("", f"error: {error.message}\n  {error.hint}\n")


def test_words_of_others_in_an_error_are_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    exit_code_of(WrongRequest("said \x1b[2J", "first\nsecond"))
    assert capsys.readouterr().err == "error: said \\x1b[2J\n  first\n  second\n"


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        exit_code_of(ZeroDivisionError("ours"))
