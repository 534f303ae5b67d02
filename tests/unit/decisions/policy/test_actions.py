"""Action policy: the order of the layers, and that deny wins over all of them."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.contracts.policies import ActionPolicy, ActionPolicyProvider
from wakeful.decisions.policy.actions import ActionPolicyResolver, RememberedKey

KNOWN = {"workspace_id": "w", "user_id": "u", "agent_id": "a"}
KEY = RememberedKey("w", "u", "a", "shop/refund")


class Provider:
    """A host's provider that says one thing, or raises it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Mapping[str, Any]] = []

    def get_action_policy(self, context: Mapping[str, Any]) -> str | None:
        self.asked.append(context)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


def resolved(
    *,
    tool: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    denied: tuple[str, ...] = (),
    name: Any = "shop/refund",
    **resolver: Any,
) -> str:
    made = ActionPolicyResolver(**resolver).resolve(name, tool, context, denied=denied)
    return made.policy.value


@pytest.mark.spec("API-ACT-01")
def test_there_are_exactly_three_policies_and_a_protocol_for_providers() -> None:
    assert [policy.value for policy in ActionPolicy] == ["direct", "preview", "forbidden"]
    provider: ActionPolicyProvider = Provider("preview")
    outcome = ActionPolicyResolver(providers=[provider]).resolve("shop/refund", {}, {"thread": "t"})
    assert outcome.policy is ActionPolicy.PREVIEW
    assert provider.get_action_policy({}) == "preview"


# Every layer from first to last, each with a word of its own that shows who spoke.
LAYERS: list[dict[str, Any]] = [
    {"denied": ("shop/refund",)},
    {"agent_policy": {"tools": {"shop/refund": "preview"}}},
    {"agent_policy": {"categories": {"money": "preview"}}},
    {"providers": [Provider("preview")]},
    {"remembered": {KEY}},
    {"tool": {"action_policy_chat": "preview"}},
    {"tool": {"action_policy": "preview"}},
]


def with_tool(layer: dict[str, Any]) -> dict[str, Any]:
    given = {"context": KNOWN, **layer}
    given["tool"] = {"category": "money", **layer.get("tool", {})}
    return given


@pytest.mark.spec("API-ACT-02")
def test_the_first_layer_that_has_a_word_decides_and_the_hook_comes_last() -> None:
    spoke = ["forbidden", "preview", "preview", "preview", "direct", "preview", "preview"]
    assert [resolved(**with_tool(layer)) for layer in LAYERS] == spoke
    assert resolved(context=KNOWN) == "direct"
    # Each layer against all that come after it, which say the opposite.
    tool = {"shop/refund": "direct"}
    category = {"money": "direct"}
    direct, other = [Provider("direct")], {"action_policy_chat": "preview", "action_policy": "preview"}
    in_category = {"category": "money", **other}
    per_tool = {"agent_policy": {"tools": {"shop/refund": "preview"}, "categories": category}}
    assert resolved(context=KNOWN, tool=in_category, providers=direct, remembered={KEY}, **per_tool) == "preview"
    by_category = {"agent_policy": {"tools": {"shop/other": "direct"}, "categories": {"money": "preview"}}}
    assert resolved(context=KNOWN, tool=in_category, providers=direct, remembered={KEY}, **by_category) == "preview"
    assert resolved(context=KNOWN, tool=in_category, providers=[Provider(None), *direct]) == "direct"
    assert resolved(context=KNOWN, tool=in_category, remembered={KEY}) == "direct"
    assert resolved(context=KNOWN, tool={"action_policy_chat": "direct", "action_policy": "preview"}) == "direct"
    assert resolved(context=KNOWN, tool=in_category, agent_policy={"tools": tool}) == "direct"
    seen: list[Any] = []

    def hook(policy: str, name: str, mode: str, context: Mapping[str, Any]) -> str:
        seen.append((policy, name, mode, dict(context)))
        return "preview"

    assert resolved(context=KNOWN, tool={"action_policy": "direct"}, hook=hook) == "preview"
    assert seen == [("direct", "shop/refund", "chat", KNOWN)]


@pytest.mark.spec("API-ACT-03")
def test_the_default_for_a_mode_is_looked_at_before_the_default_for_all() -> None:
    tool = {"action_policy_cron": "forbidden", "action_policy": "preview"}
    assert resolved(tool=tool, context={"mode": "cron"}) == "forbidden"
    assert resolved(tool=tool, context={"mode": "chat"}) == "preview"
    assert resolved(tool=tool) == "preview"


@pytest.mark.spec("API-ACT-04")
def test_a_forbidden_of_agent_run_or_provider_wins_over_everything() -> None:
    lenient: dict[str, Any] = {
        "context": KNOWN,
        "remembered": {KEY},
        "tool": {"category": "money", "action_policy": "direct", "action_policy_chat": "direct"},
        "hook": lambda *_: "direct",
    }
    allowing = {"tools": {"shop/refund": "direct"}, "categories": {"money": "direct"}}
    everything = {**lenient, "agent_policy": allowing, "providers": [Provider("direct")]}
    assert resolved(**everything) == "direct"  # inversion: with nobody forbidding, it is direct
    assert resolved(**everything, denied=("shop/refund",)) == "forbidden"
    for forbidding in (
        {"agent_policy": {"tools": {"shop/refund": "direct"}, "categories": {"money": "forbidden"}}},
        {"agent_policy": {"tools": {"shop/refund": "forbidden"}, "categories": {"money": "direct"}}},
        {"providers": [Provider("direct"), Provider("forbidden")]},
        {"context": {**KNOWN, "action_policy": {"tools": {"shop/refund": "forbidden"}}}},
        {
            "agent_policy": {"tools": {"shop/refund": "forbidden"}},
            "context": {**KNOWN, "action_policy": {"tools": {"shop/refund": "direct"}}},
        },
        {"hook": lambda *_: "forbidden"},
    ):
        assert resolved(**{**everything, **forbidding}) == "forbidden", forbidding
    # The hook turns preview and direct into each other.
    preview = {"tool": {"action_policy": "preview"}}
    assert resolved(**preview, hook=lambda *_: "direct") == "direct"
    assert resolved(hook=lambda *_: "preview") == "preview"
    # And is not even asked about what is forbidden.
    asked: list[Any] = []
    assert resolved(tool={"action_policy": "forbidden"}, hook=lambda *_: asked.append(1)) == "forbidden"
    assert asked == []


