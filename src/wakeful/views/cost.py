"""What a turn's requests to models cost, added up from its facts.

Every request that was sent is a call: answered, lost, cut off by a crash, of the root and of every level below it. An
attempt that its provider refused used nothing; one that was lost on the way may have used something that nobody
reported, and then the sum says that it is not complete. Money is added as decimals and never as floats.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, NamedTuple

from wakeful.contracts.envelope import Fact, StoredFact, once
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
from wakeful.contracts.values import Value

SCRIPTED = "scripted:"
LOCAL_LIST = "local"
"""What the price of a server on this machine is called."""


class CostLine(Value):
    """Some requests to models, added up."""

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
    local_calls: int = 0
    """Calls that a server on this machine answered, at no price."""
    unpriced_calls: int = 0
    """Calls whose cost is not known: their model has no known price, or nobody reported what they used."""


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


class PriceListUsed(Value):
    """A list that prices were taken from."""

    name: str
    """A package and its version, and `via` the server that answered where it was not the seller's own; `settings` and
    `code` are prices of the owner's, `local` is a server of this machine's, `free` is a script's.
    """
    date: str | None = None
    """The day of the list, where it is known."""


class CostReport(Value):
    """What the turns of a store cost, in groups. `total` is the sum of the groups."""

    by: str
    """What the groups are: model, agent, day or depth."""
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
    number: int = 0
    """How many requests of its turn were sent before it, where they are counted."""

    @property
    def is_priced(self) -> bool:
        """Its cost is known. What was refused costs nothing where there is a price at all."""
        return self.cost is not None or (self.refused and self.price_known)

    @property
    def is_reported(self) -> bool:
        return self.usage is not None or self.refused


class _CallFacts:
    """Takes in what facts say of requests, one after the other."""

    __slots__ = ("ended", "open", "priced")

    def __init__(self) -> None:
        self.open: dict[tuple[str | None, str | None], ModelCall] = {}
        """The newest call of each level: what a fact about an attempt belongs to."""
        self.ended: dict[tuple[str | None, str | None], ModelCall] = {}
        self.priced: set[str] = set()
        """Models that have a price."""

    def take(self, fact: Fact) -> ModelCall | None:
        """A new request, where the fact is one."""
        place = fact.turn_id, fact.level
        match fact.event:
            case ModelRequested() as event:
                call = self.open[place] = ModelCall(event.model_ref, fact.depth, fact.at, fact.turn_id or "")
                return call
            case ModelCompleted() as event:
                if (done := self.open.pop(place, None)) is not None:
                    done.usage = event.token_usage
                    self.ended[place] = done
            case ModelFailed() as event:
                # One that was turned down before it was sent is no call.
                if (lost := self.open.pop(place, None)) is not None:
                    lost.usage = event.token_usage
                    lost.refused = event.failure_kind in REFUSED or event.stage == "connect"
                    self.ended[place] = lost
            case CostRecorded() as event:
                self.priced.add(event.model_ref)
                if (paid := self.ended.get(place)) is not None and event.priced:
                    paid.cost = Decimal(event.amount)
                    paid.price_list = PriceListUsed(name=event.price_list, date=event.price_date)
            case CostEstimated() as event:
                self.priced.add(event.model_ref)
            case RoutingCandidatesResolved() as event:
                self.priced.update(each.model_ref for each in event.candidates if each.price_known)
        return None


def model_calls(facts: Iterable[StoredFact]) -> list[ModelCall]:
    """The requests of some turns, in the order they were sent."""
    said = _CallFacts()
    calls = [call for _, _, fact in once(facts) if (call := said.take(fact)) is not None]
    for call in calls:
        call.price_known = call.model_ref in said.priced
    return calls


class CallGroup(NamedTuple):
    """Requests that have model, depth and price list in common, added up."""

    model_ref: str
    depth: int
    price_list: PriceListUsed | None
    calls: int
    unpriced: int
    unreported: int
    used: TokenUsage
    cost: Decimal


class TurnCost(NamedTuple):
    """What the requests of a turn that ended come to: what a store keeps of them beside its log."""

    first_at: int
    """When the first request was sent; 0: none was."""
    last_at: int
    groups: tuple[CallGroup, ...]


CALL_FACTS = (ModelRequested, ModelCompleted, ModelFailed, CostRecorded, CostEstimated, RoutingCandidatesResolved)
"""The events that say what was asked of models and what it cost."""


def call_groups(calls: Iterable[ModelCall]) -> list[CallGroup]:
    """Calls in groups, in the order of each one's first call."""
    groups: dict[tuple[str, int, PriceListUsed | None], list[ModelCall]] = {}
    for call in calls:
        groups.setdefault((call.model_ref, call.depth, call.price_list), []).append(call)
    return [
        CallGroup(
            *key,
            calls=len(each),
            unpriced=sum(not call.is_priced for call in each),
            unreported=sum(not call.is_reported for call in each),
            used=sum((call.usage for call in each if call.usage is not None), NOTHING),
            cost=sum((call.cost for call in each if call.cost is not None), Decimal(0)),
        )
        for key, each in groups.items()
    ]


