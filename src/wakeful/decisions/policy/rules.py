"""The owner's permission rules, compiled for a turn's tools so that a call looks at the few that can concern it.

The order of the list means nothing: of all rules that match, deny wins, then ask, then allow. An owner's allow answers
the question that a permission class asks by default, and no other. A person's standing answer (`origin: always`, with
allow) is not among the rules at all: it is kept apart, and looked up only when everything else came to an ask.

Three cautions are built in. A bare allow never means a tool that somebody else runs (MCP, client, hosted): those are
allowed by their full name, so that a server cannot take a trusted name. Where an allow matches the text of a command,
`*` stops at whatever would begin a second one, and the command has to run as usual (`command_tools`). And a rule about
running one command is a rule about each command of a batch: a deny or an ask holds if it matches any of them, an allow
only if each of them is allowed.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wakeful.contracts.approvals import is_approver
from wakeful.contracts.policies import Rule
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.verdicts import STRICTNESS, Verdict
from wakeful.decisions.policy.command_tools import item_schema, items_of, runs_as_usual, single_of, usual_settings
from wakeful.decisions.policy.patterns import Test, name_test, text_test
from wakeful.decisions.policy.permissions import OUTSIDE_OWNERS, capabilities_of, class_of, server_of

_MISSING = object()


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule and what it takes to match a call."""

    rule: Rule
    verdict: Verdict
    means: Test
    """Is this the name of a tool that the rule is about?"""
    conditions: tuple[tuple[str, Test], ...]
    shell_conditions: tuple[tuple[str, Test], ...]
    """The same for a tool that runs commands; they differ in an allow."""
    lenient: bool
    answers: bool
    """A standing answer: it says yes to a question, and nothing else."""

    def holds_for_every_call(self, now: float) -> bool:
        """Does it speak about the tool as such, whatever the arguments?"""
        expired = self.rule.expires is not None and now >= self.rule.expires
        return not self.conditions and self.rule.call_hash is None and not expired

    def matches(
        self,
        arguments: Mapping[str, Any],
        call_hash: str | None,
        now: float,
        *,
        usual: Mapping[str, Any] | None = None,
    ) -> bool:
        """`usual`: of a tool that runs commands, how they run when a call does not say."""
        rule = self.rule
        for path, test in self.conditions if usual is None else self.shell_conditions:
            value = arguments.get(path, _MISSING)
            if value is _MISSING:
                value = _at(arguments, path)
            if value is _MISSING and usual is not None:
                value = usual.get(path, _MISSING)
            if not (test(value) if type(value) is str else _looks_so(value, test, self.lenient)):
                return False
        names_a_command = usual is not None and self.lenient and bool(self.conditions)
        if names_a_command and not runs_as_usual(arguments, usual or {}, rule.arguments):
            return False
        if rule.expires is not None and now >= rule.expires:
            return False
        return rule.call_hash is None or rule.call_hash == call_hash


@dataclass(frozen=True, slots=True)
class ItemRules:
    """The rules that can concern each call of a batch."""

    batch: str
    rules: tuple[CompiledRule, ...]
    answers: tuple[CompiledRule, ...]
    usual: Mapping[str, Any]

    def matching(self, arguments: Mapping[str, Any], now: float) -> list[Verdict]:
        """What is said about any of the calls; what allows them, only where each of them is allowed."""
        strict: list[Verdict] = []
        allows: list[list[Verdict]] = []
        for item in items_of(self.batch, arguments):
            met = [one.verdict for one in self.rules if one.matches(item, None, now, usual=self.usual)]
            strict += [verdict for verdict in met if not verdict.allowed]
            allows.append([verdict for verdict in met if verdict.allowed])
        allowed = [verdict for each in allows for verdict in each] if all(allows) else []
        return list(dict.fromkeys([*strict, *allowed]))

    def answer(self, ask: Verdict, arguments: Mapping[str, Any], now: float) -> Verdict | None:
        """The standing answer to the first call, where each of the calls has one."""
        may = [one for one in self.answers if _may_answer(one.rule, ask)]
        found = [
            next((one.verdict for one in may if one.matches(item, None, now, usual=self.usual)), None)
            for item in items_of(self.batch, arguments)
        ]
        return found[0] if found and all(verdict is not None for verdict in found) else None


@dataclass(frozen=True, slots=True)
class ToolRules:
    """The rules that can concern one tool, strictest first, and the standing answers for it."""

    rules: tuple[CompiledRule, ...] = ()
    answers: tuple[CompiledRule, ...] = ()
    usual: Mapping[str, Any] | None = None
    """Of a tool that runs commands: how they run when a call does not say."""
    items: ItemRules | None = None
    """Of a batch: what is said about each of its calls."""

    def matching(self, arguments: Mapping[str, Any], call_hash: str | None, now: float) -> list[Verdict]:
        met = [rule.verdict for rule in self.rules if rule.matches(arguments, call_hash, now, usual=self.usual)]
        if self.items is None:
            return met
        return list(dict.fromkeys([*met, *self.items.matching(arguments, now)]))

    def answer(self, ask: Verdict, arguments: Mapping[str, Any], call_hash: str | None, now: float) -> Verdict | None:
        """The standing answer that may stand for this ask."""
        for answer in self.answers:
            if _may_answer(answer.rule, ask) and answer.matches(arguments, call_hash, now, usual=self.usual):
                return answer.verdict
        return self.items.answer(ask, arguments, now) if self.items is not None else None

    def standing(self, now: float) -> list[Verdict]:
        """What the rules say of every call."""
        rules = (*self.rules, *(self.items.rules if self.items is not None else ()))
        return list(dict.fromkeys(rule.verdict for rule in rules if rule.holds_for_every_call(now)))

    def standing_answer(self, ask: Verdict, now: float) -> Verdict | None:
        """The answer that stands for every call."""
        answers = (*self.answers, *(self.items.answers if self.items is not None else ()))
        kept = (one for one in answers if one.holds_for_every_call(now) and _may_answer(one.rule, ask))
        return next((one.verdict for one in kept), None)


