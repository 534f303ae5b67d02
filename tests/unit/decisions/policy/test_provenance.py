"""Provenance: at most two of untrusted input, private data, and acting; and nobody's evidence acts unasked."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.contracts.policies import ProvenancePolicy
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.policy.provenance import (
    NOTHING_SEEN,
    Exposure,
    ToolDoes,
    begun,
    exposed,
    joined,
    merged,
    provenance_gate,
    what_it_does,
)

WEB = ToolDoes(changes_state=False, leaves_machine=True, untrusted_result=True)
READ_MAIL = ToolDoes(reads_private=True, changes_state=False)
WRITE = ToolDoes(changes_state=True)
LOOK = ToolDoes(changes_state=False)
OPERATOR = "operator_instruction"


def decision(derived_from: str, does: ToolDoes, exposure: Exposure = NOTHING_SEEN, **more: Any) -> str:
    verdict = provenance_gate(derived_from, does, exposure, **more)
    return verdict.decision if verdict is not None else "allow"


def after(*calls: tuple[str, ToolDoes], derived_from: str = OPERATOR) -> Exposure:
    exposure = begun(derived_from)
    for name, does in calls:
        exposure = exposed(exposure, name, does)
    return exposure


def test_any_two_of_the_three_pass_and_the_third_needs_a_person() -> None:
    steps = {"web": WEB, "read_mail": READ_MAIL, "write": WRITE}
    for order in itertools.permutations(steps):
        exposure, asked = NOTHING_SEEN, []
        for name in order:
            asked.append(decision(OPERATOR, steps[name], exposure, tool=name))
            exposure = exposed(exposure, name, steps[name])
        # A GET is outward traffic and brings untrusted text: with private data that is three already.
        first_two = {order[0], order[1]}
        expected = ["allow", "ask", "ask"] if first_two == {"web", "read_mail"} else ["allow", "allow", "ask"]
        assert asked == expected, order


def test_the_reason_names_all_three_causes() -> None:
    verdict = provenance_gate(OPERATOR, WRITE, after(("web", WEB), ("read_mail", READ_MAIL)), tool="send_mail")
    assert verdict is not None
    assert verdict.reason == (
        "with send_mail this turn has all three: untrusted input (web), private data (read_mail), "
        "and a change of state or outward traffic (send_mail)"
    )
    assert (verdict.rule_refs, verdict.layer, verdict.source) == (("provenance:all_three",), "provenance", "mode")


@pytest.mark.parametrize("missing", ["untrusted", "private"])
def test_with_one_of_the_three_taken_away_nothing_is_asked(missing: str) -> None:
    """Inversion: each of the three alone is what makes the difference."""
    seen = {"untrusted": "web", "private": "read_mail", "acted": ""}
    assert decision(OPERATOR, WRITE, Exposure(**seen)) == "ask"
    assert decision(OPERATOR, WRITE, Exposure(**{**seen, missing: ""})) == "allow"
    assert decision(OPERATOR, LOOK, Exposure(**seen)) == "allow"


def test_once_it_is_three_every_call_that_acts_asks_and_reading_does_not() -> None:
    all_seen = Exposure("web", "read_mail", "write")
    assert [decision(OPERATOR, does, all_seen) for does in (WRITE, WEB, LOOK, READ_MAIL)] == [
        "ask",
        "ask",
        "allow",
        "allow",
    ]


@pytest.mark.parametrize("derived_from", ["external_evidence", "anything else", ""])
def test_in_a_turn_of_external_evidence_a_call_with_effects_asks(derived_from: str) -> None:
    assert decision(derived_from, WRITE) == "ask"
    assert decision(derived_from, WEB) == "ask"
    assert decision(derived_from, LOOK) == "allow"
    for instructed in (OPERATOR, "runtime_instruction", "integration_signal"):
        assert decision(instructed, WRITE) == "allow"


def test_the_owner_may_be_stricter_and_may_let_evidence_act() -> None:
    assert decision("external_evidence", WRITE, policy=ProvenancePolicy(external_evidence="deny")) == "deny"
    assert decision("external_evidence", WRITE, policy=ProvenancePolicy(external_evidence="allow")) == "allow"
    three = ProvenancePolicy(all_three="deny", external_evidence="allow")
    assert decision("external_evidence", WRITE, Exposure(private="read_mail"), policy=three) == "deny"


def test_an_integrations_signal_has_a_verified_sender_and_untrusted_words() -> None:
    assert begun("integration_signal").untrusted
    assert begun(OPERATOR) == begun("runtime_instruction") == NOTHING_SEEN
    assert decision("integration_signal", READ_MAIL) == "allow"
    assert decision("integration_signal", WRITE, Exposure(private="read_mail")) == "ask"


def declared(**fields: Any) -> ToolDeclaration:
    return ToolDeclaration(**{"name": "a_tool", "input_schema": {}, "effect": "pure", **fields})


@pytest.mark.parametrize(
    ("declaration", "does"),
    [
        (declared(), ToolDoes(changes_state=False)),
        (declared(effect="irreversible"), ToolDoes(changes_state=True)),
        (declared(reads_private=True), ToolDoes(reads_private=True, changes_state=False)),
        (declared(permission_class="secrets"), ToolDoes(reads_private=True, changes_state=False)),
        (declared(leaves_machine=True), WEB),
        (declared(permission_class="network"), WEB),
        (declared(runtime_owner="client"), WEB),
        (declared(runtime_owner="provider_native"), WEB),
        (declared(runtime_owner="mcp_server"), ToolDoes(changes_state=False, untrusted_result=True)),
        (declared(name="mcp.git/log"), ToolDoes(changes_state=False, untrusted_result=True)),
        (declared(external=True), ToolDoes(changes_state=False, untrusted_result=True)),
        (declared(runtime_owner="subagent"), ToolDoes(changes_state=False, untrusted_result=True)),
    ],
)
def test_what_a_tool_does_follows_from_its_declaration(declaration: ToolDeclaration, does: ToolDoes) -> None:
    assert what_it_does(declaration) == does


doings = st.builds(ToolDoes, st.booleans(), st.booleans(), st.booleans(), st.booleans())
exposures = st.builds(Exposure, *[st.sampled_from(["", "x"])] * 3)
authorities = st.sampled_from([OPERATOR, "runtime_instruction", "integration_signal", "external_evidence", "?"])
RANK = {"allow": 0, "ask": 1, "deny": 2}


@given(authorities, doings, exposures, doings)
def test_a_tool_that_does_more_is_never_judged_more_mildly(
    derived_from: str, does: ToolDoes, exposure: Exposure, more: ToolDoes
) -> None:
    wider = joined(does, more)
    assert RANK[decision(derived_from, wider, exposure)] >= RANK[decision(derived_from, does, exposure)]


@given(authorities, doings, exposures)
def test_no_call_that_acts_passes_unasked_with_all_three(derived_from: str, does: ToolDoes, exposure: Exposure) -> None:
    reached = exposed(merged(begun(derived_from), exposure), "t", does)
    if does.acts and reached.untrusted and reached.private:
        assert decision(derived_from, does, exposure) == "ask"


@given(exposures, exposures, doings)
def test_exposure_only_grows_and_is_the_same_when_folded_again(one: Exposure, two: Exposure, does: ToolDoes) -> None:
    grown = exposed(one, "t", does)
    assert exposed(grown, "t", does) == grown
    for part in ("untrusted", "private", "acted"):
        assert not getattr(one, part) or getattr(grown, part) == getattr(one, part)
        assert bool(getattr(merged(one, two), part)) == bool(getattr(one, part) or getattr(two, part))
