"""What a turn's requests to models cost, added up from its facts.

Every request that was sent is a call: answered, lost, cut off by a crash, of the root and of every level below it. An
attempt that its provider refused used nothing; one that was lost on the way may have used something that nobody
reported, and then the sum says that it is not complete. Money is added as decimals and never as floats.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal

from wakeful.contracts.costs import CostLine, CostReport, CostSummary, PriceListUsed
from wakeful.contracts.envelope import Recorded, once
from wakeful.contracts.events import (
    CostEstimated,
    CostRecorded,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    RoutingCandidatesResolved,
    RuntimeToolRequested,
    SubagentStarted,
    Terminal,
    ToolDispatched,
    ToolStarted,
    TurnStarted,
)
from wakeful.contracts.models import FailureKind, TokenUsage

REFUSED: frozenset[FailureKind] = frozenset(
    {
        "rate_limited",
        "overloaded",
        "auth_error",
        "quota_exhausted",
        "contract_error",
        "context_length_exceeded",
        "unsupported_transport",
    }
)
"""Failures of which the provider itself said that it would not answer: nothing was used."""
NOTHING = TokenUsage()


@dataclass(slots=True)
class ModelCall:
    """One request that was sent."""

    model_ref: str
    depth: int
    at: int
    """When it was sent, in microseconds."""
    turn_id: str = ""
    usage: TokenUsage | None = None
    """None: nobody reported any."""
    refused: bool = False
    cost: Decimal | None = None
    price_list: PriceListUsed | None = None
    price_known: bool = False

    @property
    def is_priced(self) -> bool:
        """Its cost is known. What was refused costs nothing where there is a price at all."""
        return self.cost is not None or (self.refused and self.price_known)

    @property
    def is_reported(self) -> bool:
        return self.usage is not None or self.refused


def model_calls(facts: Iterable[Recorded]) -> list[ModelCall]:
    """The requests of some turns, in the order they were sent."""
    calls: list[ModelCall] = []
    open_: dict[tuple[str | None, str | None], ModelCall] = {}
    """The newest call of each level: what a fact about an attempt belongs to."""
    ended: dict[tuple[str | None, str | None], ModelCall] = {}
    priced: set[str] = set()
    for _, _, fact in once(facts):
        place = fact.turn_id, fact.level
        match fact.event:
            case ModelRequested() as event:
                call = open_[place] = ModelCall(event.model_ref, fact.depth, fact.at, fact.turn_id or "")
                calls.append(call)
            case ModelCompleted() as event:
                if (done := open_.pop(place, None)) is not None:
                    done.usage = event.token_usage
                    ended[place] = done
            case ModelFailed() as event:
                # One that was turned down before it was sent is no call.
                if (lost := open_.pop(place, None)) is not None:
                    lost.usage = event.token_usage
                    lost.refused = event.failure_kind in REFUSED or event.stage == "connect"
                    ended[place] = lost
            case CostRecorded() as event:
                priced.add(event.model_ref)
                if (paid := ended.get(place)) is not None and event.priced:
                    paid.cost = Decimal(event.amount)
                    paid.price_list = PriceListUsed(name=event.price_list, date=event.price_date)
            case CostEstimated() as event:
                priced.add(event.model_ref)
            case RoutingCandidatesResolved() as event:
                priced.update(each.model_ref for each in event.candidates if each.price_known)
    for call in calls:
        call.price_known = call.model_ref in priced
    return calls


def line(calls: Iterable[ModelCall]) -> CostLine:
    """Some calls, added up."""
    count = unpriced = 0
    used, cost = NOTHING, Decimal(0)
    for call in calls:
        count += 1
        unpriced += not call.is_priced
        used = used + (call.usage or NOTHING)
        cost += call.cost or 0
    return CostLine(
        calls=count,
        input_tokens=used.input_tokens,
        cached_input_tokens=used.cached_input_tokens,
        cache_write_tokens=used.cache_write_tokens,
        output_tokens=used.output_tokens,
        reasoning_tokens=used.reasoning_tokens,
        cost=decimal_text(cost),
        unpriced_calls=unpriced,
    )


def grouped(calls: Iterable[ModelCall], key: Callable[[ModelCall], str]) -> dict[str, CostLine]:
    """The same by a key, in the order of its first call."""
    groups: dict[str, list[ModelCall]] = {}
    for call in calls:
        groups.setdefault(key(call), []).append(call)
    return {name: line(each) for name, each in groups.items()}


def cost_summary(turn_id: str, facts: Iterable[Recorded]) -> CostSummary:
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
    by_depth = grouped(calls, lambda call: str(call.depth))
    return CostSummary(
        thread_id=thread_id,
        turn_id=turn_id,
        total=line(calls),
        by_model=grouped(calls, lambda call: call.model_ref),
        by_depth=dict(sorted(by_depth.items())),
        tool_calls=end.tool_calls if end is not None else len(tools),
        subtasks=subtasks,
        duration_ms=round(end.duration_ms) if end is not None else max(0, now - began) // 1000 if began else 0,
        max_cost_usd=limit,
        cost_complete=all(call.is_priced for call in calls),
        usage_complete=all(call.is_reported for call in calls),
    )


def cost_report(calls: list[ModelCall], by: str, key: Callable[[ModelCall], str]) -> CostReport:
    """Calls of many turns, by whatever the reader wants to know."""
    lists = {call.price_list: None for call in calls if call.price_list is not None}
    return CostReport(
        by=by,
        turns=len({call.turn_id for call in calls}),
        total=line(calls),
        groups=grouped(calls, key),
        price_lists=tuple(sorted(lists, key=lambda each: (each.name, each.date or ""))),
        cost_complete=all(call.is_priced for call in calls),
        usage_complete=all(call.is_reported for call in calls),
    )


def decimal_text(amount: Decimal) -> str:
    """`0.0125`: no exponent, and no zeros that say nothing."""
    text = f"{amount:f}"
    return (text.rstrip("0").rstrip(".") or "0") if "." in text else text
