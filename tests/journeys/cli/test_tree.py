"""`wakeful tree`: what a turn did; and the messages its client would have been sent."""

import json

from kit.surfaces.command_line import Wakeful
from wakeful.surfaces.cli.screen import short
from wakeful.surfaces.cli.tree import lines
from wakeful.views.tree import ExecutionTreeNode, ExecutionTreeSnapshot
from wakeful.views.wire_messages import WIRE_MESSAGE

REFUND = ("run", "Refund A17.", "--model", "scripted:refund.yaml", "--tools", "shop:both", "--json")


def test_a_turns_calls_are_shown_with_what_came_of_them(wakeful: Wakeful) -> None:
    turn = json.loads(wakeful(*REFUND).out)["turn_id"]
    shown = wakeful("tree", turn)
    assert shown.code == 0
    head, look, refund = shown.out.splitlines()
    assert head == f"turn {short(turn)}  assistant  completed"
    assert look.startswith('  ✓ look_up  {"order": "A17", "password": "[redacted]"}  ')
    assert look.endswith("  4200")
    assert refund.endswith("refunded \\x1b[31mred"), "what a terminal would obey is text"
    assert "hunter2" not in shown.out
    assert wakeful("tree").out == shown.out, "the newest turn"
    tree = ExecutionTreeSnapshot.model_validate_json(wakeful("tree", turn, "--json").out)
    assert [(node.name, node.is_error) for node in tree.nodes] == [("look_up", False), ("refund", False)]


def test_a_turn_without_calls_and_a_turn_that_is_not_there(wakeful: Wakeful) -> None:
    turn = json.loads(wakeful("run", "hello", "--json").out)["turn_id"]
    assert "no tool calls" in wakeful("tree", turn).out
    wrong = wakeful("tree", turn + "x")
    assert wrong.code == 2
    assert f"did you mean {turn}?" in wrong.err


def test_what_is_inside_a_call_stands_under_it() -> None:
    def node(call: str, parent: str | None, **more: object) -> ExecutionTreeNode:
        return ExecutionTreeNode.model_validate({"id": call, "parent_id": parent, "duration_ms": 1200, **more})

    tree = ExecutionTreeSnapshot(
        nodes=(
            node("a", None, name="run_subtask", title="Prices", result_preview="12", is_error=False),
            node("b", None, name="look_up", is_error=None),
            node("c", "a", name="look_up", args_preview="{}", result_preview="no such order", is_error=True),
        )
    )
    assert [line.plain for line in lines(tree)] == [
        "  ✓ run_subtask  Prices  1.2 s",
        "    ✗ look_up  1.2 s  no such order",
        "  · look_up  1.2 s",
    ]


def test_the_log_as_its_client_gets_it(wakeful: Wakeful) -> None:
    turn = json.loads(wakeful(*REFUND).out)["turn_id"]
    sent = [
        WIRE_MESSAGE.validate_json(line) for line in wakeful("events", turn, "--as", "wire", "--json").out.splitlines()
    ]
    assert [one.type for one in sent] == [
        *("chunk", "tool_call_update", "tool_call_update", "tool_call_update", "tool_call_update"),
        *("chunk", "cost_summary", "turn_terminal"),
    ]
    told = wakeful("events", turn, "--as", "wire").out
    assert "hunter2" not in told
    assert "\x1b" not in told
    assert told.splitlines()[-1] == "turn_terminal     completed (natural)"
    after = str(sent[3].event_seq) if sent[3].type == "tool_call_update" else ""
    rest = wakeful("events", turn, "--as", "wire", "--json", "--after", after).out.splitlines()
    assert [WIRE_MESSAGE.validate_json(line) for line in rest] == sent[4:]
