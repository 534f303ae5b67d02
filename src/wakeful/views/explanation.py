"""A call's way through the gate, told from its stored facts. Nothing is judged again: what was said is repeated."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from wakeful.contracts.envelope import StoredFact, once
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AnyEvent,
    HookCompleted,
    HookFailed,
    MemoryUsed,
    PermissionEvaluated,
    RuntimeToolRequested,
    RuntimeToolResolved,
    SandboxApplied,
    SandboxViolation,
    ToolArgs,
    ToolDispatched,
    ToolFailed,
    ToolResult,
    ToolStarted,
    UnknownResolved,
)
from wakeful.contracts.policies import Rule
from wakeful.contracts.tool_catalog import CatalogEntry
from wakeful.contracts.values import Value
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.decisions.secret_shapes import hide_shapes, hide_shapes_in
from wakeful.views.message_envelope import MessageLabels

StepKind: TypeAlias = Literal[
    "verdict", "said", "hook", "asked", "answered", "arguments", "held", "ran", "used", "outcome"
]


class ExplainedRule(Value):
    """A rule that had a say, as it stood in the turn."""

    ref: str
    text: str
    """In words; empty when the turn's configuration does not have it any more."""


class ExplainedStep(Value):
    """One thing that happened to the call on its way."""

    seq: int
    kind: StepKind
    at: int
    """Microseconds since the epoch."""
    words: str
    by: str = ""
    """Who or what said it: a layer of the gate, a hook, a person."""
    rules: tuple[ExplainedRule, ...] = ()
    traceback: str = ""
    """Where the tool's exception came from."""


class CallExplanation(Value):
    """A call's whole way through the gate, from the log."""

    call_id: str
    turn_id: str
    agent: str
    tool: str
    arguments: dict[str, Any] = {}
    """Redacted."""
    verdict: str
    """The last one: allow, ask, deny, sandbox, unavailable; `none` when the call never came before the gate."""
    outcome: str = ""
    """`succeeded`, `denied`, `failed` ...; empty while the call is open."""
    messages: tuple[MessageLabels, ...] = ()
    """The messages its turn began with: where they came from, and whose word they are."""
    steps: tuple[ExplainedStep, ...]


Line = tuple[StepKind, str, str]
"""What kind of step, who, in which words."""


def explained(
    turn_id: str,
    agent: str,
    call_id: str,
    facts: Sequence[StoredFact],
    rules: Mapping[str, Rule],
    withheld: Mapping[str, CatalogEntry] | None = None,
    secrets: RunSecrets | None = None,
) -> CallExplanation | None:
    """The explanation; None when no fact is about the call. `rules` are the turn's, by their name in the log.

    `withheld` are the tools that the turn did not have: a call of one comes before no gate, and has its reason there.
    `secrets` are the run's, where more is known of them than the facts say.
    """
    mine = [entry for entry in once(facts) if _call(entry) == call_id]
    started = next((entry.fact.event for entry in mine if isinstance(entry.fact.event, ToolStarted)), None)
    if not mine:
        return None
    verdicts = [entry.fact.event for entry in mine if isinstance(entry.fact.event, PermissionEvaluated)]
    hidden = _withheld(mine, withheld or {}) if not verdicts else None
    if secrets is None:
        secrets = RunSecrets()
        secrets.learn(once(facts))
    ends = [entry.fact.event for entry in mine if isinstance(entry.fact.event, ToolResult | ToolFailed)]
    return CallExplanation(
        call_id=call_id,
        turn_id=turn_id,
        agent=agent,
        tool=started.tool_name if started is not None else "",
        arguments=hide_shapes_in(started.safe_args or {}) if started is not None else {},
        verdict=verdicts[-1].decision if verdicts else _NOT_THERE[hidden.policy] if hidden is not None else "none",
        outcome=ends[-1].status if ends else "",
        steps=(
            *(_left_out(mine[0], hidden) if hidden is not None else ()),
            *(step for entry in mine for step in _steps(entry, rules, secrets)),
        ),
    )


def _withheld(mine: Sequence[StoredFact], withheld: Mapping[str, CatalogEntry]) -> CatalogEntry | None:
    """The tool that was called, if the turn was not to have it."""
    for entry in mine:
        event = entry.fact.event
        if isinstance(event, ToolFailed) and event.error_category == "unknown_tool":
            name = event.tool_name
            return withheld.get(name) or next(
                (each for each in withheld.values() if each.tool_name.endswith(f"/{name}")), None
            )
    return None


def _left_out(first: StoredFact, hidden: CatalogEntry) -> list[ExplainedStep]:
    words = _because(f"{_NOT_THERE[hidden.policy]}, the turn was not offered it", hidden.policy_reason)
    return [ExplainedStep(seq=first.seq, at=first.fact.at, kind="verdict", by="catalog", words=words)]


