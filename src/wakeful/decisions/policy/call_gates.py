"""Declarative gates on calls: after this tool, only so many of those until one of these was called.

The state is a fold over the tools that ran. A gate that is armed stays armed, with its count, until one of
`require_one_of` ran: calling `after_tool` again does not start the count anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pydantic import Field, ValidationError, model_validator

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.values import Value
from wakeful.contracts.verdicts import Verdict
from wakeful.decisions.policy.patterns import any_named

INVALID = "invalid_tool_call_rules"
REJECTED = "tool_call_gate_rejected"


class AfterToolRule(Value):
    """After `after_tool`: at most `max_calls` of `limited_tools` until one of `require_one_of` is called."""

    id: str = ""
    after_tool: str = Field(min_length=1)
    limited_tools: tuple[str, ...] = ()
    max_calls: int = Field(default=0, ge=0)
    require_one_of: tuple[str, ...] = ()
    gate_calls: bool = True
    gate_completion: bool = True

    @model_validator(mode="after")
    def _can_end(self) -> "AfterToolRule":
        if self.gate_completion and not self.require_one_of:
            raise ValueError(
                "gate_completion without require_one_of could never be satisfied; name a tool, or say false"
            )
        return self


class ToolUseRule(Value):
    """No natural end before `min_tool_calls` calls of `require_one_of`, or of any tool when that is empty."""

    id: str = ""
    require_tool_use: bool = True
    min_tool_calls: int = Field(default=1, ge=1)
    require_one_of: tuple[str, ...] = ()


CallRule: TypeAlias = AfterToolRule | ToolUseRule


@dataclass(frozen=True, slots=True)
class RuleCount:
    """Where one rule stands."""

    armed: bool = False
    calls: int = 0
    """Limited calls since it was armed; or qualifying calls so far."""


@dataclass(frozen=True, slots=True)
class CallGates:
    """The rules of a run, and where each stands."""

    rules: tuple[CallRule, ...] = ()
    counts: tuple[RuleCount, ...] = ()

    @classmethod
    def of(cls, rules: Sequence[CallRule]) -> "CallGates":
        return cls(tuple(rules), (RuleCount(),) * len(rules))

    def called(self, tool: str) -> "CallGates":
        """After this tool was let through."""
        counts = tuple(_counted(rule, count, tool) for rule, count in zip(self.rules, self.counts, strict=True))
        return self if counts == self.counts else replace(self, counts=counts)

    def check_call(self, tool: str) -> Verdict | None:
        """Why the tool may not be called now, or None."""
        for place, (rule, count) in enumerate(zip(self.rules, self.counts, strict=True), start=1):
            if isinstance(rule, ToolUseRule) or not (rule.gate_calls and count.armed):
                continue
            if any_named(rule.require_one_of, tool) or not any_named(rule.limited_tools, tool):
                continue
            if count.calls >= rule.max_calls:
                ref = rule.id or f"tool_call_rule:{place}"
                return Verdict("deny", "rule", _call_reason(rule, tool), (ref,), "call_gates", error_type=REJECTED)
        return None

    def check_completion(self) -> "CompletionRefusal | None":
        """Why the run may not end naturally now, or None."""
        for place, (rule, count) in enumerate(zip(self.rules, self.counts, strict=True), start=1):
            blocked = _completion_reason(rule, count)
            if blocked:
                needed = rule.min_tool_calls if isinstance(rule, ToolUseRule) else 1
                counters = {"calls": count.calls, "required": needed}
                fields = rule.model_dump(mode="json", exclude={"id"})
                return CompletionRefusal(rule.id or f"tool_call_rule:{place}", blocked, counters, fields)
        return None


@dataclass(frozen=True, slots=True)
class CompletionRefusal:
    """A natural end that was refused; `reason` is what the model is told."""

    rule_id: str
    reason: str
    counters: Mapping[str, int]
    rule: Mapping[str, Any]
    """What the rule says."""


def read_call_rules(raw: Iterable[CallRule | Mapping[str, Any]]) -> tuple[CallRule, ...]:
    """`tool_call_rules` as hosts write them. Raises InvalidValue naming the rule and the field."""
    rules: list[CallRule] = []
    for place, one in enumerate(raw):
        if isinstance(one, AfterToolRule | ToolUseRule):
            rules.append(one)
            continue
        if not isinstance(one, Mapping):
            raise InvalidValue(INVALID, f"[{place}]", f"a rule is an object, not a {type(one).__name__}")
        kind: type[CallRule] = AfterToolRule if "after_tool" in one else ToolUseRule
        if kind is ToolUseRule and one.get("require_tool_use") is not True:
            raise InvalidValue(INVALID, f"[{place}]", "has neither after_tool nor require_tool_use: true")
        try:
            rules.append(kind.model_validate(dict(one)))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join([f"[{place}]", *(str(part) for part in first["loc"])])
            raise InvalidValue(INVALID, where, first["msg"]) from error
    return tuple(rules)


def _counted(rule: CallRule, count: RuleCount, tool: str) -> RuleCount:
    if isinstance(rule, ToolUseRule):
        counts = not rule.require_one_of or any_named(rule.require_one_of, tool)
        return replace(count, calls=count.calls + 1) if counts else count
    if any_named(rule.require_one_of, tool):
        count = RuleCount()
    elif count.armed and any_named(rule.limited_tools, tool):
        count = replace(count, calls=count.calls + 1)
    if not count.armed and any_named((rule.after_tool,), tool):
        return RuleCount(armed=True)
    return count


def _call_reason(rule: AfterToolRule, tool: str) -> str:
    limit = f"{rule.max_calls} calls of {', '.join(rule.limited_tools)}" if rule.max_calls else "no call"
    wanted = f" Call one of {', '.join(rule.require_one_of)} first." if rule.require_one_of else ""
    return f"{tool} may not be called now: after {rule.after_tool}, {limit} may be made.{wanted}"


def _completion_reason(rule: CallRule, count: RuleCount) -> str:
    names = ", ".join(rule.require_one_of)
    if isinstance(rule, ToolUseRule):
        if count.calls >= rule.min_tool_calls:
            return ""
        which = f"of {names}" if names else "of any tool"
        return f"Do not finish yet: {rule.min_tool_calls} calls {which} are required, {count.calls} were made."
    if not (rule.gate_completion and count.armed):
        return ""
    return f"Do not finish yet: after {rule.after_tool}, one of {names} must be called."
