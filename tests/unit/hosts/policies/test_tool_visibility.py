"""Which tools a model is shown, and that no hook, flag or name brings back what policy hides."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.policies import GatePolicy, ToolAccessPolicy
from wakeful.contracts.principals import CapabilityCeiling, ExecutionPrincipal
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.policy.actions import ActionPolicyResolver
from wakeful.decisions.policy.permissions import default_policy
from wakeful.decisions.policy.verdict import CallUnderJudgement, compile_policy, judge
from wakeful.hosts import ToolAccessPolicy as HostToolAccessPolicy
from wakeful.hosts import ToolPolicy, tiered
from wakeful.hosts import ToolPolicyFilter as HostToolPolicyFilter
from wakeful.hosts.policies.tool_visibility import ToolPolicyFilter, ToolVisibility
from wakeful.hosts.tools.declaration_reader import normalize_for_conversation_request

ANN = ExecutionPrincipal(acting_user_id="ann", effective_agent_id="a", auth_source="user", request_context="chat")
CRON = ExecutionPrincipal(effective_agent_id="a", auth_source="system", request_context="cron")
TOOLS: dict[str, Any] = {
    "shop/look": {"category": "read"},
    "shop/refund": {"category": "money", "write": True},
    "shop/help": {"mandatory": True},
    "client/pick": {"executor": "client", "scope": "run", "category": "ui"},
}


class Access:
    """A host's provider of policy."""

    def __init__(self, fragment: Any) -> None:
        self.fragment = fragment

    def get_tool_policy(self, context: Mapping[str, Any]) -> Any:
        if isinstance(self.fragment, Exception):
            raise self.fragment
        return self.fragment


def shown(policy: ToolVisibility | None = None, tools: dict[str, Any] | None = None, **context: Any) -> set[str]:
    given = {"principal": ANN, **context}
    return set((policy or ToolVisibility()).resolve(tools or TOOLS, given))


def by(fragment: dict[str, Any], **more: Any) -> ToolVisibility:
    return ToolVisibility(agent_policy=fragment, **more)


OWN = {"shop/look", "shop/refund", "shop/help"}


@pytest.mark.spec("API-VIS-02", "API-VIS-03")
def test_a_tool_the_caller_brought_is_hidden_until_policy_names_it() -> None:
    brought = (
        {"executor": "client", "category": "ui"},
        {"runtime_tool": True, "category": "ui"},
        {"scope": "run", "category": "ui"},
    )
    opt_ins: list[dict[str, Any]] = [
        {"runtime_tools": ["client/pick"]},
        {"runtime_categories": ["ui"]},
        {"mode": "allow", "tools": ["client/pick"]},
        {"mode": "allow", "categories": ["ui"]},
        {"allow_only": ["client/pick"]},
    ]
    for tool in brought:
        tools = {"client/pick": tool}
        assert shown(tools=tools) == set()
        for fragment in opt_ins:
            assert shown(by(fragment), tools=tools) == {"client/pick"}
            assert shown(ToolVisibility(providers=[Access(fragment)]), tools=tools) == {"client/pick"}
            assert shown(tools=tools, tool_policy=fragment) == {"client/pick"}
        for mandatory in ({"mandatory_tools": ["client/pick"]}, {"mandatory_categories": ["ui"]}):
            assert shown(ToolVisibility(providers=[Access(mandatory)]), tools=tools) == {"client/pick"}
        # What does not name it does not let it in, and neither does its own word.
        for other in ({"tools": ["client/pick"]}, {"runtime_tools": ["client/other"]}, {"runtime_tools": ["pick"]}):
            assert shown(by(other), tools=tools) == set()
        assert shown(tools={"client/pick": {**tool, "mandatory": True}}) == set()


@pytest.mark.spec("API-VIS-04")
def test_a_scope_that_was_filled_in_makes_no_runtime_tool() -> None:
    raw = {"name": "shop/look", "source": "shop", "description": "looks", "effect": "pure"}
    filled_in = normalize_for_conversation_request(raw)
    assert (filled_in.scope, filled_in.executor) == ("run", "host")
    assert shown(tools={"shop/look": filled_in}) == {"shop/look"}
    # Inversion: the same scope, written by the caller, does.
    written = normalize_for_conversation_request({**raw, "scope": "run"})
    assert shown(tools={"shop/look": written}) == set()


