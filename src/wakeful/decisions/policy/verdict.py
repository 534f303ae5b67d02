"""The one verdict on a call. Every layer is asked, deny wins, then ask; the order is that of the words it is given in:

     1. belt             not among the turn's tools, because a host hides it or nobody has it: it does not exist
     2. class            permission class, MCP server, workspace (`permissions`)
     3. ceiling          the capability the tool requires, against the principal's
     4. rules            the owner's (`rules`); an allow here answers the question of 2, and no other
     5. action           what action policy came to (`actions`)
     6. person           `hitl_tools`, and the tool's own wish for approval
     7. call gates       the declarative gates (`call_gates`)
     8. confinement      a command that nothing confines
     9. provenance       authority, exposure, arguments (`provenance`)
    10. hooks            verdicts of hooks and mediators: they only tighten
    11. standing answer  when all of it came to an ask: a person's "always" that may stand for the answer

Step 11 is an answer to a question, not a layer: it never meets a deny, nor an ask that an owner's rule marks
`always_ask`, and against provenance it counts only for the very call it was given for. Whatever raises denies.

Everything about a tool that does not depend on one call is worked out once (`compile_policy`), so that a verdict costs
the same with two tools as with two hundred.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wakeful.contracts.policies import GatePolicy, Rule
from wakeful.contracts.principals import CapabilityCeiling
from wakeful.contracts.tools import Confinement, ToolDeclaration
from wakeful.contracts.verdicts import Verdict, combined
from wakeful.decisions.kept_results import KeptResults
from wakeful.decisions.policy.actions import ResolvedAction
from wakeful.decisions.policy.argument_origins import OwnerWords, argument_origins
from wakeful.decisions.policy.owner_text import NOTHING_SAID
from wakeful.decisions.policy.patterns import any_named
from wakeful.decisions.policy.permissions import NOT_FOUND, class_verdict, confinement_verdict, stricter
from wakeful.decisions.policy.provenance import (
    NOTHING_SEEN,
    Exposure,
    ToolDoes,
    joined,
    provenance_gate,
    what_it_does,
)
from wakeful.decisions.policy.rules import ToolRules, compile_rules, rules_for
from wakeful.decisions.redaction import stable_hash

CAPABILITY_DENIED = "capability_denied"


def ceiling_verdict(ceiling: CapabilityCeiling | None, tool: str, capability: str) -> Verdict | None:
    """Why a call is above the ceiling, or None. A blank capability requires nothing."""
    wanted = capability.strip()
    if ceiling is None or not wanted or ceiling.permits(wanted):
        return None
    return Verdict(
        "deny",
        "host_policy",
        f"{tool} needs the capability {capability!r}, which the principal's ceiling does not permit",
        layer="ceiling",
        error_type=CAPABILITY_DENIED,
    )


OwnWish: TypeAlias = Literal["none", "ask", "failed"]
"""What a tool's own `approval` came to for this call. failed: its predicate raised or answered nonsense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallUnderJudgement:
    """A call, and all that is known when it comes before the gate. Nothing here is asked for: it is handed in."""

    name: str
    arguments: Mapping[str, Any]
    now: float
    """Unix seconds."""
    derived_from: str = "operator_instruction"
    """The lowest authority in the chain of causes of the turn."""
    exposure: Exposure = NOTHING_SEEN
    owner: OwnerWords | None = None
    """What the owner said; None: nothing that a value could stand in."""
    traits: ToolDeclaration | None = None
    """What the tool says of this one call, when that is more than it declared."""
    call_hash: str | None = None
    """The hash that approvals are bound to: tool, schema, arguments, directory."""
    own_wish: OwnWish = "none"
    action: ResolvedAction | None = None
    gate: Verdict | None = None
    """What the declarative gates said (`CallGates.check_call`)."""
    confinement: Confinement | None = None
    hooks: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolPlan:
    """What holds for every call of one tool."""

    declaration: ToolDeclaration
    by_class: Verdict
    does: ToolDoes
    rules: ToolRules
    fixed: tuple[Verdict, ...]
    """What else objects to every call: the ceiling, `hitl_tools`."""


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A policy worked out for the tools of a turn."""

    source: GatePolicy
    plans: Mapping[str, ToolPlan]
    digest: str = ""
    """Names the policy in the log."""
    by_hash: bool = False
    """Is there a rule about one exact call? Without one, nobody has to work out a call's hash."""
    steady: bool = True
    """No rule expires: what it says about a tool does not depend on the time."""

    def does(self, name: str, traits: ToolDeclaration | None = None) -> ToolDoes:
        """What a call that was let through adds to the turn's exposure (`provenance.exposed`)."""
        return _does(self.plans[name], traits)


def compile_policy(
    policy: GatePolicy,
    declarations: Iterable[ToolDeclaration],
    *,
    ceiling: CapabilityCeiling | None = None,
    required_capabilities: Mapping[str, str] | None = None,
) -> CompiledPolicy:
    """Once a turn, or when policy or tools change."""
    rules = compile_rules(policy.rules)
    required = required_capabilities or {}
    plans: dict[str, ToolPlan] = {}
    for declaration in declarations:
        name = declaration.name
        above = ceiling_verdict(ceiling, name, required.get(name, ""))
        listed = any_named(policy.hitl_tools, name)
        person = Verdict("ask", "rule", f"{listed} is listed in hitl_tools", (f"hitl_tools:{listed}",), "person")
        plans[name] = ToolPlan(
            declaration,
            class_verdict(policy.tools, declaration),
            what_it_does(declaration),
            rules_for(declaration, rules),
            tuple(verdict for verdict in (above, person if listed else None) if verdict is not None),
        )
    return CompiledPolicy(
        policy,
        plans,
        stable_hash(policy.model_dump(mode="json")),
        by_hash=any(rule.call_hash is not None for rule in policy.rules),
        steady=all(rule.expires is None for rule in policy.rules),
    )


