"""One verdict from all layers: each alone makes the difference, none loosens another, and a gate that fails is shut."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.contracts.policies import GatePolicy, Rule
from wakeful.contracts.principals import CapabilityCeiling
from wakeful.contracts.tools import Confinement, ToolDeclaration
from wakeful.contracts.verdicts import STRICTNESS, Verdict
from wakeful.decisions.policy.actions import ActionPolicyResolver
from wakeful.decisions.policy.call_gates import CallGates, read_call_rules
from wakeful.decisions.policy.permissions import default_policy
from wakeful.decisions.policy.provenance import Exposure, ToolDoes
from wakeful.decisions.policy.verdict import CallUnderJudgement, CompiledPolicy, compile_policy, judge, standing_verdict

SEND = ToolDeclaration(name="send", input_schema={}, permission_class="safe")
TOOLS = [
    SEND,
    ToolDeclaration(name="look", input_schema={}, effect="pure"),
    ToolDeclaration(name="post", input_schema={}),
    ToolDeclaration(name="exec_command", input_schema={}, permission_class="execute"),
    ToolDeclaration(name="mcp.github/merge_pr", input_schema={}, runtime_owner="mcp_server"),
]
CLASSES = default_policy(
    "thread", profile="coding", workspace_root="shop", allowed_mcp_servers=["github"], unconfined="ask"
)


def compiled(**policy: Any) -> CompiledPolicy:
    more = {key: policy.pop(key) for key in ("ceiling", "required_capabilities") if key in policy}
    withheld = policy.pop("withheld", ())
    tools = [tool for tool in TOOLS if tool.name not in withheld]
    return compile_policy(GatePolicy(**{"tools": CLASSES, **policy}), tools, **more)


def call(name: str = "send", **fields: Any) -> CallUnderJudgement:
    return CallUnderJudgement(**{"name": name, "arguments": {}, "now": 100.0, **fields})


def gate_word() -> Verdict | None:
    rules = read_call_rules([{"after_tool": "look", "limited_tools": ["send"], "require_one_of": ["post"]}])
    return CallGates.of(rules).called("look").check_call("send")


FORBIDDING = ActionPolicyResolver(agent_policy={"tools": {"send": "forbidden"}}).resolve("send")
PREVIEWING = ActionPolicyResolver(agent_policy={"tools": {"send": "preview"}}).resolve("send")
LOOSE = Confinement(mode="not_enforced", cwd="shop")

# name of the layer -> (what the policy adds, what the call adds, what it comes to)
OBJECTIONS: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "belt": ({"withheld": {"send"}}, {}, "deny", "tool_not_found"),
    "class": ({"tools": CLASSES.model_copy(update={"classes": frozenset()})}, {}, "deny", "tool_not_found"),
    "ceiling": (
        {"ceiling": CapabilityCeiling(allowed=()), "required_capabilities": {"send": "mail.send"}},
        {},
        "deny",
        "capability_denied",
    ),
    "rules": ({"rules": (Rule(match="send", decision="deny"),)}, {}, "deny", "permission_denied"),
    "rules ask": ({"rules": (Rule(match="send", decision="ask"),)}, {}, "ask", ""),
    "action": ({}, {"action": FORBIDDING}, "deny", "action_forbidden"),
    "action preview": ({}, {"action": PREVIEWING}, "ask", ""),
    "person listed": ({"hitl_tools": ("sen*",)}, {}, "ask", ""),
    "person wished": ({}, {"own_wish": "ask"}, "ask", ""),
    "person failed": ({}, {"own_wish": "failed"}, "deny", "permission_denied"),
    "person nonsense": ({}, {"own_wish": "yes please"}, "deny", "permission_denied"),
    "call_gates": ({}, {"gate": gate_word()}, "deny", "tool_call_gate_rejected"),
    "confinement": ({}, {"confinement": LOOSE}, "ask", ""),
    "provenance evidence": ({}, {"derived_from": "external_evidence"}, "ask", ""),
    "provenance three": ({}, {"exposure": Exposure("web", "mail")}, "ask", ""),
    "hook": ({}, {"hooks": (Verdict("deny", "hook", "no"),)}, "deny", "permission_denied"),
}


@pytest.mark.parametrize("layer", OBJECTIONS)
def test_each_layer_alone_stops_a_call_that_passes_without_it(layer: str) -> None:
    """The inversion is in the first line: with the one thing taken away, the same call is allowed."""
    assert judge(call(), compiled()).decision == "allow"
    policy, about, decision, error_type = OBJECTIONS[layer]
    verdict = judge(call(**about), compiled(**policy))
    assert verdict.decision == decision
    assert verdict.reason
    assert decision != "deny" or verdict.error_type == error_type


@pytest.mark.parametrize("layer", OBJECTIONS)
def test_nothing_permissive_loosens_an_objection(layer: str) -> None:
    """An allow of a rule, a hook, an action policy and a person, all at once."""
    policy, about, decision, _ = OBJECTIONS[layer]
    allows = (
        Rule(match="send", decision="allow"),
        Rule(match="*", decision="allow"),
    )
    permissive: dict[str, Any] = {
        "action": ActionPolicyResolver().resolve("send"),
        "hooks": (Verdict("allow", "hook", "yes"), Verdict("allow", "human", "yes")),
    }
    merged = {**permissive, **about}
    if "hooks" in about:
        merged["hooks"] = (*permissive["hooks"], *about["hooks"], *permissive["hooks"])
    given = {**policy, "rules": (*allows, *policy.get("rules", ()), *allows)}
    assert judge(call(**merged), compiled(**given)).decision == decision
    # A standing answer answers asks, and no deny.
    always = Rule(match="send", decision="allow", origin="always", decided_by="ann", call_hash="h")
    answered = judge(call(**merged, call_hash="h"), compiled(**{**given, "rules": (always, *given["rules"])}))
    assert answered.decision == ("deny" if decision == "deny" else "allow")
    assert decision == "deny" or answered.source == "human"


def test_a_tool_that_nobody_declared_is_not_found() -> None:
    verdict = judge(call("no_such_tool"), compiled())
    assert (verdict.decision, verdict.error_type, verdict.layer) == ("deny", "tool_not_found", "belt")


def test_people_are_listed_by_pattern_and_bare_name() -> None:
    for pattern in ("mcp.github/merge_*", "merge_pr", "mcp.github/*"):
        policy = compiled(hitl_tools=(pattern,), rules=(Rule(match="mcp.github/*", decision="allow"),))
        verdict = judge(call("mcp.github/merge_pr"), policy)
        assert (verdict.decision, verdict.rule_refs) == ("ask", (f"hitl_tools:{pattern}",))
    policy = compiled(hitl_tools=("refund",), rules=(Rule(match="mcp.github/*", decision="allow"),))
    assert judge(call("mcp.github/merge_pr"), policy).decision == "allow"


def test_a_call_that_is_more_than_its_tool_declared_is_judged_as_what_it_is() -> None:
    policy = compiled()
    assert judge(call("look"), policy).decision == "allow"
    vault = TOOLS[1].model_copy(update={"permission_class": "secrets"})
    assert judge(call("look", traits=vault), policy).decision == "deny"
    private = TOOLS[1].model_copy(update={"reads_private": True, "leaves_machine": True})
    tainted = call("look", traits=private, exposure=Exposure("web"), arguments={"q": "words of its own"})
    assert judge(tainted, policy).decision == "ask"
    assert policy.does("look", private) == ToolDoes(True, False, True, True)
    assert policy.does("look") == ToolDoes(changes_state=False)
    # Saying less of one call than was declared changes nothing.
    harmless = TOOLS[2].model_copy(update={"effect": "pure"})
    assert judge(call("post", traits=harmless), policy).decision == "ask"


class Broken(dict[str, Any]):
    """Arguments that cannot be read."""

    def get(self, key: str, default: Any = None) -> Any:
        raise OSError("gone")


@pytest.mark.parametrize(
    "failing",
    [
        {"arguments": Broken()},
        {"arguments": None},
        {"now": "soon"},
        {"hooks": (Verdict("alow", "hook", "a slip"),)},  # type: ignore[arg-type]
        {"hooks": ("allow",)},
        {"exposure": None},
        {"action": "direct"},
    ],
)
def test_whatever_raises_inside_the_gate_denies(failing: dict[str, Any]) -> None:
    rules = (Rule(match="send", decision="deny", arguments={"to": "nobody"}, expires=1e12),)
    assert judge(call(arguments={"to": "ann"}), compiled(rules=rules)).decision == "allow"
    verdict = judge(call(**{"arguments": {"to": "nobody"}, **failing}), compiled(rules=rules))
    assert verdict.decision == "deny"


def test_a_gate_that_lost_a_layer_is_found_out() -> None:
    """Inversion: the same call, with what stops it taken out of the compiled policy, passes."""
    policy = compiled(hitl_tools=("send",))
    plan = dataclasses.replace(policy.plans["send"], fixed=())
    without = dataclasses.replace(policy, plans={**policy.plans, "send": plan})
    assert (judge(call(), policy).decision, judge(call(), without).decision) == ("ask", "allow")


def test_the_digest_names_the_policy() -> None:
    assert compiled().digest == compiled().digest
    assert compiled().digest != compiled(hitl_tools=("send",)).digest
    again = GatePolicy.model_validate_json(compiled().source.model_dump_json())
    assert compile_policy(again, TOOLS).digest == compiled().digest


def test_the_standing_word_on_a_tool_counts_only_what_holds_for_every_call() -> None:
    def word(name: str, *rules: Rule) -> str:
        return standing_verdict(compiled(rules=rules).plans[name], 100.0).decision

    assert word("post") == "ask"
    assert word("post", Rule(match="post", decision="allow")) == "allow"
    assert word("post", Rule(match="post", decision="allow", arguments={"to": "ann"})) == "ask"
    assert word("send", Rule(match="send", decision="deny", arguments={"to": "ann"})) == "allow"
    assert word("send", Rule(match="*", decision="deny")) == "deny"
    assert word("send", Rule(match="send", decision="deny", expires=101.0)) == "deny"
    assert word("send", Rule(match="send", decision="deny", expires=100.0)) == "allow"
    always = Rule(match="post", decision="allow", origin="always", decided_by="ann")
    assert word("post", always) == "allow"
    assert word("post", always.model_copy(update={"call_hash": "h1"})) == "ask"
    assert word("post", always, Rule(match="post", decision="ask", always_ask=True)) == "ask"
    assert word("post", always, Rule(match="post", decision="deny")) == "deny"


# --- properties -------------------------------------------------------------------------------------------------------

rules = st.builds(
    Rule,
    match=st.sampled_from(["*", "send", "post", "mcp.github/*", "merge_pr", "s*", "other"]),
    decision=st.sampled_from(["allow", "ask", "deny"]),
    arguments=st.sampled_from([{}, {"to": "a*"}, {"to": "zoe"}]),
    expires=st.sampled_from([None, 50.0, 150.0]),
    call_hash=st.sampled_from([None, None, "h1", "h2"]),
    origin=st.sampled_from(["owner", "always"]),
)
calls = st.builds(
    CallUnderJudgement,
    name=st.sampled_from([tool.name for tool in TOOLS]),
    arguments=st.sampled_from([{}, {"to": "ann"}, {"to": ["ann", "zoe"]}, {"to": {"x": 1}}]),
    now=st.just(100.0),
    derived_from=st.sampled_from(["operator_instruction", "external_evidence", "integration_signal"]),
    exposure=st.builds(Exposure, *[st.sampled_from(["", "x"])] * 2),
    call_hash=st.sampled_from([None, "h1"]),
    own_wish=st.sampled_from(["none", "none", "ask", "failed"]),
    hooks=st.lists(
        st.sampled_from([Verdict("allow", "hook", "y"), Verdict("ask", "hook", "?"), Verdict("deny", "hook", "n")]),
        max_size=2,
    ).map(tuple),
)


def rank(one: CallUnderJudgement, some: list[Rule]) -> int:
    return STRICTNESS[judge(one, compiled(rules=tuple(some))).decision]


@settings(max_examples=150, deadline=None)
@given(calls, st.lists(rules, max_size=5), rules)
def test_adding_a_rule_never_loosens_a_deny_and_only_an_allow_loosens_an_ask(
    one: CallUnderJudgement, some: list[Rule], added: Rule
) -> None:
    before, after = rank(one, some), rank(one, [*some, added])
    if added.decision != "allow" or before == STRICTNESS["deny"]:
        assert after >= before
    # Where the rule stands in the list means nothing.
    assert rank(one, [added, *some]) == after


@settings(max_examples=100, deadline=None)
@given(calls, st.lists(rules, max_size=4))
def test_the_same_call_gets_the_same_verdict_again(one: CallUnderJudgement, some: list[Rule]) -> None:
    policy = compiled(rules=tuple(some))
    first = judge(one, policy)
    assert judge(one, policy) == first
    stored = GatePolicy.model_validate_json(policy.source.model_dump_json())
    assert judge(one, compile_policy(stored, TOOLS)) == first


@settings(max_examples=100, deadline=None)
@given(calls, st.lists(rules, max_size=4), st.sampled_from(["ask", "deny"]))
def test_no_hook_loosens_what_was_said(one: CallUnderJudgement, some: list[Rule], word: Any) -> None:
    owners = [rule for rule in some if rule.origin == "owner"]
    for hooks in ((Verdict("allow", "hook", "y"),), (Verdict(word, "hook", "no"),)):
        later = dataclasses.replace(one, hooks=(*one.hooks, *hooks))
        assert rank(later, owners) >= rank(one, owners)