@pytest.mark.spec("API-VIS-05")
def test_a_fragment_has_these_fields_and_comes_from_agent_run_and_providers() -> None:
    whole = {
        "mode": "allow",
        "tools": ["shop/look"],
        "categories": ["money"],
        "allow_only": ["shop/*", "client/pick"],
        "deny": ["shop/none"],
        "runtime_tools": ["client/pick"],
        "runtime_categories": ["ui"],
        "mandatory_tools": ["shop/look"],
        "mandatory_categories": ["read"],
        "allow_write_tools": True,
    }
    assert shown(by(whole)) == OWN
    assert ToolPolicyFilter.read({}, "policy").fragment.mode == "deny"
    # What several would leave out, the first of them does: the agent, then the run, then the provider.
    provider = Access({"tools": ["shop/look", "shop/help", "shop/refund"]})
    resolution = by({"tools": ["shop/look"]}, providers=[provider]).explained(
        TOOLS, {"principal": ANN, "tool_policy": {"tools": ["shop/look", "shop/help"]}}
    )
    assert resolution.tools == {}
    assert {name: resolution.hidden[name] for name in OWN} == {
        "shop/look": "the agent's policy leaves it out",
        "shop/help": "the policy of the run leaves it out",
        "shop/refund": "the policy of Access leaves it out",
    }
    for wrong in ({"mode": "maybe"}, {"allowed": []}, {"tools": "shop/look"}, {"allow_write_tools": "yes"}):
        with pytest.raises(InvalidConfig):
            by(wrong)


@pytest.mark.spec("API-VIS-06")
def test_the_steps_are_taken_in_their_order() -> None:
    """Each tool would be taken away by every step from its own on; the reason shows which one came first."""
    tools = {
        "t/mode": {"modes": ["cron"]},
        "t/checker": {},
        "t/fragment": {},
        "t/category": {"category": "c"},
        "t/only": {"category": "kept"},
        "client/optin": {"executor": "client", "category": "kept", "write": True},
        "t/write": {"category": "kept", "write": True},
        "t/deny": {"category": "kept"},
        "t/hook": {"category": "kept"},
        "t/last": {"category": "kept", "mode": "chat"},
    }
    policy = ToolVisibility(
        agent_policy={
            "tools": ["t/mode", "t/checker", "t/fragment"],
            "allow_only": ["t/write", "t/deny", "t/hook", "t/last", "client/*"],
            "deny": list(tools)[:-2],
        },
        access_checker=lambda name, tool, context: name not in ("t/mode", "t/checker"),
        resolved_tools=lambda shown, mode, context: {n: t for n, t in shown.items() if n != "t/hook"},
    )
    found = policy.explained(tools, {"principal": CRON, "categories": ["kept"]})
    steps = [found.hidden.get(name, "shown") for name in tools]
    assert steps == [
        "it is for mode cron, not chat",
        "the access checker refuses it",
        "the agent's policy leaves it out",
        "it is in none of the categories kept",
        "only t/write, t/deny, t/hook, t/last, client/* may be shown",
        "client/optin is denied",  # named by allow_only, which is an opt-in
        "t/write is denied",  # likewise
        "t/deny is denied",
        "the hook resolved_tools leaves it out",
        "shown",
    ]
    # Without the list that opts in, the two middle steps speak before the deny list.
    bare = ToolVisibility(agent_policy={"deny": ["client/optin", "t/write"]})
    found = bare.explained(tools, {"principal": CRON})
    assert found.hidden["client/optin"] == "the caller brought it, and no policy names it"
    assert found.hidden["t/write"] == "it writes, no person is behind this run, and no policy names it"


@pytest.mark.spec("API-VIS-07")
def test_allow_keeps_what_matches_and_deny_takes_it_away() -> None:
    assert shown(by({"mode": "allow", "tools": ["shop/look"]})) == {"shop/look", "shop/help"}
    assert shown(by({"mode": "allow", "categories": ["money"]})) == {"shop/refund", "shop/help"}
    assert shown(by({"mode": "allow"})) == {"shop/help"}
    assert shown(by({"mode": "deny", "tools": ["shop/look"]})) == {"shop/refund", "shop/help"}
    assert shown(by({"mode": "deny", "categories": ["money"]})) == {"shop/look", "shop/help"}
    assert shown(by({"mode": "deny"})) == OWN
    # Mandatory, by flag, name or category, survives allow, categories and opt-in.
    for mandatory in ({"mandatory_tools": ["client/pick"]}, {"mandatory_categories": ["ui"]}):
        hard = by({"mode": "allow", **mandatory})
        assert shown(hard, categories=["nothing"]) == {"shop/help", "client/pick"}
    assert shown(by({"allow_only": ["shop/look"]})) == {"shop/look", "shop/help"}