_compiled: KeptResults[CompiledPolicy] = KeptResults()


def compiled_once(policy: GatePolicy, declarations: Sequence[ToolDeclaration]) -> CompiledPolicy:
    """`compile_policy`, done once for the same objects: turns of agents of one kind do not each compile it anew."""
    return _compiled.of((policy, *declarations), lambda: compile_policy(policy, declarations))


def judge(call: CallUnderJudgement, policy: CompiledPolicy) -> Verdict:
    """Allow, ask or deny, with its reason. Does not raise: a gate that fails is shut."""
    try:
        return _judge(call, policy)
    except Exception as error:
        return Verdict(
            "deny",
            "mode",
            f"the gate failed on this call, so it is shut: {type(error).__name__}: {error}",
            layer="gate",
        )


def _judge(call: CallUnderJudgement, policy: CompiledPolicy) -> Verdict:
    plan = policy.plans.get(call.name)
    if plan is None:
        reason = f"{call.name} is not among the tools of this turn"
        return Verdict("deny", "mode", reason, layer="belt", error_type=NOT_FOUND)
    by_class = plan.by_class
    if call.traits is not None and call.traits is not plan.declaration:
        by_class = stricter(policy.source.tools, plan.declaration, call.traits)
    by_rules = plan.rules.matching(call.arguments, call.call_hash, call.now)
    if by_class.decision == "ask" and by_rules and all(verdict.allowed for verdict in by_rules):
        by_class = by_rules[0]
    objections = [verdict for verdict in (by_class, *plan.fixed, *by_rules) if not verdict.allowed]
    objections += [verdict for verdict in _of_this_call(call, plan, policy) if not verdict.allowed]
    if not objections:
        return by_rules[0] if by_rules else by_class
    verdict = combined(objections)
    if verdict.decision != "ask":
        return verdict
    answer = plan.rules.answer(verdict, call.arguments, call.call_hash, call.now)
    if answer is None:
        return verdict
    return Verdict(
        "allow",
        "human",
        f"{answer.reason} (asked because {verdict.reason})",
        (*answer.rule_refs, *verdict.rule_refs),
        answer.layer,
    )


def _of_this_call(call: CallUnderJudgement, plan: ToolPlan, policy: CompiledPolicy) -> list[Verdict]:
    """Layers 5 to 10: what was found out about this one call."""
    found: list[Verdict] = []
    if call.action is not None:
        found.append(call.action.verdict())
    if call.own_wish == "ask":
        found.append(
            Verdict("ask", "rule", f"{call.name} itself asks for approval of this call", ("tool:approval",), "person")
        )
    elif call.own_wish != "none":
        reason = f"the approval predicate of {call.name} failed, so the call is denied"
        found.append(Verdict("deny", "rule", reason, ("tool:approval",), "person"))
    if call.gate is not None:
        found.append(call.gate)
    unconfined = confinement_verdict(policy.source.tools, call.name, call.confinement)
    if unconfined is not None:
        found.append(unconfined)
    against = provenance_gate(
        call.derived_from,
        _does(plan, call.traits),
        call.exposure,
        tool=call.name,
        policy=policy.source.provenance,
        origins=lambda: argument_origins(call.arguments, call.traits or plan.declaration, call.owner or NOTHING_SAID),
    )
    if against is not None:
        found.append(against)
    found.extend(call.hooks)
    return found


def with_answers(
    policy: GatePolicy, tools: Sequence[ToolDeclaration], standing: Sequence[Mapping[str, Any]], revoked: Set[str]
) -> CompiledPolicy:
    """A policy with the answers that people gave since it was read, and without the rules that they took back."""
    if not standing and not revoked:
        return compiled_once(policy, tools)
    added = tuple(Rule.model_validate(rule) for rule in standing)
    held = tuple(rule for rule in (*policy.rules, *added) if rule.id not in revoked)
    return compile_policy(policy.model_copy(update={"rules": held}), tools)


def _does(plan: ToolPlan, traits: ToolDeclaration | None) -> ToolDoes:
    if traits is None or traits is plan.declaration:
        return plan.does
    return joined(plan.does, what_it_does(traits))


def standing_verdict(plan: ToolPlan, now: float) -> Verdict:
    """What can be said of a tool before anybody calls it: for the catalogue. A call may come to something else."""
    steady = plan.rules.standing(now)
    by_class = plan.by_class
    # An allow with conditions may lift the question for some calls; the tool as such asks.
    if by_class.decision == "ask" and steady and all(verdict.allowed for verdict in steady):
        by_class = steady[0]
    verdict = combined((by_class, *plan.fixed, *steady))
    answer = plan.rules.standing_answer(verdict, now) if verdict.decision == "ask" else None
    return answer or verdict
