"""The cost of a turn's model requests, added up from its facts.

Every request that was sent is a call: answered, lost, cut off by a crash, of the root and of every level below it. An
attempt that its provider refused used nothing; one that was lost on the way may have used something that nobody
reported, and then the sum says that it is not complete. Money is added as decimals and never as floats.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Literal

from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import (
    RuntimeToolRequested,
    SubagentStarted,
    Terminal,
    ToolDispatched,
    ToolStarted,
    TurnRetried,
    TurnStarted,
)
from wakeful.contracts.values import Value, unchecked
from wakeful.views.model_calls import NOTHING, CallGroup, PriceListUsed, call_groups, is_script, model_calls

LOCAL_LIST = "local"
"""The name of the price list for servers on this machine."""


class CostLine(Value):
    """A sum over model requests."""

    calls: int = 0
    """Every attempt that was sent, also one that was lost."""
    input_tokens: int = 0
    """All input, cached included."""
    cached_input_tokens: int = 0
    """The part of the input that a provider's cache served."""
    cache_write_tokens: int = 0
    """The part of the input that was written to a provider's cache."""
    output_tokens: int = 0
    """Reasoning included."""
    reasoning_tokens: int = 0
    """The part of the output that was thought."""
    cost: str = "0"
    """A decimal number: what the priced calls cost."""
    cut_off: str = "0"
    """What was reserved for calls that were cut off, and whose cost nobody said. Budgets count them at this."""
    local_calls: int = 0
    """Calls that a server on this machine answered, at no price."""
    unpriced_calls: int = 0
    """Calls whose cost is not known: their model has no known price, or nobody reported what they used."""

    @property
    def spent(self) -> str:
        """What budgets count: `cost` and `cut_off` together."""
        return decimal_text(Decimal(self.cost) + Decimal(self.cut_off))


class CostSummary(Value):
    """A root turn's cost: `total` is the sum of `by_model` and the sum of `by_depth`, field by field."""

    type: Literal["cost_summary"] = "cost_summary"
    thread_id: str
    turn_id: str
    currency: str = "USD"
    total: CostLine = CostLine()
    by_model: dict[str, CostLine] = {}
    """By `provider:model`."""
    by_depth: dict[str, CostLine] = {}
    """By how deep in the tree: "0" is the root's own requests, its planner's and its summaries'."""
    tool_calls: int = 0
    subtasks: int = 0
    duration_ms: int = 0
    max_cost_usd: str | None = None
    """The limit on money, where one was set."""
    cost_complete: bool = True
    """False: some call has no known price, and the total is a lower bound."""
    usage_complete: bool = True
    """False: some call's tokens were not reported, and count as none."""


class CostReport(Value):
    """The cost of the turns of a store, in groups. `total` is the sum of the groups."""

    by: str
    """The kind of the groups: model, agent, day or depth."""
    since: str | None = None
    """Requests before this moment are left out."""
    agent: str | None = None
    turn_id: str | None = None
    turns: int = 0
    currency: str = "USD"
    total: CostLine = CostLine()
    groups: dict[str, CostLine] = {}
    price_lists: tuple[PriceListUsed, ...] = ()
    """Where the prices are from."""
    cost_complete: bool = True
    usage_complete: bool = True
    unread: dict[str, int] = {}
    """Turns whose log is damaged, by agent: their cost is not in the report."""


_cost_line, _cost_summary = unchecked(CostLine), unchecked(CostSummary)


def line(groups: Iterable[CallGroup]) -> CostLine:
    """Some calls, added up."""
    count = unpriced = local = 0
    used, cost, held = NOTHING, Decimal(0), Decimal(0)
    for group in groups:
        count += group.calls
        unpriced += 0 if is_script(group.model_ref) else group.unpriced
        local += group.calls if group.price_list is not None and group.price_list.name == LOCAL_LIST else 0
        used = used + group.used
        cost += group.cost
        held += group.held
    return _cost_line(
        calls=count,
        input_tokens=used.input_tokens,
        cached_input_tokens=used.cached_input_tokens,
        cache_write_tokens=used.cache_write_tokens,
        output_tokens=used.output_tokens,
        reasoning_tokens=used.reasoning_tokens,
        cost=decimal_text(cost),
        cut_off=decimal_text(held),
        local_calls=local,
        unpriced_calls=unpriced,
    )


def grouped(groups: Iterable[tuple[str, CallGroup]]) -> dict[str, CostLine]:
    """The same by a name, in the order of its first call."""
    named: dict[str, list[CallGroup]] = {}
    for name, group in groups:
        named.setdefault(name, []).append(group)
    return {name: line(each) for name, each in named.items()}


def cost_summary(turn_id: str, facts: Iterable[StoredFact]) -> CostSummary:
    """The cost of a turn, of all its levels; of one that is under way, so far. Facts of other turns are passed over."""
    of_turn = [entry for entry in facts if entry.fact.turn_id == turn_id]
    calls = model_calls(of_turn)
    thread_id, limit = "", None
    began = now = 0
    end: Terminal | None = None
    tools: set[str] = set()
    subtasks = 0
    for _, _, fact in of_turn:
        thread_id = thread_id or fact.thread_id or ""
        now = max(now, fact.at)
        match fact.event:
            case TurnStarted() as event:
                began, limit = fact.at, event.limits.usd
            case ToolStarted(dispatched=True) | ToolDispatched() | RuntimeToolRequested():
                tools.add(fact.call_id or "")
            case SubagentStarted():
                subtasks += 1
            case Terminal() as event:
                end = event
            case TurnRetried():
                end = None
    groups = call_groups(calls)
    by_depth = grouped((str(group.depth), group) for group in groups)
    return _cost_summary(
        thread_id=thread_id,
        turn_id=turn_id,
        total=line(groups),
        by_model=grouped((group.model_ref, group) for group in groups),
        by_depth=dict(sorted(by_depth.items())),
        tool_calls=end.tool_calls if end is not None else len(tools),
        subtasks=subtasks,
        duration_ms=round(end.duration_ms) if end is not None else max(0, now - began) // 1000 if began else 0,
        max_cost_usd=limit,
        cost_complete=all(call.is_priced or is_script(call.model_ref) for call in calls),
        usage_complete=all(call.is_reported or is_script(call.model_ref) for call in calls),
    )


def cost_report(named: Sequence[tuple[str, CallGroup]], by: str, turns: int) -> CostReport:
    """Calls of many turns, by whatever the reader wants to know: each group with the name of what it belongs to."""
    lists = {group.price_list: None for _, group in named if group.price_list is not None}
    return CostReport(
        by=by,
        turns=turns,
        total=line(group for _, group in named),
        groups=grouped(named),
        price_lists=tuple(sorted(lists, key=lambda each: (each.name, each.date or ""))),
        cost_complete=not any(group.unpriced and not is_script(group.model_ref) for _, group in named),
        usage_complete=not any(group.unreported and not is_script(group.model_ref) for _, group in named),
    )


def decimal_text(amount: Decimal) -> str:
    """`0.0125`: no exponent, and no zeros that say nothing."""
    text = f"{amount:f}"
    return (text.rstrip("0").rstrip(".") or "0") if "." in text else text
