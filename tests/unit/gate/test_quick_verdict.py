"""The quick verdict says yes only where the whole gate lets the call through, with the same facts and verdict."""

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest

from kit.gates.gate_cases import Case, MadeUpTool, Makes, Shortcut, Step, made_up, told
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.policies import GatePolicy
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.policy.permissions import default_policy
from wakeful.decisions.state import TurnState
from wakeful.gate.call_at_gate import CallAtGate
from wakeful.gate.quick_verdict import QuickVerdict
from wakeful.gate.turn_gate import GateParts
from wakeful.gate.turn_policy import TurnPolicy

PLAIN = ToolDeclaration(name="look", input_schema={"type": "object"}, effect="pure")
LIBRARY = GatePolicy(tools=default_policy("library"))


def whole(policy: TurnPolicy, state: TurnState, config: TurnConfig) -> Shortcut | None:
    return None


def quick(policy: TurnPolicy, state: TurnState, config: TurnConfig) -> Shortcut | None:
    return QuickVerdict(policy)


CASES = 3_000


@pytest.mark.parametrize("first", range(0, CASES, 500))
def test_every_call_is_told_the_same_as_by_the_whole_gate(first: int) -> None:
    for case in map(made_up, range(first, first + 500)):
        assert told(case, quick) == told(case, whole), case


def watched(taken: list[bool]) -> Makes:
    """The shortcut, and what it said."""

    def makes(policy: TurnPolicy, state: TurnState, config: TurnConfig) -> Shortcut:
        says = QuickVerdict(policy)

        def shortcut(at: CallAtGate, parts: GateParts) -> bool:
            taken.append(says(at, parts))
            return taken[-1]

        return shortcut

    return makes


def test_a_plain_call_takes_the_quick_way_and_one_that_may_be_asked_about_does_not() -> None:
    taken: list[bool] = []
    plain = Case(PLAIN, LIBRARY, (Step({}), Step({})))
    told(plain, watched(taken))
    told(replace(plain, hook_on_ask=True), watched(taken))  # nobody is asked
    told(replace(plain, wish="by argument"), watched(taken))
    assert taken == [True] * 4 + [False] * 2


def test_many_of_the_made_up_calls_take_the_quick_way_and_many_do_not() -> None:
    taken: list[bool] = []
    for case in map(made_up, range(300)):
        told(case, watched(taken))
    assert 0.1 < sum(taken) / len(taken) < 0.9


# --- the inversion: a shortcut that does not look at one of the things that matter ---------------------------------


def blind(sees: Callable[[CallAtGate, GateParts], tuple[CallAtGate, GateParts]]) -> Makes:
    """The shortcut, which sees calls otherwise than they are."""

    def makes(policy: TurnPolicy, state: TurnState, config: TurnConfig) -> Shortcut:
        says = QuickVerdict(policy)
        return lambda at, parts: says(*sees(copy.copy(at), parts))

    return makes


def without_locks(at: CallAtGate, parts: GateParts) -> tuple[CallAtGate, GateParts]:
    at.declaration = at.declaration.model_copy(update={"locks": ()})
    return at, parts


def without_asking(at: CallAtGate, parts: GateParts) -> tuple[CallAtGate, GateParts]:
    at.declaration = at.declaration.model_copy(update={"answered_by": "code"})
    return at, parts


def without_predicate(at: CallAtGate, parts: GateParts) -> tuple[CallAtGate, GateParts]:
    at.tool = MadeUpTool(Case(at.declared, LIBRARY, ()))
    return at, parts


def without_confinement(at: CallAtGate, parts: GateParts) -> tuple[CallAtGate, GateParts]:
    at.confinement = None
    return at, parts


def without_traits(at: CallAtGate, parts: GateParts) -> tuple[CallAtGate, GateParts]:
    at.declaration = at.declared
    return at, parts


def without_the_other_agent(at: CallAtGate, parts: GateParts) -> tuple[CallAtGate, GateParts]:
    at.record.call = copy.copy(at.call)
    at.call.level = TurnState()
    return at, parts


def without_hooks(at: CallAtGate, parts: GateParts) -> tuple[CallAtGate, GateParts]:
    return at, replace(parts, consult=())


def without(
    state_of: Callable[[TurnState], None] | None = None, policy_of: Callable[[GatePolicy], GatePolicy] | None = None
) -> Makes:
    """The shortcut of a policy that lacks something of the turn's state, or of its configuration."""

    def makes(policy: TurnPolicy, state: TurnState, config: TurnConfig) -> Shortcut:
        blinded = config.changed(policy=policy_of(config.policy)) if policy_of is not None else config

        def seen() -> TurnState:
            shown = copy.copy(state)
            if state_of is not None:
                state_of(shown)
            return shown

        return QuickVerdict(TurnPolicy(seen, lambda: blinded, b""))

    return makes


def no_exposure(state: TurnState) -> None:
    state.thread.exposure = TurnState().thread.exposure


def no_origin(state: TurnState) -> None:
    state.terms.derived_from = TurnState().terms.derived_from


def no_standing_rules(state: TurnState) -> None:
    state.rules.standing = []


def remembers_by_name(policy: TurnPolicy, state: TurnState, config: TurnConfig) -> Shortcut:
    known: dict[str, bool] = {}
    says = QuickVerdict(policy)

    def shortcut(at: CallAtGate, parts: GateParts) -> bool:
        return known.setdefault(at.tool_name, says(at, parts))

    return shortcut


BLIND: dict[str, Makes] = {
    "locks": blind(without_locks),
    "who answers": blind(without_asking),
    "predicate": blind(without_predicate),
    "confinement": blind(without_confinement),
    "traits of the call": blind(without_traits),
    "another agent": blind(without_the_other_agent),
    "hooks": blind(without_hooks),
    "exposure": without(no_exposure),
    "derived from": without(no_origin),
    "standing rules": without(no_standing_rules),
    "rules": without(policy_of=lambda policy: policy.model_copy(update={"rules": ()})),
    "hitl_tools": without(policy_of=lambda policy: policy.model_copy(update={"hitl_tools": ()})),
    "classes": without(policy_of=lambda policy: policy.model_copy(update={"tools": default_policy("library")})),
    "what changed since": remembers_by_name,
}


@pytest.mark.parametrize("missed", BLIND)
def test_a_shortcut_that_is_blind_to_one_of_them_is_found_out(missed: str) -> None:
    """It is one of the same cases that finds it."""
    assert any(told(case, BLIND[missed]) != told(case, whole) for case in map(made_up, range(CASES)))
