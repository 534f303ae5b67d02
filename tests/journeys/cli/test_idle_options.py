"""Options of the command line that could have no effect: refused, or said in one line."""

import json

import pytest

from kit.surfaces.command_line import Wakeful


def test_an_approval_for_a_tool_that_is_not_there_is_refused_before_anything_runs(wakeful: Wakeful) -> None:
    done = wakeful("run", "hello", "--approve", "refnud", "--tools", "shop:refund")
    assert done.code == 2 and "--approve refnud: no tool of this run has that name" in done.err
    assert "refund" in done.err and "wakeful/exec_command" in done.err
    for good in ("refund", "exec_*", "wakeful/read_file", "*"):
        assert wakeful("run", "hello", "--approve", good, "--tools", "shop:refund").code == 0


def test_a_network_for_commands_that_there_are_none_of_is_said(wakeful: Wakeful) -> None:
    done = wakeful("run", "hello", "--profile", "chat", "--network")
    assert done.code == 0 and "sandbox= has no effect without a workspace" in done.err
    assert "no effect" not in wakeful("run", "hello", "--network").err


@pytest.mark.parametrize("command", ["approvals", "requests"])
def test_a_turn_that_is_not_there_is_no_turn_without_questions(wakeful: Wakeful, command: str) -> None:
    turn = json.loads(wakeful("run", "hello", "--json").out)["turn_id"]
    assert wakeful(command, "--turn", turn).code == 0
    assert wakeful(command, "--turn", turn[:-1]) == wakeful(command, "--turn", turn), "the beginning of an id is enough"
    done = wakeful(command, "--turn", f"{turn}X")
    assert done.code == 2 and f"there is no turn '{turn}X'" in done.err


@pytest.mark.parametrize("option", [("--kind", "tool.result"), ("--as", "wire"), ("--after", "3"), ("--reveal",)])
def test_options_about_one_log_need_its_turn(wakeful: Wakeful, option: tuple[str, ...]) -> None:
    turn = json.loads(wakeful("run", "hello", "--json").out)["turn_id"]
    done = wakeful("events", *option)
    assert done.code == 2 and f"{option[0]} needs a turn" in done.err
    assert wakeful("events", turn, *option).code == 0
