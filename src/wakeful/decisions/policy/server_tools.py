"""Tools that a provider runs by itself: whether they may be offered to it is settled before a request is sent.

Nobody can be asked about a search that happens while the provider answers, and nobody sees its arguments before. Rule:
such a tool is offered only where every call of it would be let through, with what the conversation has seen so far.
Where a person has to be asked, the model is offered a call of ours in its place: that call is asked about like any
other, and once it ran, the provider is offered the tool until the turn ends.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from wakeful.contracts.tools import ServerTool, ToolDeclaration
from wakeful.decisions.policy.provenance import Exposure, provenance_gate
from wakeful.decisions.policy.verdict import CompiledPolicy, standing_verdict
from wakeful.decisions.prompt_words import ASK_TO_SEARCH


class ProviderOffer(NamedTuple):
    """What a request may hold, and why something of it may not."""

    tools: tuple[ServerTool, ...] = ()
    withheld: tuple[str, ...] = ()
    """In words, each with its tool's name."""
    asks: tuple[ToolDeclaration, ...] = ()
    """Tools that a person has to be asked about first: the model is shown them as calls."""


NOTHING = ProviderOffer()


def offered_to_provider(
    tools: Iterable[ToolDeclaration],
    policies: Callable[[], Sequence[CompiledPolicy]],
    *,
    derived_from: str,
    exposure: Exposure,
    now: float,
    granted: Collection[str] = (),
    may_ask: bool = False,
) -> ProviderOffer:
    """The tools of a turn that a provider may run now. `policies`, all of which have to let it, are asked
    for only where there is such a tool. `granted` are those that a person allowed in this turn; `may_ask` is false
    for a model whose provider has no such tool: a yes would be for nothing."""
    ours = [tool for tool in tools if tool.server is not None]
    if not ours:
        return NOTHING
    held_to = policies()

    def against(name: str, granted: Collection[str]) -> str:
        reasons = (why_not(name, each, derived_from, exposure, now, granted) for each in held_to)
        return next(filter(None, reasons), "")

    offered: list[ServerTool] = []
    withheld: list[str] = []
    asks: list[ToolDeclaration] = []
    for tool in ours:
        why = against(tool.name, granted)
        if not why and tool.server is not None:
            offered.append(tool.server)
        elif may_ask and not against(tool.name, (tool.name,)):
            asks.append(_asking(tool))
        else:
            withheld.append(f"{tool.name}: {why}")
    return ProviderOffer(tuple(offered), tuple(withheld), tuple(asks))


def why_not(
    name: str, policy: CompiledPolicy, derived_from: str, exposure: Exposure, now: float, granted: Collection[str] = ()
) -> str:
    """What speaks against letting a provider run it; nothing when every call of it would be let through."""
    plan = policy.plans.get(name)
    if plan is None:
        return "it is not among the tools of this turn"
    verdict = standing_verdict(plan, now)
    if verdict.decision == "ask":
        if name not in granted:
            return f"a person would have to be asked about each search, and the provider asks nobody ({verdict.reason})"
    elif not verdict.allowed:
        return verdict.reason
    if any(not each.verdict.allowed and (each.rule.arguments or each.rule.call_hash) for each in plan.rules.rules):
        return "a rule looks at what is searched for, which only the provider sees"
    found = provenance_gate(derived_from, plan.does, exposure, tool=name, policy=policy.source.provenance)
    return "" if found is None else found.reason


def _asking(tool: ToolDeclaration) -> ToolDeclaration:
    """The tool as a call that a person is asked about."""
    return tool.model_copy(update={"description": ASK_TO_SEARCH})