def rules_by_ref(rules: Iterable[Rule]) -> dict[str, Rule]:
    """Rules by the name they have in the log: their own, or their place."""
    return {rule.id or f"{rule.origin}:{place}": rule for place, rule in enumerate(rules, start=1)}


def rule_words(rule: Rule) -> str:
    """A rule as one line: what, about which calls, from whom."""
    where = ", ".join(f"{path} like {pattern!r}" for path, pattern in rule.arguments.items())
    parts = [f"{rule.decision} {rule.match}"]
    if rule.capabilities:
        parts.append(f"that can {' or '.join(rule.capabilities)}")
    if where:
        parts.append(f"where {where}")
    if rule.call_hash is not None:
        parts.append("with exactly these arguments")
    if rule.origin == "always":
        parts.append(f"(a standing answer of {rule.decided_by or 'somebody'})")
    return " ".join(parts)


def _call(entry: StoredFact) -> str | None:
    event = entry.fact.event
    return event.call_id if isinstance(event, UnknownResolved) else entry.fact.call_id


def _steps(entry: StoredFact, rules: Mapping[str, Rule], secrets: RunSecrets) -> list[ExplainedStep]:
    event = entry.fact.event
    refs = event.rule_refs if isinstance(event, PermissionEvaluated) else ()
    told = tuple(
        ExplainedRule(ref=ref, text=hide_shapes(rule_words(rules[ref])) if ref in rules else "") for ref in refs
    )
    return [
        ExplainedStep(
            seq=entry.seq,
            at=entry.fact.at,
            kind=kind,
            by=by,
            words=secrets.hide(words),
            rules=told if kind == "verdict" else (),
            traceback=secrets.hide(event.traceback or "") if isinstance(event, ToolFailed) else "",
        )
        for kind, by, words in _lines(event)
    ]


def _lines(event: AnyEvent) -> list[Line]:
    match event:
        case PermissionEvaluated():
            said: list[Line] = [("said", one.by, _because(one.decision, one.reason)) for one in event.said]
            by = event.layer or event.decision_source
            return [*said, ("verdict", by, _because(event.decision, event.decision_reason))]
        case HookCompleted():
            return [("hook", event.handler_ref, _because(f"{event.point}: {event.decision}", event.reason))]
        case HookFailed():
            failed = f"{event.point}: {event.error_category}, which {_FAIL_MODE[event.fail_mode]}"
            return [("hook", event.handler_ref, _because(failed, event.message))]
        case ActionRequired():
            who = (
                f"approval by {', '.join(event.approvers)} was requested"
                if event.approvers
                else "approval was requested"
            )
            return [("asked", event.action_id, _because(who, event.reason))]
        case ActionResolved():
            rule = f", as the rule {event.rule_id}" if event.rule_id else ""
            return [("answered", event.resolver, _because(f"{event.decision}{rule}", event.reason))]
        case RuntimeToolRequested():
            return [("asked", event.request_id, "a client was asked to run it")]
        case RuntimeToolResolved():
            return [("answered", event.submitted_by, _because(event.status, event.error or ""))]
        case ToolArgs() if event.changed_by != "model":
            now = "" if event.safe_args is None else json.dumps(hide_shapes_in(event.safe_args), ensure_ascii=False)
            return [("arguments", event.changed_by, _because("the arguments were changed", now))]
        case SandboxApplied():
            reach = f"{event.mode}, in {event.cwd}, network {event.network}"
            return [("held", "sandbox", _because(reach, event.reason))]
        case SandboxViolation():
            return [("held", "sandbox", f"it tried what it may not: {event.boundary} {event.target}")]
        case ToolStarted() if event.dispatched:
            return [("ran", "", f"the call ran, with effect {event.effect}")]
        case ToolDispatched():
            return [("ran", "", f"the call ran (attempt {event.attempt}, after {event.cause})")]
        case MemoryUsed():
            shown = ", ".join(f"{each.ref}{' (untrusted)' if each.trust else ''}" for each in event.entries)
            return [("used", "memory", f"these entries were shown: {shown}")]
        case ToolResult():
            return [("outcome", "", event.status)]
        case ToolFailed():
            return [
                ("outcome", event.tool_error.kind, _because(f"{event.status}, effects {event.effects}", event.message))
            ]
        case UnknownResolved():
            return [("outcome", event.resolved_by, "it happened" if event.happened else "it did not happen")]
    return []


_NOT_THERE: dict[str, str] = {"denied": "deny", "unavailable": "unavailable"}
_FAIL_MODE = {"open": "changes nothing", "closed": "refuses the call"}


def _because(what: str, why: str) -> str:
    return f"{what}: {why}" if why else what