@pytest.mark.spec("API-VIS-08")
def test_the_deny_list_wins_over_everything_and_over_the_hook() -> None:
    wanted = {
        "mode": "allow",
        "tools": ["client/pick", "shop/help"],
        "allow_only": ["client/pick", "shop/help"],
        "runtime_tools": ["client/pick"],
        "mandatory_tools": ["client/pick", "shop/help"],
    }
    assert shown(by(wanted)) == {"client/pick", "shop/help"}
    denied = by({**wanted, "deny": ["pick", "shop/help"]}, resolved_tools=lambda tools, mode, context: dict(TOOLS))
    found = denied.explained(TOOLS, {"principal": ANN})
    assert found.tools == {}
    assert any("cannot show client/pick" in problem for problem in found.diagnostics)
    # Inversion: a host that believed the hook would show all of them.
    assert denied.resolved_tools is not None
    assert set(denied.resolved_tools({}, "chat", {})) == set(TOOLS)


UNATTENDED: list[Any] = [
    CRON,
    ExecutionPrincipal(effective_agent_id="a", auth_source="user", request_context="chat"),
    ExecutionPrincipal(acting_user_id="ann", effective_agent_id="a", auth_source="agent_token", request_context="x"),
    None,
    {"auth_source": "user"},
    "ann",
]


@pytest.mark.spec("API-VIS-09")
@pytest.mark.parametrize("principal", UNATTENDED)
def test_without_a_person_a_writing_tool_needs_the_same_opt_in(principal: Any) -> None:
    for flag in (
        {"write": True},
        {"mutating": True},
        *({"category": word} for word in ("write", "publishing", "mutating", "destructive")),
    ):
        tools = {"shop/refund": flag, "shop/look": {}}
        assert shown(tools=tools, principal=principal) == {"shop/look"}
        assert shown(tools=tools, principal=ANN) == {"shop/look", "shop/refund"}
        for fragment in (
            {"runtime_tools": ["shop/refund"]},
            {"mode": "allow", "tools": ["shop/refund"]},
            {"allow_only": ["shop/refund"]},
            {"allow_write_tools": True},
        ):
            assert "shop/refund" in shown(by(fragment), tools=tools, principal=principal)
        provided = ToolVisibility(providers=[Access({"mandatory_tools": ["shop/refund"]})])
        assert "shop/refund" in shown(provided, tools=tools, principal=principal)
        assert "shop/refund" in shown(tools=tools, principal=principal, allow_write_tools=True)
        assert "shop/refund" not in shown(tools=tools, principal=principal, allow_write_tools="yes")


@pytest.mark.spec("API-VIS-10")
def test_emptying_the_categories_does_not_switch_the_write_gate_off_and_no_hook_gets_round_it() -> None:
    tools = {"a/flag": {"write": True}, "a/mutating": {"mutating": True}, "a/category": {"category": "write"}}
    assert shown(ToolVisibility(write_categories=()), tools=tools, principal=CRON) == {"a/category"}

    def bring_back(shown: dict[str, Any], mode: str, context: Mapping[str, Any]) -> dict[str, Any]:
        return {name: {} for name in tools}

    assert shown(ToolVisibility(resolved_tools=bring_back), tools=tools, principal=CRON) == set()
    assert shown(ToolVisibility(resolved_tools=bring_back), tools=tools, principal=ANN) == set(tools)


@pytest.mark.spec("API-VIS-11")
def test_the_categories_of_a_tool_come_from_three_places() -> None:
    for tool in ({"category": "c"}, {"categories": ["b", "c"]}, {"ability": {"name": "x", "category": "c"}}):
        assert shown(by({"categories": ["c"]}), tools={"a/x": tool, "a/y": {}}) == {"a/y"}


@pytest.mark.spec("API-VIS-12")
def test_a_checker_that_raises_hides_its_tool_and_a_provider_that_fails_hides_what_is_not_mandatory() -> None:
    def picky(name: str, tool: Mapping[str, Any], context: Mapping[str, Any]) -> bool:
        if name == "shop/look":
            raise RuntimeError("no directory")
        return True

    found = ToolVisibility(access_checker=picky).explained(TOOLS, {"principal": ANN})
    assert set(found.tools) == {"shop/refund", "shop/help"}
    assert found.diagnostics == ("the access checker raised RuntimeError for shop/look: no directory",)
    for failing in (RuntimeError("no database"), {"mode": "maybe"}, ["allow"]):
        found = ToolVisibility(providers=[Access(None), Access(failing)]).explained(TOOLS, {"principal": ANN})
        assert (set(found.tools), len(found.diagnostics)) == ({"shop/help"}, 1)
    assert shown(ToolVisibility(providers=[Access(None)])) == OWN  # inversion: one that works hides nothing
    assert shown(tool_policy={"mode": "maybe"}) == {"shop/help"}


