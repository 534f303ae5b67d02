"""A turn with children, as facts made by hand: what is written when calls make levels. Shared by several suites."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kit.runs.event_samples import (
    NOON,
    completed,
    fact,
    in_step,
    log,
    message,
    requested,
    said,
    tool_result,
    tool_started,
    turn_completed,
    turn_started,
)
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import AnyEvent, SubagentCompleted, SubagentStarted
from wakeful.contracts.models import TokenUsage

USED = TokenUsage(input_tokens=5, output_tokens=2, total_tokens=7)


def inside(level: str, depth: int, facts: Iterable[Fact]) -> list[Fact]:
    """Facts as those of a child's level."""
    return [replace(one, level=level, parent_call_id=level.partition("#")[0], depth=depth) for one in facts]


def beside(level: str, facts: Iterable[Fact]) -> list[Fact]:
    """Facts as those of a level that no call made: the planner, a summary."""
    return [replace(one, level=level) for one in facts]


def call(call_id: str, event: AnyEvent, step: int = 1) -> Fact:
    return fact(event, call=call_id, step=step)


def began(call_id: str, tool: str = "look_up", step: int = 1, **arguments: Any) -> Fact:
    """A call that was taken up."""
    started = tool_started(call_id, tool=tool)
    return call(call_id, started.model_copy(update={"safe_args": arguments} if arguments else {}), step)


def did(call_id: str, text: str = "4200", tool: str = "look_up", step: int = 1) -> Fact:
    """A call that succeeded."""
    return call(call_id, tool_result(call_id, text, tool=tool), step)


def child(call_id: str, title: str, depth: int = 1, level: str | None = None, index: int = 0) -> Fact:
    """The fact that makes a level."""
    return call(
        call_id,
        SubagentStarted(
            level_id=level or call_id,
            tool="run_subtask",
            title=title,
            depth=depth,
            task=UserItem(parts=(Text(title),)),
            index=index,
        ),
    )


def child_done(level: str, output: str) -> Fact:
    return fact(SubagentCompleted(level_id=level, output=output, steps=1))


def round_of(step: int, text: str = "", *calls: str, tool: str = "look_up") -> list[Fact]:
    """The model is asked and answers."""
    return list(in_step(step, requested(), completed(USED), said(text, *calls, tool=tool)))


def timed(facts: Iterable[Fact], every_ms: int = 1) -> list[Fact]:
    """The same facts, one after the other."""
    return [replace(one, at=NOON + place * every_ms * 1000) for place, one in enumerate(facts)]


def nested_turn() -> list[StoredFact]:
    """Two children side by side, one with a child of its own; a call beside them; then the answer."""
    facts = [
        fact(message(), step=None),
        fact(turn_started(), step=None),
        *round_of(1, "Splitting it.", "sub_a", "sub_b", "look", tool="run_subtask"),
        began("sub_a", "run_subtask", title="Prices", instructions="find the prices"),
        child("sub_a", "Prices"),
        began("sub_b", "run_subtask", title="Stock", instructions="count"),
        child("sub_b", "Stock"),
        began("look", order="A17"),
        *inside("sub_a", 1, [*round_of(1, "I look.", "a_1"), began("a_1", order="P1")]),
        *inside(
            "sub_b", 1, [*round_of(1, "", "sub_c", tool="run_subtask"), began("sub_c", "run_subtask", title="Far")]
        ),
        *inside("sub_b", 1, [child("sub_c", "Far", depth=2)]),
        did("look", "on its way"),
        *inside("sub_c", 2, [*round_of(1, "", "c_1"), began("c_1", order="F1"), did("c_1", "far away")]),
        *inside("sub_a", 1, [did("a_1", "12 EUR"), *round_of(2, "12 EUR"), child_done("sub_a", "12 EUR")]),
        did("sub_a", "12 EUR", "run_subtask"),
        *inside("sub_c", 2, [*round_of(2, "three"), child_done("sub_c", "three")]),
        *inside("sub_b", 1, [did("sub_c", "three", "run_subtask"), *round_of(2, "3"), child_done("sub_b", "3")]),
        did("sub_b", "3", "run_subtask"),
        *round_of(2, "12 EUR, 3 left."),
        fact(turn_completed(), step=2),
    ]
    return log(*timed(facts))
