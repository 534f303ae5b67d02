"""Action policy: is an action done directly, shown to a person first, or forbidden?

The first of these that has a word decides:

    1. an explicit deny of the run             final
    2. the policy for this tool                the run's own policy when it has one, else the agent's
    3. the policy for one of its categories    likewise
    4. the host's providers                    in their order
    5. a remembered approval                   of this workspace, user, agent and tool, when all four are known
    6. the tool's default for the mode         `action_policy_<mode>`
    7. the tool's default                      `action_policy`
    8. direct

Deny wins all the same: a `forbidden` of the agent, the run or any provider holds whoever spoke first. Then the hook
may turn preview and direct into each other, or forbid. An unknown word, an empty name, a provider or a hook that
raises: forbidden, with a diagnostic.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from wakeful.contracts.policies import ActionPolicy, ActionPolicyProvider
from wakeful.contracts.verdicts import Verdict

ACTION_FORBIDDEN = "action_forbidden"
DEFAULT_MODE = "chat"
FORBIDDEN, PREVIEW, DIRECT = ActionPolicy.FORBIDDEN, ActionPolicy.PREVIEW, ActionPolicy.DIRECT
ActionHook: TypeAlias = Callable[[str, str, str, Mapping[str, Any]], Any]
"""`tool_action_policy`: (policy, tool_name, mode, context) -> policy."""
PolicyTable: TypeAlias = Mapping[str, Any]
"""`{tools: {name: value}, categories: {category: value}}`."""


class RememberedKey(NamedTuple):
    """The key of a remembered approval."""

    workspace: str
    user: str
    agent: str
    tool: str


@dataclass(frozen=True, slots=True)
class ResolvedAction:
    """What was resolved, which layer said so, and what went wrong on the way."""

    policy: ActionPolicy
    layer: str
    reason: str
    diagnostics: tuple[str, ...] = ()

    def verdict(self) -> Verdict:
        """The same in the gate's words: preview asks, forbidden denies."""
        if self.policy is FORBIDDEN:
            return Verdict("deny", "host_policy", self.reason, (), "action", error_type=ACTION_FORBIDDEN)
        return Verdict("ask" if self.policy is PREVIEW else "allow", "host_policy", self.reason, (), "action")


@dataclass(frozen=True, slots=True)
class ActionPolicyResolver:
    """Resolves action policy from what an agent and its host said. Asks nobody but what it was given."""

    agent_policy: PolicyTable | None = None
    providers: Sequence[ActionPolicyProvider] = ()
    remembered: Collection[RememberedKey] = field(default=frozenset())
    hook: ActionHook | None = None

    def resolve(
        self,
        tool_name: object,
        tool: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        denied: Collection[str] = (),
    ) -> ResolvedAction:
        """`tool` is the declaration as an object; `denied` the tools the run denies explicitly.

        The context may have `mode`, `action_policy` (the run's own table), and `workspace_id`, `user_id`, `agent_id`.
        """
        if not isinstance(tool_name, str) or not tool_name.strip():
            return ResolvedAction(FORBIDDEN, "name", "a call without a tool's name is forbidden")
        if tool_name in denied:
            return ResolvedAction(FORBIDDEN, "runtime_deny", f"this run denies {tool_name}")
        declared, given = tool or {}, context or {}
        mode = given.get("mode") or DEFAULT_MODE
        diagnostics: list[str] = []
        try:
            outcome = self._first_word(tool_name, declared, given, str(mode), diagnostics)
            if outcome.policy is not FORBIDDEN:
                outcome = self._hooked(outcome, tool_name, str(mode), given, diagnostics)
        except Exception as error:
            diagnostics.append(f"resolving the action policy of {tool_name} raised {_named(error)}")
            outcome = ResolvedAction(FORBIDDEN, "resolver", diagnostics[-1])
        return ResolvedAction(outcome.policy, outcome.layer, outcome.reason, tuple(diagnostics))

    def _first_word(
        self, name: str, tool: Mapping[str, Any], context: Mapping[str, Any], mode: str, diagnostics: list[str]
    ) -> ResolvedAction:
        said: list[ResolvedAction] = []
        run_policy = context.get("action_policy")
        tables = (("agent policy", self.agent_policy),) if run_policy is None else (("run policy", run_policy),)
        for whose, table in tables:
            said += _table_words(whose, table, name, tool, diagnostics)
        if run_policy is not None and self.agent_policy is not None:
            # The run's table stands in the place of the agent's, and still cannot lift what the agent forbids.
            agent = _table_words("agent policy", self.agent_policy, name, tool, diagnostics)
            said += [word for word in agent if word.policy is FORBIDDEN]
        for provider in self.providers:
            said += self._provider_word(provider, name, mode, context, diagnostics)
        forbidding = next((word for word in said if word.policy is FORBIDDEN), None)
        if forbidding is not None:
            return forbidding
        if said:
            return said[0]
        key = remembered_key(name, context)
        if key is not None and key in self.remembered:
            return ResolvedAction(DIRECT, "remembered", f"{key.user} approved {name} before, for good")
        for setting in (f"action_policy_{mode}", "action_policy"):
            if tool.get(setting) is not None:
                return _word(tool[setting], "tool", f"{name} says {setting}", diagnostics)
        return ResolvedAction(DIRECT, "default", f"nothing is said about {name}")

    def _provider_word(
        self,
        provider: ActionPolicyProvider,
        name: str,
        mode: str,
        context: Mapping[str, Any],
        diagnostics: list[str],
    ) -> list[ResolvedAction]:
        whose = type(provider).__name__
        try:
            value = provider.get_action_policy({**context, "tool_name": name, "mode": mode})
        except Exception as error:
            diagnostics.append(f"the action policy provider {whose} raised {_named(error)}")
            return [ResolvedAction(FORBIDDEN, "provider", f"{name} is forbidden: {diagnostics[-1]}")]
        return [] if value is None else [_word(value, "provider", f"the provider {whose} on {name}", diagnostics)]

    def _hooked(
        self, outcome: ResolvedAction, name: str, mode: str, context: Mapping[str, Any], diagnostics: list[str]
    ) -> ResolvedAction:
        if self.hook is None:
            return outcome
        try:
            value = self.hook(outcome.policy.value, name, mode, context)
        except Exception as error:
            value = error
        hooked = after_hook(outcome, name, value)
        diagnostics += hooked.diagnostics[len(outcome.diagnostics) :]
        return hooked