@pytest.mark.parametrize("answer", [None, ["shop/look"], RuntimeError("no")])
def test_a_hook_that_fails_leaves_only_what_is_mandatory(answer: Any) -> None:
    def hook(*_: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    found = ToolVisibility(resolved_tools=hook).explained(TOOLS, {"principal": ANN})
    assert (set(found.tools), len(found.diagnostics)) == ({"shop/help"}, 1)


def test_a_hook_may_describe_a_tool_anew_and_order_what_is_shown() -> None:
    policy = ToolVisibility(resolved_tools=lambda tools, mode, context: {"shop/look": {"description": "short"}})
    assert policy.resolve(TOOLS, {"principal": ANN}) == {"shop/look": {"description": "short"}}


@pytest.mark.spec("API-VIS-01")
def test_the_policy_decides_what_is_seen_and_the_call_is_judged_on_its_own() -> None:
    policy = ToolPolicy(agent_policy={"deny": ["refund"]})
    shown_now = policy.resolve({"refund": {}, "look": {}}, {"principal": ANN})
    assert shown_now == {"look": {}}
    assert issubclass(HostToolPolicyFilter, ToolPolicyFilter)
    assert callable(HostToolAccessPolicy.get_tool_policy)
    declared = [
        ToolDeclaration(name="refund", input_schema={}, effect="pure"),
        ToolDeclaration(name="look", input_schema={}, effect="pure"),
    ]
    offered = [tool for tool in declared if tool.name in shown_now]
    gate = compile_policy(GatePolicy(tools=default_policy("thread")), offered)

    def judged(name: str, **more: Any) -> tuple[str, str]:
        verdict = judge(CallUnderJudgement(name=name, arguments={}, now=0.0, **more), gate)
        return verdict.decision, verdict.error_type

    # Being hidden is no protection and being shown is no permission: the check at the call decides.
    assert judged("refund") == ("deny", "tool_not_found")
    assert judged("look")[0] == "allow"
    forbidden = ActionPolicyResolver(agent_policy={"tools": {"look": "forbidden"}}).resolve("look")
    assert judged("look", action=forbidden) == ("deny", "action_forbidden")
    above = compile_policy(
        GatePolicy(tools=default_policy("thread")),
        declared,
        ceiling=CapabilityCeiling(allowed=()),
        required_capabilities={"look": "read"},
    )
    refused = judge(CallUnderJudgement(name="look", arguments={}, now=0.0), above)
    assert (refused.decision, refused.error_type) == ("deny", "capability_denied")


def test_a_provider_is_anything_with_the_method() -> None:
    provider: ToolAccessPolicy = Access({"deny": ["shop/*"]})
    assert shown(ToolVisibility(providers=[provider])) == set()


def test_at_most_fifteen_tools_are_listed_in_full_and_the_rest_is_found_by_searching() -> None:
    tools = {f"shop/tool_{n:02}": {"description": f"counts {n} boxes"} for n in range(40)}
    tools["shop/refund"] = {"description": "Gives money back", "category": "payments"}
    tiers = tiered(tools, preferred=["shop/tool_39"])
    assert len(tiers.first) == 15
    assert next(iter(tiers.first)) == "shop/tool_39"
    assert len(tiered(tools, limit=100).first) == 15
    assert set(tiers.first) | set(tiers.rest) == set(tools)
    assert not set(tiers.first) & set(tiers.rest)
    assert tiers.search("give MONEY back") == ["shop/refund"]
    assert tiers.search("payments") == ["shop/refund"]
    hits = [hit for n in range(40) for hit in tiers.search(f"tool_{n:02}", limit=40)]
    assert set(tiers.rest) - {"shop/refund"} <= set(hits)
    assert len(tiers.search("boxes")) == 15


names = st.lists(st.sampled_from([*TOOLS, "shop/*", "*"]), max_size=2)
fragments = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(["allow", "deny"]),
        "tools": names,
        "allow_only": names,
        "deny": names,
        "runtime_tools": names,
        "mandatory_tools": names,
        "allow_write_tools": st.booleans(),
    },
)


@given(st.lists(fragments, max_size=3), st.sampled_from([ANN, CRON, None]), names)
def test_denying_more_never_shows_more_and_resolving_twice_is_the_same(
    met: list[dict[str, Any]], principal: Any, denied: list[str]
) -> None:
    policy = ToolVisibility(providers=[Access(fragment) for fragment in met])
    before = shown(policy, principal=principal)
    assert shown(policy, principal=principal) == before
    stricter = ToolVisibility(providers=[*policy.providers, Access({"deny": denied})])
    assert shown(stricter, principal=principal) <= before
    for fragment in met:
        assert not before & {name for name in TOOLS if name in fragment.get("deny", ())}
