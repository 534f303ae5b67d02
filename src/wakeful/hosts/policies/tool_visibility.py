"""A host's policy fragments, read for one run: which of its tools are there, and why each other one is hidden.

What is hidden is withheld from the turn (`host_tools`): the one catalogue names it, and the one gate refuses its calls.

The order of a resolution, each step taking away from what the one before left:

    1. mode                 a tool's `modes` (or `mode`) against the run's, `chat` unless it says otherwise
    2. access checker       the host's own yes or no for each tool
    3. fragments            of the agent, then of the run's context, then of the providers
    4. categories           when the context names some
    5. allow_only           of every fragment that has one
    6. opt-in               tools the caller brought are hidden until policy names them
    7. write gate           without a person behind the run, writing tools need the same opt-in
    8. deny                 last, over everything, mandatory tools too
    9. hook                 may take away, order and re-describe; what was hidden stays hidden

A checker that raises hides its tool. A provider or hook that raises or talks nonsense hides all that is not mandatory.
`ToolVisibility` is `ToolPolicy` in the surface of the conversation loop.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from pydantic import ValidationError

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.policies import PolicyFragment, ToolAccessPolicy
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.decisions.policy.actions import DEFAULT_MODE, categories_of
from wakeful.decisions.policy.patterns import any_named, in_full
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration

WRITE_CATEGORIES: frozenset[str] = frozenset({"write", "publishing", "mutating", "destructive"})
Declared: TypeAlias = RuntimeToolDeclaration | Mapping[str, Any]
AccessChecker: TypeAlias = Callable[[str, Mapping[str, Any], Mapping[str, Any]], Any]
"""(tool_name, declaration, context) -> may it be shown?"""
ResolvedToolsHook: TypeAlias = Callable[[dict[str, Any], str, Mapping[str, Any]], Any]
"""`resolved_tools`: (tools, mode, context) -> tools."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """What is shown, why each other tool is not, and what went wrong."""

    tools: dict[str, Declared]
    hidden: dict[str, str] = field(default_factory=dict)
    diagnostics: tuple[str, ...] = ()
    mandatory: frozenset[str] = frozenset()
    """What of the tools is there whatever a hook says."""

    def after_hook(self, answer: Any) -> "Resolution":
        """What the hook `resolved_tools` leaves, given what it returned or raised.

        It may take away, order and re-describe. One that fails leaves what is mandatory; what was hidden stays hidden.
        """
        told = list(self.diagnostics)
        try:
            if isinstance(answer, Exception):
                raise answer
            if not isinstance(answer, Mapping):
                raise TypeError(f"returned a {type(answer).__name__}, not an object of tools")
            kept = {str(name): tool for name, tool in answer.items()}
        except Exception as error:
            told.append(f"the hook resolved_tools: {type(error).__name__}: {error}")
            kept = {name: tool for name, tool in self.tools.items() if name in self.mandatory}
        more = kept.keys() - self.tools.keys()
        told += [f"the hook resolved_tools cannot show {name}, which is hidden or not there" for name in more]
        left_out = {name: "the hook resolved_tools leaves it out" for name in self.tools if name not in kept}
        shown = {name: tool for name, tool in kept.items() if name in self.tools}
        return replace(self, tools=shown, hidden={**self.hidden, **left_out}, diagnostics=tuple(told))


@dataclass(frozen=True, slots=True)
class ToolPolicyFilter:
    """One fragment, applied."""

    fragment: PolicyFragment
    whose: str = "policy"
    from_provider: bool = False

    @classmethod
    def read(cls, raw: object, whose: str, *, from_provider: bool = False) -> "ToolPolicyFilter":
        """Raises InvalidConfig for what is no fragment, an invalid mode included."""
        if isinstance(raw, PolicyFragment):
            return cls(raw, whose, from_provider)
        if not isinstance(raw, Mapping):
            raise InvalidConfig(f"the {whose} is a {type(raw).__name__}, not an object")
        try:
            return cls(PolicyFragment.model_validate(dict(raw)), whose, from_provider)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InvalidConfig(f"the {whose} is not usable: {where}: {first['msg']}") from error

    def removes(self, name: str, categories: Sequence[str], *, mandatory: bool) -> str:
        """Why the fragment takes this tool away, or nothing."""
        fragment = self.fragment
        if fragment.mode == "deny":
            left_out = any_named(fragment.tools, name) or set(fragment.categories) & set(categories)
            return f"the {self.whose} leaves it out" if left_out else ""
        listed = _lets_in(name, categories, fragment.tools, fragment.categories)
        return "" if listed or mandatory else f"the {self.whose} does not list it"

    def makes_mandatory(self, name: str, categories: Sequence[str]) -> bool:
        return _lets_in(name, categories, self.fragment.mandatory_tools, self.fragment.mandatory_categories)

    def opts_in(self, name: str, categories: Sequence[str]) -> bool:
        """Does it name the tool in a way that lets in what is hidden by default?"""
        fragment = self.fragment
        return (
            _lets_in(name, categories, fragment.runtime_tools, fragment.runtime_categories)
            or (fragment.mode == "allow" and _lets_in(name, categories, fragment.tools, fragment.categories))
            or in_full(fragment.allow_only, name)
            or (self.from_provider and self.makes_mandatory(name, categories))
        )


@dataclass(frozen=True, slots=True)
class ToolVisibility:
    """The visibility policy of an agent and its host."""

    agent_policy: PolicyFragment | Mapping[str, Any] | None = None
    providers: Sequence[ToolAccessPolicy] = ()
    access_checker: AccessChecker | None = None
    resolved_tools: ResolvedToolsHook | None = None
    write_categories: Iterable[str] = WRITE_CATEGORIES
    """What the hook `write_capable_categories` came to. Emptying it leaves the tools that are flagged."""
    autonomous_sources: Iterable[str] = ()
    """Further sources without a person; the known ones stay."""

    def __post_init__(self) -> None:
        if self.agent_policy is not None:
            ToolPolicyFilter.read(self.agent_policy, "agent's policy")

    def resolve(self, tools: Mapping[str, Declared], context: Mapping[str, Any] | None = None) -> dict[str, Declared]:
        """The tools a model is shown."""
        return self.explained(tools, context).tools

    def explained(self, tools: Mapping[str, Declared], context: Mapping[str, Any] | None = None) -> Resolution:
        """The same, with the reason for each tool that is not shown."""
        found = _Resolving(self, tools, context or {}).run()
        if self.resolved_tools is None:
            return found
        # Every step has been taken on the tools as they were given: a hook's word on their own flags changes nothing.
        answer: Any
        try:
            answer = self.resolved_tools(dict(found.tools), mode_of(context or {}), context or {})
        except Exception as error:
            answer = error
        return found.after_hook(answer)


class _Resolving:
    """One resolution, from its first step to its last."""

    def __init__(self, policy: ToolVisibility, tools: Mapping[str, Declared], context: Mapping[str, Any]) -> None:
        self._policy = policy
        self._context = context
        self._mode = mode_of(context)
        self._given = dict(tools)
        self._fields = {name: fields_of(tool) for name, tool in tools.items()}
        self._categories = {name: categories_of(fields) for name, fields in self._fields.items()}
        self._left = list(tools)
        self._hidden: dict[str, str] = {}
        self._diagnostics: list[str] = []
        self._broken = ""
        self._filters = self._read_filters()

    def run(self) -> Resolution:
        self._drop(self._of_another_mode)
        self._drop(self._refused_by_checker)
        if self._broken:
            self._drop(lambda name: "" if self._mandatory(name) else self._broken)
        for one in self._filters:
            self._drop(functools.partial(self._removed_by, one))
        self._drop(self._of_another_category)
        self._drop(self._not_in_allow_only)
        self._drop(self._not_opted_in)
        self._drop(self._stopped_by_write_gate)
        self._drop(self._denied)
        shown = {name: self._given[name] for name in self._left}
        mandatory = frozenset(filter(self._mandatory, shown))
        return Resolution(shown, self._hidden, tuple(self._diagnostics), mandatory)

    def _read_filters(self) -> list[ToolPolicyFilter]:
        raw: list[tuple[Any, str, bool]] = [
            (self._policy.agent_policy, "agent's policy", False),
            (self._context.get("tool_policy"), "policy of the run", False),
        ]
        for provider in self._policy.providers:
            whose = f"policy of {type(provider).__name__}"
            try:
                raw.append((provider.get_tool_policy(self._context), whose, True))
            except Exception as error:
                self._break(f"the {whose} raised {type(error).__name__}: {error}")
        filters = []
        for value, whose, from_provider in raw:
            if value is None:
                continue
            try:
                filters.append(ToolPolicyFilter.read(value, whose, from_provider=from_provider))
            except InvalidConfig as problem:
                self._break(problem.message)
        return filters

    def _break(self, problem: str) -> None:
        self._diagnostics.append(problem)
        self._broken = self._broken or f"{problem}; only mandatory tools are shown"

    def _drop(self, why: Callable[[str], str]) -> None:
        kept = []
        for name in self._left:
            reason = why(name)
            if reason:
                self._hidden[name] = reason
            else:
                kept.append(name)
        self._left = kept

    def _mandatory(self, name: str) -> bool:
        # A caller could call its own tool mandatory; only policy can say that of a tool from outside.
        own_word = self._fields[name].get("mandatory") is True and not is_runtime_tool(self._given[name])
        return own_word or any(one.makes_mandatory(name, self._categories[name]) for one in self._filters)

    def _opted_in(self, name: str) -> bool:
        wished = _texts(self._context.get("allow_only"))
        return in_full(wished, name) or any(one.opts_in(name, self._categories[name]) for one in self._filters)

    def _of_another_mode(self, name: str) -> str:
        fields = self._fields[name]
        modes = _texts(fields.get("modes")) or _texts(fields.get("mode"))
        return f"it is for mode {', '.join(modes)}, not {self._mode}" if modes and self._mode not in modes else ""

    def _refused_by_checker(self, name: str) -> str:
        if self._policy.access_checker is None:
            return ""
        try:
            allowed = self._policy.access_checker(name, self._fields[name], self._context)
        except Exception as error:
            self._diagnostics.append(f"the access checker raised {type(error).__name__} for {name}: {error}")
            return self._diagnostics[-1]
        return "" if allowed is True else "the access checker refuses it"

    def _removed_by(self, one: ToolPolicyFilter, name: str) -> str:
        return one.removes(name, self._categories[name], mandatory=self._mandatory(name))

    def _of_another_category(self, name: str) -> str:
        wished = _texts(self._context.get("categories"))
        if not wished or self._mandatory(name) or set(wished) & set(self._categories[name]):
            return ""
        return f"it is in none of the categories {', '.join(wished)}"

    def _not_in_allow_only(self, name: str) -> str:
        lists = [_texts(self._context.get("allow_only")), *(one.fragment.allow_only for one in self._filters)]
        for only in lists:
            if only and not in_full(only, name) and not self._mandatory(name):
                return f"only {', '.join(only)} may be shown"
        return ""

    def _not_opted_in(self, name: str) -> str:
        if not is_runtime_tool(self._given[name]) or self._opted_in(name) or self._mandatory(name):
            return ""
        return "the caller brought it, and no policy names it"

    def _stopped_by_write_gate(self, name: str) -> str:
        if not self._writes(name) or self._opted_in(name) or self._writing_is_free():
            return ""
        return "it writes, no person is behind this run, and no policy names it"

    def _writing_is_free(self) -> bool:
        if self._context.get("allow_write_tools") is True:
            return True
        if any(one.fragment.allow_write_tools for one in self._filters):
            return True
        principal = _principal(self._context.get("principal"))
        return (
            principal is not None
            and bool(principal.acting_user_id)
            and not principal.is_autonomous(lambda who: who.auth_source in self._policy.autonomous_sources)
        )

    def _writes(self, name: str) -> bool:
        fields = self._fields[name]
        flagged = any(bool(fields.get(flag)) for flag in ("write", "mutating"))
        return flagged or bool(set(self._policy.write_categories) & set(self._categories[name]))

    def _denied(self, name: str) -> str:
        lists = [_texts(self._context.get("deny")), *(one.fragment.deny for one in self._filters)]
        return next((f"{hit} is denied" for denied in lists if (hit := any_named(denied, name))), "")


def mode_of(context: Mapping[str, Any]) -> str:
    """The mode of a run."""
    return str(context.get("mode") or DEFAULT_MODE)


def is_runtime_tool(tool: Declared) -> bool:
    """Did the caller bring it? `scope: run` counts only where the caller wrote it, not where it was filled in."""
    fields = fields_of(tool)
    return fields.get("runtime_tool") is True or fields.get("executor") == "client" or fields.get("scope") == "run"


def fields_of(tool: Declared) -> Mapping[str, Any]:
    """What was said about a tool, without what was filled in."""
    if isinstance(tool, RuntimeToolDeclaration):
        return tool.model_dump(exclude_unset=True)
    return tool


def _lets_in(name: str, categories: Sequence[str], names: Sequence[str], wished: Sequence[str]) -> bool:
    return in_full(names, name) or bool(set(categories) & set(wished))


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,) if value else ()
    if isinstance(value, list | tuple | set | frozenset):
        return tuple(one for one in value if isinstance(one, str) and one)
    return ()


def _principal(value: Any) -> ExecutionPrincipal | None:
    """The principal, or None for one that cannot be read: an unknown one."""
    if isinstance(value, ExecutionPrincipal) or not isinstance(value, Mapping):
        return value if isinstance(value, ExecutionPrincipal) else None
    try:
        return ExecutionPrincipal.model_validate(dict(value))
    except ValidationError:
        return None