def after_hook(outcome: ResolvedAction, name: str, value: Any) -> ResolvedAction:
    """What stands after the hook `tool_action_policy`, given what it returned or raised. It lifts nothing forbidden."""
    if outcome.policy is FORBIDDEN:
        return outcome
    diagnostics = list(outcome.diagnostics)
    if isinstance(value, Exception):
        diagnostics.append(f"the hook tool_action_policy raised {_named(value)}")
        return ResolvedAction(FORBIDDEN, "hook", f"{name} is forbidden: {diagnostics[-1]}", tuple(diagnostics))
    hooked = _word(value, "hook", f"the hook tool_action_policy on {name}", diagnostics)
    if hooked.policy is outcome.policy:
        return outcome
    return ResolvedAction(hooked.policy, hooked.layer, hooked.reason, tuple(diagnostics))


def _table_words(
    whose: str, table: Any, name: str, tool: Mapping[str, Any], diagnostics: list[str]
) -> list[ResolvedAction]:
    """The words of one table: for the tool, then for its categories, the strictest of those."""
    if table is None:
        return []
    if not isinstance(table, Mapping):
        diagnostics.append(f"the {whose} is a {type(table).__name__}, not an object with tools and categories")
        return [ResolvedAction(FORBIDDEN, whose, f"{name} is forbidden: {diagnostics[-1]}")]
    tools, categories = table.get("tools") or {}, table.get("categories") or {}
    words = [_word(tools[name], whose, f"the {whose} for {name}", diagnostics)] if name in tools else []
    by_category = [
        _word(categories[category], whose, f"the {whose} for the category {category}", diagnostics)
        for category in categories_of(tool)
        if category in categories
    ]
    return words + sorted(by_category, key=lambda word: _ORDER[word.policy])


def categories_of(tool: Mapping[str, Any]) -> tuple[str, ...]:
    """Its `category`, its `categories`, and the category of the ability it wraps."""
    ability = tool.get("ability")
    listed = tool.get("categories")
    found = [
        tool.get("category"),
        *(listed if isinstance(listed, list | tuple | set | frozenset) else ()),
        ability.get("category") if isinstance(ability, Mapping) else None,
        tool.get("ability_category"),
    ]
    return tuple(dict.fromkeys(one for one in found if isinstance(one, str) and one))


def _word(value: Any, layer: str, whose: str, diagnostics: list[str]) -> ResolvedAction:
    try:
        policy = ActionPolicy(value)
    except ValueError:
        diagnostics.append(f"{whose} says {value!r}, which is none of direct, preview, forbidden")
        return ResolvedAction(FORBIDDEN, layer, diagnostics[-1])
    return ResolvedAction(policy, layer, f"{whose}: {policy.value}")


def remembered_key(name: str, context: Mapping[str, Any]) -> RememberedKey | None:
    """What an approval of this tool is remembered by; None where one of the four is not known."""
    workspace, user, agent = (context.get(part) for part in ("workspace_id", "user_id", "agent_id"))
    if not all(isinstance(part, str) and part for part in (workspace, user, agent)):
        return None
    return RememberedKey(str(workspace), str(user), str(agent), name)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


_ORDER = {FORBIDDEN: 0, PREVIEW: 1, DIRECT: 2}
