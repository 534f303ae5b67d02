"""Which target a task goes to."""

import pytest

from wakeful.hosts.dispatch.dispatch_request import ExecutionPlacement, ExecutorTarget
from wakeful.hosts.dispatch.dispatcher import Fallback, Selection, select


def target(name: str, *capabilities: str, classes: tuple[str, ...] = ()) -> ExecutorTarget:
    return ExecutorTarget.normalise({"id": name, "capabilities": capabilities, "resource_classes": classes})


A = target("a", "tasks.run")
B = target("b", "tasks.run", "artifacts.reference", classes=("gpu",))
C = target("c", "tasks.run", "artifacts.reference", classes=("generic", "gpu"))


def chosen(**hints: object) -> Selection:
    return select((A, B, C), ExecutionPlacement.normalise(hints))


@pytest.mark.spec("API-TDS-06")
def test_the_preferred_target_is_chosen_if_it_survives_else_the_first_that_does() -> None:
    assert chosen().target is A
    assert chosen(allowed_targets=["c", "b"]).target is C, "b does not take the class 'generic'"
    assert chosen(allowed_targets=["c", "b"], resource_class="gpu").target is B
    assert chosen(resource_class="gpu").target is A, "a target without classes takes any"
    assert chosen(required_capabilities=["artifacts.reference"]).target is C
    assert chosen(required_capabilities=["artifacts.reference", "magic"]).target is None
    assert chosen(allowed_targets=["nowhere"]).target is None
    assert chosen(preferred_target="c") == Selection(C)
    assert chosen(preferred_target="b", resource_class="gpu") == Selection(B)
    assert chosen(preferred_target="b").target is A


def test_a_target_that_was_preferred_and_not_chosen_is_named_with_the_reason() -> None:
    def reason(**hints: object) -> str:
        fallback = chosen(**hints).fallback
        assert isinstance(fallback, Fallback)
        assert fallback.preferred_target == hints["preferred_target"]
        assert fallback.selected_target == "a"
        return fallback.reason

    assert reason(preferred_target="b") == "it does not take the resource class 'generic'"
    assert reason(preferred_target="z") == "there is no such target"
    assert reason(preferred_target="c", allowed_targets=["a"]) == "it is not among the allowed targets"
    assert chosen(preferred_target="a", required_capabilities=["artifacts.reference"]).fallback == Fallback(
        "a", "c", "it lacks the capabilities artifacts.reference"
    )
    assert chosen(preferred_target="z", allowed_targets=["nowhere"]) == Selection(None)
