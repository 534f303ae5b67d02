"""Requests to models as their facts tell of them, with what each took and cost, one by one and in groups."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import NamedTuple

from wakeful.contracts.envelope import Fact, StoredFact, once
from wakeful.contracts.events import (
    CostEstimated,
    CostRecorded,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    RoutingCandidatesResolved,
)
from wakeful.contracts.models import TokenUsage
from wakeful.contracts.values import Value, unchecked
from wakeful.decisions.spend_windows import costs_nothing

SCRIPTED = "scripted:"

NOTHING = TokenUsage()


class PriceListUsed(Value):
    """A list that prices were taken from."""

    name: str
    """A package and its version, and `via` the server that answered where it was not the seller's own; `settings` and
    `code` are prices of the owner's, `local` is a server of this machine's, `free` is a script's.
    """
    date: str | None = None
    """The day of the list, where it is known."""


_price_list_used = unchecked(PriceListUsed)


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
    """The provider did not begin with an answer: nothing was used."""
    cost: Decimal | None = None
    price_list: PriceListUsed | None = None
    reserved: Decimal = Decimal(0)
    """What was held back for it, where something limits it."""
    held: Decimal = Decimal(0)
    """Of that, what budgets count it at: it is over, it was not free, and nobody said what it cost."""
    price_known: bool = False
    number: int = 0
    """How many requests of its turn were sent before it, where they are counted."""
    parent_call_id: str | None = None
    """The call whose child sent it."""

    @property
    def is_priced(self) -> bool:
        """Its cost is known. What was refused costs nothing where there is a price at all."""
        return self.cost is not None or (self.refused and self.price_known)

    @property
    def is_reported(self) -> bool:
        return self.usage is not None or self.refused


class CallFacts:
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
                call.parent_call_id = fact.parent_call_id
                if event.reserved_usd is not None:
                    call.reserved = Decimal(event.reserved_usd)
                return call
            case ModelCompleted() as event:
                if (done := self.open.pop(place, None)) is not None:
                    done.usage, done.held = event.token_usage, done.reserved
                    self.ended[place] = done
            case ModelFailed() as event:
                # One that was turned down before it was sent is no call.
                if (lost := self.open.pop(place, None)) is not None:
                    lost.usage = event.token_usage
                    lost.refused = costs_nothing(event)
                    lost.held = Decimal(0) if lost.refused else lost.reserved
                    self.ended[place] = lost
            case CostRecorded() as event:
                self.priced.add(event.model_ref)
                if (paid := self.ended.get(place)) is not None and event.priced:
                    paid.cost, paid.held = Decimal(event.amount), Decimal(0)
                    paid.price_list = _price_list_used(name=event.price_list, date=event.price_date)
            case CostEstimated() as event:
                self.priced.add(event.model_ref)
            case RoutingCandidatesResolved() as event:
                self.priced.update(each.model_ref for each in event.candidates if each.price_known)
        return None


def model_calls(facts: Iterable[StoredFact]) -> list[ModelCall]:
    """The requests of some turns, in the order they were sent."""
    said = CallFacts()
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
    held: Decimal = Decimal(0)
    """What was reserved for requests that were cut off, and whose cost nobody said."""


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
            held=sum((call.held for call in each), Decimal(0)),
        )
        for key, each in groups.items()
    ]


class _GroupSum:
    """A `CallGroup` while requests are added to it."""

    __slots__ = ("calls", "cost", "first", "held", "refused", "unpriced", "unreported", "used")

    def __init__(self, first: int) -> None:
        self.first = first
        """Which request of the turn was its first."""
        self.calls = self.unpriced = self.unreported = 0
        self.refused = 0
        """Those that were refused: priced, if their model has a price."""
        self.used = NOTHING
        self.cost = self.held = Decimal(0)

    def add(self, call: ModelCall) -> None:
        self.first = min(self.first, call.number)
        self.calls += 1
        self.held += call.held
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
        self._said = CallFacts()
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
                held=group.held,
            )
            for key, group in sorted(whole._sums.items(), key=lambda entry: entry[1].first)
        ]
        return TurnCost(whole._first_at, whole._last_at, tuple(groups))


def is_script(model_ref: str) -> bool:
    """A scripted model costs nothing, and uses the tokens that its script says."""
    return model_ref.startswith(SCRIPTED)
