"""What may become of an action, through the loop: every layer has its say, and a deny of any of them holds."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kit.hosts.loop_host import SEARCH, Host, calling, search
from wakeful.contracts.errors import InvalidConfig
from wakeful.hosts import ActionPolicy, ConversationLoop, ConversationResult, RememberedKey

KNOWN = {"workspace_id": "w", "user_id": "u", "agent_id": "a"}
KEY = RememberedKey("w", "u", "a", "ability/search")
NAMED = "ability/search"


class Provider:
    """A host's provider that says one thing, or raises it."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def get_action_policy(self, context: Mapping[str, Any]) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


async def became(
    *,
    tool: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    providers: list[Any] | None = None,
    hook: Callable[..., Any] | None = None,
    **agent: Any,
) -> str:
    """What a call of the search tool comes to, in the words of action policy."""
    host = Host(calling(search("x")), {"content": "done"})
    if providers is not None:
        host.hooks.register("action_policy_providers", lambda found, context: [*found, *providers])
    if hook is not None:
        host.hooks.register("tool_action_policy", hook)
    loop = ConversationLoop(store=host.store, hooks=host.hooks, **agent)
    options = {
        "tool_executor": host,
        "tool_declarations": {NAMED: {**SEARCH, "category": "money", **(tool or {})}},
        "context": dict(context or {}),
        "max_turns": 2,
    }
    return outcome(await loop.run([{"role": "user", "content": "go"}], host.turn_runner, options), host)


def outcome(result: ConversationResult, host: Host) -> str:
    if result.status == "approval_required":
        return "preview"
    (entry,) = result.tool_execution_results
    kind = entry["result"]["metadata"].get("error_type")
    assert (kind is None) == bool(host.calls)
    return "direct" if kind is None else {"action_forbidden": "forbidden"}.get(kind, kind)


@pytest.mark.spec("API-ACT-01")
async def test_an_action_is_direct_shown_first_or_forbidden() -> None:
    words = [policy.value for policy in ActionPolicy]
    assert words == ["direct", "preview", "forbidden"]
    assert [await became(action_policy={"tools": {NAMED: word}}) for word in words] == words
    assert await became(providers=[Provider("preview")]) == "preview"


@pytest.mark.spec("API-ACT-02", "API-ACT-03")
async def test_the_first_layer_that_has_a_word_decides() -> None:
    asks = {"action_policy": "preview", "action_policy_chat": "preview"}
    assert await became() == "direct"
    # From the last layer to the first, each against all that come after it.
    assert await became(tool={"action_policy": "preview"}) == "preview"
    assert await became(tool={"action_policy": "preview", "action_policy_chat": "direct"}) == "direct"
    assert await became(tool={"action_policy_cron": "forbidden"}, context={"mode": "cron"}) == "forbidden"
    remembers = {"remembered_approvals": lambda key: key == KEY}
    assert await became(tool=asks, context=KNOWN, **remembers) == "direct"
    asking = [Provider(None), Provider("preview")]
    assert await became(context=KNOWN, providers=asking, **remembers) == "preview"
    by_category = {"action_policy": {"categories": {"money": "direct"}}}
    assert await became(tool=asks, context=KNOWN, providers=asking, **by_category) == "direct"
    by_tool = {"action_policy": {"tools": {NAMED: "preview"}, "categories": {"money": "direct"}}}
    assert await became(context=KNOWN, **by_tool, **remembers) == "preview"
    # The hook comes last.
    seen: list[Any] = []
    hooked = await became(hook=lambda policy, name, mode, context: (seen.append((policy, name, mode)), "preview")[1])
    assert (hooked, seen) == ("preview", [("direct", NAMED, "chat")])


