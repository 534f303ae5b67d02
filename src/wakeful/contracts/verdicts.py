"""The gate's word on a call: allow, ask or deny, who said so and why.

The rule: deny wins, then ask, then allow. Verdicts are only ever combined (`combined`), so a layer that comes later can
tighten what was said and never loosen it. Every verdict has a reason that an operator understands.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Decision: TypeAlias = Literal["allow", "ask", "deny"]
DecisionSource: TypeAlias = Literal["rule", "mode", "hook", "host_policy", "human", "sandbox"]
StandingAnswer: TypeAlias = Literal["any", "exact", "none"]
"""Which earlier answer of a person ("always") may stand for the one that is asked now. any: also one for a pattern or a
whole tool. exact: only one for this very call. none: somebody has to be asked each time."""

STRICTNESS: dict[str, int] = {"allow": 0, "ask": 1, "deny": 2}
_NARROWNESS: dict[str, int] = {"any": 0, "exact": 1, "none": 2}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One layer's decision on one call, or what all of them come to."""

    decision: Decision
    source: DecisionSource
    reason: str
    rule_refs: tuple[str, ...] = ()
    """The rules that led here, by id."""
    layer: str = ""
    """Where in the gate it was said: `class`, `rules`, `provenance` ..."""
    error_type: str = "permission_denied"
    """What a refused call is told: the `kind` of its error. Means nothing unless the decision is deny."""
    approvers: tuple[str, ...] = ()
    """Who may answer an ask; empty: whoever is entitled anyway."""
    standing_answer: StandingAnswer = "any"

    @property
    def allowed(self) -> bool:
        return self.decision == "allow"


def combined(verdicts: Iterable[Verdict]) -> Verdict:
    """The strictest of them. The first of that strictness names source, layer and error; each of them gives its reason.

    No verdict at all is a deny: a gate that nobody stood at lets nothing through.
    """
    met = tuple(verdicts)
    if not met:
        return Verdict("deny", "mode", "no layer of the gate judged this call", layer="gate")
    strictness = max(STRICTNESS[verdict.decision] for verdict in met)
    deciding = [verdict for verdict in met if STRICTNESS[verdict.decision] == strictness]
    if len(deciding) == 1:
        return deciding[0]
    first = deciding[0]
    if first.decision == "allow":
        return replace(first, rule_refs=_refs(deciding))
    said = replace(
        first,
        reason="; ".join(dict.fromkeys(verdict.reason for verdict in deciding)),
        rule_refs=_refs(deciding),
        standing_answer=max((verdict.standing_answer for verdict in deciding), key=_NARROWNESS.__getitem__),
    )
    return said if first.decision == "deny" else _with_approvers(said, deciding)


def _refs(verdicts: list[Verdict]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ref for verdict in verdicts for ref in verdict.rule_refs))


def _with_approvers(said: Verdict, asks: list[Verdict]) -> Verdict:
    """One answer has to satisfy all of them, so only who may answer each may answer."""
    named = [verdict.approvers for verdict in asks if verdict.approvers]
    if not named:
        return said
    entitled = tuple(who for who in named[0] if all(who in others for others in named[1:]))
    if entitled:
        return replace(said, approvers=entitled)
    lists = " and ".join(", ".join(names) for names in named)
    return replace(
        said, decision="deny", reason=f"nobody may answer for this call: its rules name {lists}, and no one is in all"
    )
