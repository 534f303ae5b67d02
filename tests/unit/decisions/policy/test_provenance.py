"""Provenance: after untrusted input a call acts outside on the owner's words, or asks; evidence never acts unasked."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.contracts.policies import ProvenancePolicy
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.policy.argument_origins import Origins
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


OWNERS, DERIVED, NO_ARGUMENTS = Origins((), 1), Origins(("to",), 0), Origins()
UNTRUSTED, BOTH = Exposure(untrusted="inbox"), Exposure(untrusted="inbox", private="inbox")
INSIDE = ToolDoes(changes_state=True, stays_inside=True)


@pytest.mark.parametrize(
    ("does", "exposure", "owners", "derived"),
    [
        (WRITE, NOTHING_SEEN, "allow", "allow"),
        (WRITE, Exposure(private="files"), "allow", "allow"),
        (WRITE, UNTRUSTED, "allow", "ask"),
        (WRITE, BOTH, "allow", "ask"),
        (WEB, NOTHING_SEEN, "allow", "allow"),
        (WEB, Exposure(private="files"), "allow", "allow"),
        (WEB, UNTRUSTED, "allow", "allow"),
        (WEB, BOTH, "allow", "ask"),
        (INSIDE, BOTH, "allow", "allow"),
        (LOOK, BOTH, "allow", "allow"),
        (READ_MAIL, BOTH, "allow", "allow"),
    ],
)
def test_the_table(does: ToolDoes, exposure: Exposure, owners: str, derived: str) -> None:
    assert decision(OPERATOR, does, exposure, origins=lambda: OWNERS) == owners
    assert decision(OPERATOR, does, exposure, origins=lambda: DERIVED) == derived


def test_a_change_without_any_argument_of_the_owners_is_tied_to_nothing_and_asks() -> None:
    assert decision(OPERATOR, WRITE, UNTRUSTED, origins=lambda: NO_ARGUMENTS) == "ask"
    assert decision(OPERATOR, WEB, BOTH, origins=lambda: NO_ARGUMENTS) == "allow", "nothing of the model's leaves"


def test_where_arguments_come_from_is_looked_at_only_where_it_matters() -> None:
    def never() -> Origins:
        raise AssertionError("nobody needed to know")

    for does, seen in [(WRITE, NOTHING_SEEN), (WEB, UNTRUSTED), (INSIDE, BOTH), (LOOK, BOTH)]:
        assert decision(OPERATOR, does, seen, origins=never) == "allow"


def test_a_command_that_talks_to_anybody_reads_and_acts_in_one_call() -> None:
    command = ToolDoes(True, True, True, True, runs_commands=True)
    assert decision(OPERATOR, command, origins=lambda: DERIVED) == "ask"
    assert decision(OPERATOR, replace(command, untrusted_result=False), origins=lambda: DERIVED) == "allow"


def test_the_reason_names_the_argument_and_both_causes() -> None:
    seen = after(("web", WEB), ("read_mail", READ_MAIL))
    verdict = provenance_gate(OPERATOR, WRITE, seen, tool="send_mail", origins=lambda: DERIVED)
    assert verdict is not None
    assert verdict.reason == (
        "send_mail changes something outside the workspace in a turn that has read untrusted input (web) and private "
        "data (read_mail), and to is not in the owner's words"
    )
    assert (verdict.layer, verdict.source, verdict.standing_answer) == ("provenance", "mode", "exact")
    assert set(verdict.rule_refs) == {"provenance:derived", "provenance:all_three"}


@pytest.mark.parametrize("derived_from", ["external_evidence", "anything else", ""])
def test_in_a_turn_of_external_evidence_a_call_with_effects_asks(derived_from: str) -> None:
    assert decision(derived_from, WRITE) == "ask"
    assert decision(derived_from, WEB) == "ask"
    assert decision(derived_from, LOOK) == "allow"
    for instructed in (OPERATOR, "runtime_instruction"):
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
    assert decision("integration_signal", WRITE, origins=lambda: DERIVED) == "ask"
    assert decision("integration_signal", WRITE, origins=lambda: OWNERS) == "allow"


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
        (declared(runtime_owner="client"), replace(WEB, stays_inside=True)),
        (declared(runtime_owner="provider_native"), WEB),
        (declared(runtime_owner="mcp_server"), ToolDoes(changes_state=False, untrusted_result=True)),
        (declared(name="mcp.git/log"), ToolDoes(changes_state=False, untrusted_result=True)),
        (declared(external=True), ToolDoes(changes_state=False, untrusted_result=True)),
        (declared(runtime_owner="subagent"), ToolDoes(changes_state=False)),
        (declared(untrusted=True), ToolDoes(changes_state=False, untrusted_result=True)),
        (declared(leaves_machine=True, untrusted=False), ToolDoes(changes_state=False, leaves_machine=True)),
        (declared(runtime_owner="mcp_server", untrusted=False), ToolDoes(changes_state=False)),
        (declared(name="mcp.git/log", permission_class="network", untrusted=False), ToolDoes(changes_state=False)),
        (declared(effect="keyed", permission_class="workspace_write"), INSIDE),
        (declared(effect="keyed", permission_class="execute"), replace(INSIDE, runs_commands=True)),
        (
            declared(effect="keyed", permission_class="execute", leaves_machine=True),
            ToolDoes(changes_state=True, leaves_machine=True, untrusted_result=True, runs_commands=True),
        ),
        (
            declared(effect="keyed", permission_class="workspace_write", runtime_owner="mcp_server"),
            ToolDoes(changes_state=True, untrusted_result=True),
        ),
    ],
)
def test_what_a_tool_does_follows_from_its_declaration(declaration: ToolDeclaration, does: ToolDoes) -> None:
    assert what_it_does(declaration) == does


doings = st.builds(ToolDoes, *[st.booleans()] * 6)
exposures = st.builds(Exposure, *[st.sampled_from(["", "x"])] * 2)
authorities = st.sampled_from([OPERATOR, "runtime_instruction", "integration_signal", "external_evidence", "?"])
RANK = {"allow": 0, "ask": 1, "deny": 2}


@given(authorities, doings, exposures, doings)
def test_a_tool_that_does_more_is_never_judged_more_mildly(
    derived_from: str, does: ToolDoes, exposure: Exposure, more: ToolDoes
) -> None:
    wider = joined(does, more)
    assert RANK[decision(derived_from, wider, exposure)] >= RANK[decision(derived_from, does, exposure)]


@given(authorities, doings, exposures)
def test_no_derived_call_that_acts_outside_passes_unasked_with_all_three(
    derived_from: str, does: ToolDoes, exposure: Exposure
) -> None:
    seen = merged(begun(derived_from), exposure)
    if (does.changes_outside or does.leaves_machine) and seen.untrusted and seen.private:
        assert decision(derived_from, does, exposure, origins=lambda: DERIVED) == "ask"


@given(exposures, exposures, doings)
def test_exposure_only_grows_and_is_the_same_when_folded_again(one: Exposure, two: Exposure, does: ToolDoes) -> None:
    grown = exposed(one, "t", does)
    assert exposed(grown, "t", does) == grown
    for part in ("untrusted", "private"):
        assert not getattr(one, part) or getattr(grown, part) == getattr(one, part)
        assert bool(getattr(merged(one, two), part)) == bool(getattr(one, part) or getattr(two, part))
