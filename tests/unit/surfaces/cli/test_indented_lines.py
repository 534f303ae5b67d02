"""Lines of the log: children stand to the right of what is around them."""

from kit.runs.event_samples import AGENT, ONE_OF_EACH, fact
from kit.runs.turn_trees import began, child, inside, nested_turn
from wakeful.contracts.envelope import RuntimeEvent, StoredFact, published
from wakeful.contracts.events import CompactionCompleted, PlanningCompleted, TurnInterjected
from wakeful.surfaces.cli.event_lines import event_line


def event(recorded: StoredFact) -> RuntimeEvent:
    return published(recorded, "runtime_1")


def told(recorded: StoredFact) -> str:
    return event_line(event(recorded)).plain


def test_what_happens_in_a_child_is_indented_by_its_depth() -> None:
    root, below, deep = (
        told(StoredFact(AGENT, 1, one))
        for one in (began("a"), *inside("sub", 1, [began("a")]), *inside("sub", 2, [began("a")]))
    )
    assert below == root.replace("look_up(", "  look_up(")
    assert deep == root.replace("look_up(", "    look_up(")
    assert [told(one) for one in nested_turn()], "every one of them has a line"


def test_children_plans_and_summaries_are_told_in_words() -> None:
    assert "run_subtask: Prices sub_a" in told(StoredFact(AGENT, 1, child("sub_a", "Prices")))
    words = {
        type(one): told(StoredFact(AGENT, 1, fact(one)))
        for one in ONE_OF_EACH
        if isinstance(one, PlanningCompleted | CompactionCompleted | TurnInterjected)
    }
    assert words[PlanningCompleted].endswith((" step", " steps"))
    assert "tokens" in words[CompactionCompleted]
    assert len(words) == 3