def compile_rules(rules: Sequence[Rule]) -> tuple[CompiledRule, ...]:
    """Each rule once, strictest first, with the name it has in the log."""
    compiled = [_compiled(rule.id or f"{rule.origin}:{place}", rule) for place, rule in enumerate(rules, start=1)]
    return tuple(sorted(compiled, key=lambda one: -STRICTNESS[one.rule.decision]))


def forbidden(name: str, rules: Sequence[Rule]) -> Verdict | None:
    """What forbids every call of a tool of this name, for as long as the turn lasts: such a tool is not even there.

    A rule that expires is left out: it may have been over when the call came. So is one about flags: those of a tool
    that is not there are not known here.
    """
    for one in compile_rules(rules):
        rule = one.rule
        always = not (one.conditions or rule.call_hash or rule.expires is not None or rule.capabilities)
        if rule.decision == "deny" and always and any(map(one.means, filter(None, (name, single_of(name))))):
            return one.verdict
    return None


def rules_for(declaration: ToolDeclaration, rules: Iterable[CompiledRule]) -> ToolRules:
    """What of the rules can concern this tool."""
    name = declaration.name
    outside = declaration.runtime_owner in OUTSIDE_OWNERS or server_of(declaration) is not None
    flags = frozenset(capabilities_of(declaration))
    kept = [
        one
        for one in rules
        if (not one.rule.capabilities or not flags.isdisjoint(one.rule.capabilities))
        and not (outside and one.lenient and "/" not in one.rule.match)
    ]
    own, answers = _parted(one for one in kept if one.means(name))
    single, items = single_of(name), None
    if single is not None:
        of_each, answers_of_each = _parted(one for one in kept if one.means(single))
        usual_item = usual_settings(item_schema(name, declaration.input_schema))
        items = ItemRules(name, of_each, answers_of_each, usual_item)
    usual = usual_settings(declaration.input_schema) if class_of(declaration) == "execute" else None
    return ToolRules(own, answers, usual, items)


def _parted(rules: Iterable[CompiledRule]) -> tuple[tuple[CompiledRule, ...], tuple[CompiledRule, ...]]:
    """Rules, and standing answers."""
    listed = tuple(rules)
    return tuple(one for one in listed if not one.answers), tuple(one for one in listed if one.answers)


def _compiled(ref: str, rule: Rule) -> CompiledRule:
    lenient = rule.decision == "allow"
    conditions = tuple((path, text_test(pattern)) for path, pattern in rule.arguments.items())
    careful = tuple((path, text_test(pattern, shell=True)) for path, pattern in rule.arguments.items())
    return CompiledRule(
        rule,
        _verdict(ref, rule),
        name_test(rule.match),
        conditions,
        careful if lenient else conditions,
        lenient,
        answers=lenient and rule.origin == "always",
    )


def _verdict(ref: str, rule: Rule) -> Verdict:
    if rule.origin == "always" and rule.decision == "allow":
        who = rule.decided_by or "somebody"
        what = "this very call" if rule.call_hash is not None else f"calls like {rule.match}"
        reason = rule.reason or f"{who} allowed {what} before, and the answer still stands"
        return Verdict("allow", "human", reason, (ref,), "standing_answer")
    words = {"allow": "allows this", "ask": "wants a person for this", "deny": "forbids this"}[rule.decision]
    reason = rule.reason or f"the rule {ref} ({rule.match}) {words}"
    return Verdict(
        rule.decision,
        "rule",
        reason,
        (ref,),
        "rules",
        approvers=rule.approvers,
        standing_answer="none" if rule.always_ask else "any",
    )


def _may_answer(answer: Rule, ask: Verdict) -> bool:
    if ask.standing_answer == "none" or (ask.standing_answer == "exact" and answer.call_hash is None):
        return False
    return is_approver(answer.decided_by, ask.approvers)


def _at(arguments: Mapping[str, Any], path: str) -> Any:
    found: Any = arguments
    for step in path.split("."):
        if not isinstance(found, Mapping) or step not in found:
            return _MISSING
        found = found[step]
    return found


def _looks_so(value: Any, test: Test, lenient: bool) -> bool:
    """A list matches a strict rule by any item, or by all as one line; a lenient one only by each of them."""
    if value is _MISSING:
        return False
    if isinstance(value, str):
        return test(value)
    if isinstance(value, list | tuple):
        met = [_looks_so(item, test, lenient) for item in value]
        return bool(met) and all(met) if lenient else any(met) or test(" ".join(str(item) for item in value))
    return test(json.dumps(value, sort_keys=True, ensure_ascii=False, default=str))
