"""What somebody types at the terminal, and what it comes to: only a clear yes is one."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from wakeful.contracts.approvals import Always, Answer, Approval, Approve, Decided, Edit, Reject
from wakeful.surfaces.cli.terminal_approver import TerminalApprover

CALL = Approval(
    approval_id="appr_1",
    turn_id="turn_1",
    agent_id="a",
    call_id="call_1",
    tool="pay",
    arguments={"order": "A17\n> y", "cents": 4200},
    arguments_sha256="x",
    working_directory="/shop",
    prompt="Run pay?",
    reason="pay asks\x1b[2J",
    requested_at=0.0,
    expires_at=4e9,
)
QUESTION = CALL.model_copy(update={"kind": "question", "prompt": "Which?\n> y", "choices": ("red", "green")})


def approver(*lines: str | None, **options: Any) -> TerminalApprover:
    left: list[str | None] = [*lines]

    async def read() -> str | None:
        return left.pop(0)

    return TerminalApprover(nullcontext, read=read, **options)


@pytest.mark.parametrize(
    ("typed", "decided"),
    [
        (["y"], Approve()),
        ([" YES "], Approve()),
        (["n"], Reject()),
        (["yes please"], Reject("yes please")),
        (["ok"], Reject("ok")),
        ([""], None),
        ([None], None),
        (["s", "y"], Approve()),
        (["a", "c"], Always("call")),
        (["a", "t"], Always("tool")),
        (["a", "", "n"], Reject()),
        (["e", '{"order": "B", "cents": 1}'], Edit({"order": "B", "cents": 1})),
        (["e", "{", "e", "[1]", "e", "", "n"], Reject()),
    ],
)
async def test_what_is_typed_about_a_call(typed: Sequence[str | None], decided: Decided | None) -> None:
    assert await approver(*typed)(CALL) == decided


@pytest.mark.parametrize(
    ("typed", "decided"),
    [
        (["red"], Answer("red")),
        (["2"], Answer("green")),
        (["3", "blue", "red"], Answer("red")),
        ([""], None),
        (["-"], Reject()),
    ],
)
async def test_what_is_typed_about_a_question(typed: Sequence[str | None], decided: Decided | None) -> None:
    assert await approver(*typed)(QUESTION) == decided


async def test_foreign_words_stand_on_one_line_or_behind_a_mark(capsys: pytest.CaptureFixture[str]) -> None:
    await approver("s", "n")(CALL)
    await approver("red")(QUESTION)
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    prompts = [line for line in shown.splitlines() if line.startswith("> ")]
    assert all("y" not in line.removeprefix("> ").split(" ")[0] for line in prompts), shown
    assert "? pay\n    order:\n      | A17\n      | > y\n    cents: 4200\n" in shown
    assert "  | > y" in shown, "a line of a question that looks like ours is marked as not ours"
    assert "  why: pay asks\\x1b[2J" in shown
    assert "  in:  /shop" in shown


async def test_what_a_rule_leaves_to_others_is_left_to_them() -> None:
    assert await approver()(CALL.model_copy(update={"approvers": ("ana",)})) is None


async def test_what_is_redacted_is_not_edited_here(capsys: pytest.CaptureFixture[str]) -> None:
    hidden = CALL.model_copy(update={"arguments": {"password": "[redacted]"}})
    assert await approver("e", "n")(hidden) == Reject()
    assert "wakeful approvals edit appr_1 NAME=VALUE" in capsys.readouterr().err


async def test_what_was_allowed_beforehand_is_not_asked_and_without_a_terminal_nothing_is() -> None:
    assert await approver(approved=("pa*",), attended=False)(CALL) == Approve("allowed with --approve")
    assert await approver(approved=("sell",), attended=False)(CALL) is None
    assert await approver(approved=("*",), attended=False)(QUESTION) is None, "a question has no yes"


async def test_a_call_that_is_too_long_is_shown_before_it_can_be_let_through(
    capsys: pytest.CaptureFixture[str],
) -> None:
    long = CALL.model_copy(update={"arguments": {"code": "\n".join(f"line {number}" for number in range(60))}})
    assert await approver("y", "e", "a", "s", "y")(long) == Approve()
    told = capsys.readouterr().err
    assert told.count("the call was not shown whole: s shows it, n rejects it") == 3
    assert told.index("more lines: s shows all of it") < told.index("| line 59")
    assert await approver("y", "n")(long) == Reject()
    preview = {"preview": "{", "digest": "sha256:0", "size_chars": 60_000, "truncated": True}
    assert await approver("y", "s", "y", "")(CALL.model_copy(update={"arguments": preview})) is None
    assert "too long to decide here: Enter, then wakeful approvals show appr_1" in capsys.readouterr().err
