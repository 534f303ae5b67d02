"""Tools that a provider runs by itself: whether they may be offered to it is settled before a request is sent.

Nobody can be asked about a search that happens while the provider answers, and nobody sees its arguments before. Rule:
such a tool is offered only where every call of it would be let through, with what the conversation has seen so far.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from wakeful.contracts.tools import ServerTool, ToolDeclaration
from wakeful.decisions.policy.provenance import Exposure, provenance_gate
from wakeful.decisions.policy.verdict import CompiledPolicy, standing_verdict


class ProviderOffer(NamedTuple):
    """What a request may hold, and why something of it may not."""

    tools: tuple[ServerTool, ...] = ()
    withheld: tuple[str, ...] = ()
    """In words, each with its tool's name."""


NOTHING = ProviderOffer()


def offered_to_provider(
    tools: Iterable[ToolDeclaration],
    policies: Callable[[], Sequence[CompiledPolicy]],
    *,
    derived_from: str,
    exposure: Exposure,
    now: float,
) -> ProviderOffer:
    """The tools of a turn that a provider may run now. `policies`, all of which have to let it, are asked
    for only where there is such a tool."""
    ours = [tool for tool in tools if tool.server is not None]
    if not ours:
        return NOTHING
    held_to = policies()
    against = {
        tool.name: next(filter(None, (why_not(tool.name, each, derived_from, exposure, now) for each in held_to)), "")
        for tool in ours
    }
    return ProviderOffer(
        tuple(tool.server for tool in ours if tool.server is not None and not against[tool.name]),
        tuple(f"{name}: {why}" for name, why in against.items() if why),
    )


def why_not(name: str, policy: CompiledPolicy, derived_from: str, exposure: Exposure, now: float) -> str:
    """What speaks against letting a provider run it; nothing when every call of it would be let through."""
    plan = policy.plans.get(name)
    if plan is None:
        return "it is not among the tools of this turn"
    verdict = standing_verdict(plan, now)
    if verdict.decision == "ask":
        return f"a person would have to be asked about each search, and the provider asks nobody ({verdict.reason})"
    if not verdict.allowed:
        return verdict.reason
    if any(not each.verdict.allowed and (each.rule.arguments or each.rule.call_hash) for each in plan.rules.rules):
        return "a rule looks at what is searched for, which only the provider sees"
    found = provenance_gate(derived_from, plan.does, exposure, tool=name, policy=policy.source.provenance)
    return "" if found is None else found.reason