@pytest.mark.spec("API-ACT-05")
def test_the_agents_policy_is_a_table_of_tools_and_categories_which_a_run_may_replace() -> None:
    agent = {"tools": {"shop/refund": "preview"}, "categories": {"money": "preview"}}
    run = {"action_policy": {"tools": {"shop/refund": "direct"}}}
    assert resolved(agent_policy=agent) == "preview"
    assert resolved(agent_policy=agent, context=run) == "direct"
    assert resolved(agent_policy={"categories": {"money": "preview"}}, tool={"categories": ["x", "money"]}) == "preview"
    assert resolved(agent_policy={"categories": {"money": "preview"}}, tool={"ability": {"category": "money"}}) == (
        "preview"
    )
    assert resolved(agent_policy="preview") == "forbidden"


@pytest.mark.spec("API-ACT-06")
def test_a_remembered_approval_is_for_one_workspace_user_agent_and_tool() -> None:
    tool = {"action_policy": "preview"}
    assert resolved(tool=tool, context=KNOWN, remembered={KEY}) == "direct"
    for part in KNOWN:
        for value in (None, "", "another"):
            assert resolved(tool=tool, context={**KNOWN, part: value}, remembered={KEY}) == "preview"
    assert resolved(tool=tool, context=KNOWN, remembered={KEY}, name="shop/ship") == "preview"
    # With a part unknown it is not even looked for.
    blank = RememberedKey("", "u", "a", "shop/refund")
    assert resolved(tool=tool, context={**KNOWN, "workspace_id": ""}, remembered={blank}) == "preview"


@pytest.mark.spec("API-ACT-08")
@pytest.mark.parametrize("nonsense", ["allow", "DIRECT", "", 1, True, ["direct"], {}])
def test_no_name_or_no_known_word_is_forbidden(nonsense: Any) -> None:
    for name in ("", "  ", None, 7):
        assert resolved(name=name) == "forbidden"
    for layer in (
        {"agent_policy": {"tools": {"shop/refund": nonsense}}},
        {"agent_policy": {"categories": {"money": nonsense}}, "tool": {"category": "money"}},
        {"providers": [Provider(nonsense)]},
        {"tool": {"action_policy": nonsense}},
        {"tool": {"action_policy_chat": nonsense}},
        {"hook": lambda *_: nonsense},
    ):
        outcome = ActionPolicyResolver(
            **{key: value for key, value in layer.items() if key != "tool"}  # type: ignore[arg-type]
        ).resolve("shop/refund", layer.get("tool"))  # type: ignore[arg-type]
        assert (outcome.policy.value, len(outcome.diagnostics)) == ("forbidden", 1), layer
        assert repr(nonsense) in outcome.diagnostics[0]


def raising(*_: Any) -> str:
    raise RuntimeError("no database")


@pytest.mark.spec("API-ACT-09")
def test_a_provider_or_hook_that_raises_forbids_and_says_so() -> None:
    for resolver in (
        ActionPolicyResolver(providers=[Provider("direct"), Provider(RuntimeError("no database"))]),
        ActionPolicyResolver(hook=raising),
    ):
        outcome = resolver.resolve("shop/refund")
        assert outcome.policy is ActionPolicy.FORBIDDEN
        assert any("RuntimeError: no database" in problem for problem in outcome.diagnostics)
    assert ActionPolicyResolver().resolve("shop/refund").diagnostics == ()


def test_an_outcome_in_the_gates_words() -> None:
    resolver = ActionPolicyResolver(agent_policy={"tools": {"a/x": "forbidden", "a/y": "preview"}})
    verdicts = [resolver.resolve(name).verdict() for name in ("a/x", "a/y", "a/z")]
    assert [(one.decision, one.source) for one in verdicts] == [
        ("deny", "host_policy"),
        ("ask", "host_policy"),
        ("allow", "host_policy"),
    ]
    assert verdicts[0].error_type == "action_forbidden"


words = st.sampled_from(["direct", "preview", "forbidden", "nonsense", None])


@given(words, words, words, words, words)
def test_no_layer_loosens_a_forbidden_and_resolving_twice_is_the_same(
    tool: Any, category: Any, provider: Any, default: Any, hook: Any
) -> None:
    table = {"tools": {"shop/refund": tool} if tool else {}, "categories": {"money": category} if category else {}}
    resolver = ActionPolicyResolver(
        agent_policy=table,
        providers=[Provider(provider)],
        remembered={KEY},
        hook=None if hook is None else lambda *_: hook,
    )
    declared = {"category": "money", "action_policy": default}
    first = resolver.resolve("shop/refund", declared, KNOWN)
    if {"forbidden", "nonsense"} & {tool, category, provider, hook}:
        assert first.policy is ActionPolicy.FORBIDDEN
    assert resolver.resolve("shop/refund", declared, KNOWN) == first