@pytest.mark.spec("API-ACT-04")
@pytest.mark.parametrize(
    "forbidding",
    [
        {},
        {"action_policy": {"tools": {NAMED: "direct"}, "categories": {"money": "forbidden"}}},
        {"action_policy": {"tools": {NAMED: "forbidden"}, "categories": {"money": "direct"}}},
        {"providers": [Provider("direct"), Provider("forbidden")]},
        {"context": {**KNOWN, "action_policy": {"tools": {NAMED: "forbidden"}}}},
        {
            "action_policy": {"tools": {NAMED: "forbidden"}},
            "context": {**KNOWN, "action_policy": {"tools": {NAMED: "direct"}}},
        },
        {"hook": lambda *_: "forbidden"},
    ],
    ids=["nobody", "category", "tool", "provider", "run", "agent over run", "hook"],
)
async def test_a_forbidden_of_any_layer_holds_whoever_permits(forbidding: dict[str, Any]) -> None:
    """With nobody who forbids it is direct: every layer permits it."""
    permitting: dict[str, Any] = {
        "context": KNOWN,
        "remembered_approvals": lambda key: True,
        "tool": {"action_policy": "direct", "action_policy_chat": "direct"},
        "hook": lambda *_: "direct",
        "action_policy": {"tools": {NAMED: "direct"}, "categories": {"money": "direct"}},
        "providers": [Provider("direct")],
    }
    assert await became(**{**permitting, **forbidding}) == ("forbidden" if forbidding else "direct")


@pytest.mark.spec("API-ACT-05")
async def test_the_agents_table_holds_unless_the_run_brings_its_own() -> None:
    agent = {"action_policy": {"tools": {NAMED: "preview"}}}
    assert await became(**agent) == "preview"
    assert await became(context={"action_policy": {"tools": {NAMED: "direct"}}}, **agent) == "direct"
    assert await became(tool={"category": "", "categories": ["x", "post"]}, action_policy=by("post")) == "preview"
    assert await became(context={"action_policy": "preview"}) == "forbidden"


def by(category: str) -> dict[str, Any]:
    return {"categories": {category: "preview"}}


@pytest.mark.spec("API-ACT-06")
async def test_a_remembered_approval_is_asked_for_only_where_all_four_are_known() -> None:
    asked: list[Any] = []

    def remembers(key: RememberedKey) -> bool:
        asked.append(key)
        return key == KEY

    async def with_context(**context: Any) -> str:
        return await became(
            tool={"action_policy": "preview"}, context={**KNOWN, **context}, remembered_approvals=remembers
        )

    assert (await with_context(), asked.pop()) == ("direct", KEY)
    assert (await with_context(user_id="another"), asked.pop()) == ("preview", KEY._replace(user="another"))
    for part in KNOWN:
        assert await with_context(**{part: ""}) == "preview"
    assert asked == []

    async def broken(key: RememberedKey) -> bool:
        raise RuntimeError("no database")

    known = {"tool": {"action_policy": "preview"}, "context": KNOWN}
    assert await became(**known, remembered_approvals=broken) == "preview"
    assert await became(**known, remembered_approvals=lambda key: "yes") == "preview"


@pytest.mark.spec("API-ACT-08", "API-ACT-09")
async def test_no_known_word_and_whoever_raises_forbid() -> None:
    for nonsense in ("allow", "DIRECT", "", 1, ["direct"]):
        assert await became(action_policy={"tools": {NAMED: nonsense}}) == "forbidden"
        assert await became(providers=[Provider(nonsense)]) == "forbidden"
    assert await became(hook=lambda *_: "allow") == "forbidden"

    def raises(*_: Any) -> str:
        raise RuntimeError("no database")

    assert await became(providers=[Provider("direct"), Provider(RuntimeError("no database"))]) == "forbidden"
    assert await became(hook=raises) == "forbidden"


async def test_the_agents_own_tool_policy_hides_tools_whatever_the_run_says() -> None:
    denies = {"tool_policy": {"mode": "deny", "tools": [NAMED]}}
    assert await became(**denies) == "tool_not_found"
    assert await became(context={"tool_policy": {"mode": "allow", "tools": [NAMED]}}, **denies) == "tool_not_found"
    assert await became(context={"tool_policy": {"mode": "allow", "tools": [NAMED]}}) == "direct"
    with pytest.raises(InvalidConfig, match="the agent's policy is not usable: mode"):
        ConversationLoop(tool_policy={"mode": "perhaps"})