class _GroupSum:
    """A `CallGroup` while requests are added to it."""

    __slots__ = ("calls", "cost", "first", "refused", "unpriced", "unreported", "used")

    def __init__(self, first: int) -> None:
        self.first = first
        """Which request of the turn was its first."""
        self.calls = self.unpriced = self.unreported = 0
        self.refused = 0
        """Those that were refused: priced, if their model has a price."""
        self.used = NOTHING
        self.cost = Decimal(0)

    def add(self, call: ModelCall) -> None:
        self.first = min(self.first, call.number)
        self.calls += 1
        if call.cost is not None:
            self.cost += call.cost
        elif call.refused:
            self.refused += 1
        else:
            self.unpriced += 1
        if call.usage is not None:
            self.used += call.usage
        elif not call.refused:
            self.unreported += 1


class CostTally:
    """What the requests of one turn come to, as far as it has come: its size does not grow with their number."""

    __slots__ = ("_first_at", "_last_at", "_said", "_sums", "_times")

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._said = _CallFacts()
        self._first_at = self._last_at = 0
        self._times = 0
        """How many requests there were."""
        self._sums: dict[tuple[str, int, PriceListUsed | None], _GroupSum] = {}
        """Requests that nothing more can be said of."""
        for fact in facts:
            self.take(fact)

    def take(self, fact: Fact) -> None:
        """One of `CALL_FACTS`; each comes once, in the order of the log."""
        said = self._said
        if isinstance(fact.event, ModelRequested):
            place = fact.turn_id, fact.level
            for known in (said.open, said.ended):
                if place in known:
                    self._add(known.pop(place))
        call = said.take(fact)
        if call is not None:
            call.number = self._times
            self._times += 1
            if not self._first_at or call.at < self._first_at:
                self._first_at = call.at
            if call.at > self._last_at:
                self._last_at = call.at

    def _add(self, call: ModelCall) -> None:
        key = call.model_ref, call.depth, call.price_list
        group = self._sums.get(key)
        if group is None:
            group = self._sums[key] = _GroupSum(call.number)
        group.add(call)

    def total(self, more: Iterable[Fact] = ()) -> TurnCost:
        """With what is about to be written."""
        whole = CostTally()
        whole._first_at, whole._last_at, whole._times = self._first_at, self._last_at, self._times
        whole._sums = {key: copy(group) for key, group in self._sums.items()}
        said = whole._said
        said.open = {place: replace(call) for place, call in self._said.open.items()}
        said.ended = {place: replace(call) for place, call in self._said.ended.items()}
        said.priced = set(self._said.priced)
        for fact in more:
            whole.take(fact)
        for call in (*said.open.values(), *said.ended.values()):
            whole._add(call)
        groups = [
            CallGroup(
                *key,
                calls=group.calls,
                unpriced=group.unpriced + (group.refused if key[0] not in said.priced else 0),
                unreported=group.unreported,
                used=group.used,
                cost=group.cost,
            )
            for key, group in sorted(whole._sums.items(), key=lambda entry: entry[1].first)
        ]
        return TurnCost(whole._first_at, whole._last_at, tuple(groups))


def is_script(model_ref: str) -> bool:
    """A scripted model costs nothing, and uses the tokens that its script says."""
    return model_ref.startswith(SCRIPTED)


def line(groups: Iterable[CallGroup]) -> CostLine:
    """Some calls, added up."""
    count = unpriced = local = 0
    used, cost = NOTHING, Decimal(0)
    for group in groups:
        count += group.calls
        unpriced += 0 if is_script(group.model_ref) else group.unpriced
        local += group.calls if group.price_list is not None and group.price_list.name == LOCAL_LIST else 0
        used = used + group.used
        cost += group.cost
    return CostLine(
        calls=count,
        input_tokens=used.input_tokens,
        cached_input_tokens=used.cached_input_tokens,
        cache_write_tokens=used.cache_write_tokens,
        output_tokens=used.output_tokens,
        reasoning_tokens=used.reasoning_tokens,
        cost=decimal_text(cost),
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
    groups = call_groups(calls)
    by_depth = grouped((str(group.depth), group) for group in groups)
    return CostSummary(
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
