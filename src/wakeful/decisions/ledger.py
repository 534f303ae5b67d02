"""The one budget of a turn's tree: what is spent, what is held back, and what one more step would pass.

Held back before something happens, settled when it is known what it took, and each settlement touches only what was
held for its own request. What nobody can say settles at what was held: unknown is never free. N allows N; the N+1th is
refused before it happens. The ledger is folded from facts, so a crash restores it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple

from wakeful.contracts.budgets import BudgetLeft, Limits
from wakeful.contracts.events import LimitName, ModelFailed, ModelRequested
from wakeful.contracts.models import TokenUsage
from wakeful.decisions.levels import OpenRequest
from wakeful.decisions.spend_windows import costs_nothing

UNPRICED: Final = "a model whose price nobody knows"
KEPT_FOR_ANSWER: Final = "what is left is kept for the final answer"
SHARE: Final = 3
"""A request takes at most one part in so many of what is left, so that losing it does not end the work."""


class PassedLimit(NamedTuple):
    """A limit that one more step would pass."""

    name: LimitName
    limit: float
    observed: float
    what: str = ""
    """What it is a limit of, where the name does not say it all."""


class Reservation(NamedTuple):
    """The most that a request to come can take."""

    input_tokens: int
    output_tokens: int
    usd: Decimal | None
    """None: nobody knows the price."""


class Room(NamedTuple):
    """What is left of one limit, and what a request takes of it."""

    left: Decimal
    short: Decimal
    """With a short answer."""
    whole: Decimal
    """With the longest answer."""
    what: str
    """The limit, in words."""


class AnswerSize(NamedTuple):
    """How long an answer may be."""

    tokens: int
    shortened_by: str = ""
    """The limit that allows no longer one; empty: none does."""


@dataclass(slots=True)
class TurnLedger:
    """What a turn has spent, all its levels together."""

    model_calls: int = 0
    """Requests that were sent, but for attempts that were refused before they cost anything."""
    tool_calls: int = 0
    by_tool: dict[str, int] = field(default_factory=dict)
    subtasks: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Decimal = Decimal(0)
    unpriced_tokens: int = 0
    """Of models whose price nobody knows."""
    held_input: int = 0
    held_output: int = 0
    held_usd: Decimal = Decimal(0)
    held_unpriced: int = 0
    """Tokens of requests under way to models whose price nobody knows."""
    _provisional: Decimal = Decimal(0)
    """Of the newest lost attempt: settled at what was held, until its price is known."""

    def tool_called(self, name: str) -> None:
        self.tool_calls += 1
        self.by_tool[name] = self.by_tool.get(name, 0) + 1

    def calls_of(self, name: str) -> int:
        """Calls of the tool of that name; a bare name means the last part of a name, wherever the tool comes from."""
        return sum(made for tool, made in self.by_tool.items() if tool == name or tool.endswith(f"/{name}"))

    def hold(self, asked: OpenRequest, event: ModelRequested) -> None:
        """A request is about to be sent: what it may take is not there for others."""
        self.model_calls += 1
        asked.is_counted = True
        asked.windows = event.windows
        if event.reserved_input is not None or event.reserved_output is not None or event.reserved_usd is not None:
            asked.held_input = event.reserved_input or 0
            asked.held_output = event.reserved_output or 0
            if event.reserved_usd is not None:
                asked.held_usd = Decimal(event.reserved_usd)
            else:
                asked.held_unpriced = asked.held_input + asked.held_output
            self.held_input += asked.held_input
            self.held_output += asked.held_output
            self.held_usd += asked.held_usd
            self.held_unpriced += asked.held_unpriced

    def answered(self, asked: OpenRequest | None, usage: TokenUsage | None) -> None:
        """The tokens are known, or settle at what was held. Money follows, with `cost` or `unpriced`."""
        held_input, held_output = (asked.held_input, asked.held_output) if asked is not None else (0, 0)
        self.held_input -= held_input
        self.held_output -= held_output
        if usage is not None:
            self.input_tokens += usage.input_tokens or 0
            self.output_tokens += usage.output_tokens or 0
            used = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        else:
            self.input_tokens += held_input
            self.output_tokens += held_output
            used = held_input + held_output
        if asked is not None:
            asked.used_tokens = used
            asked.held_input = asked.held_output = 0

    def cost(self, asked: OpenRequest | None, amount: Decimal, *, lost: bool) -> None:
        """What an attempt cost is known."""
        self.usd += amount
        if lost:
            self.usd -= self._provisional
            self._provisional = Decimal(0)
        elif asked is not None:
            asked.priced = True

    def recorded(self, asked: OpenRequest | None) -> None:
        """The round is over: money that nobody named settles at what was held."""
        if asked is None:
            return
        self.held_usd -= asked.held_usd
        self.held_unpriced -= asked.held_unpriced
        if not asked.priced:
            if not asked.held_usd:
                self.unpriced_tokens += asked.used_tokens
            self.usd += asked.held_usd
        asked.held_usd, asked.held_unpriced = Decimal(0), 0

    def lost(self, asked: OpenRequest, event: ModelFailed) -> None:
        """An attempt is lost. Refused before it began costs nothing; anything later may have cost all of it."""
        free = costs_nothing(event)
        self._provisional = Decimal(0)
        if free and event.token_usage is None and asked.is_counted:
            self.model_calls -= 1
        asked.is_counted = False
        if event.token_usage is not None or not free:
            self.answered(asked, event.token_usage)
        else:
            self.held_input -= asked.held_input
            self.held_output -= asked.held_output
            asked.held_input = asked.held_output = 0
        self.held_usd -= asked.held_usd
        self.held_unpriced -= asked.held_unpriced
        if asked.held_unpriced:
            self.unpriced_tokens += asked.used_tokens
        if not free:
            self.usd += asked.held_usd
            self._provisional = asked.held_usd
        asked.held_usd, asked.held_unpriced = Decimal(0), 0

    def needs_reservation(self, limits: Limits, *, windowed: bool = False) -> bool:
        """Is anything held back for a request at all? In a spend window, money always is."""
        return (
            windowed
            or limits.tokens is not None
            or limits.input_tokens is not None
            or limits.output_tokens is not None
            or limits.usd is not None
        )

    def rooms(
        self, limits: Limits, short: Reservation, whole: Reservation, kept: Decimal, *, windowed: bool = False
    ) -> list[Room]:
        """What is left of each limit that a request of these two sizes meets, without the money that is kept back."""
        into, out_of = self.input_tokens + self.held_input, self.output_tokens + self.held_output
        least, most = short.input_tokens + short.output_tokens, whole.input_tokens + whole.output_tokens
        found = []
        if limits.tokens is not None:
            found.append(_room(limits.tokens - into - out_of, least, most, f"the budget of {limits.tokens:,} tokens"))
        if limits.output_tokens is not None:
            words = f"the budget of {limits.output_tokens:,} tokens of output"
            found.append(_room(limits.output_tokens - out_of, short.output_tokens, whole.output_tokens, words))
        if short.usd is not None and whole.usd is not None:
            if limits.usd is not None:
                left = Decimal(limits.usd) - self.usd - self.held_usd - kept
                found.append(Room(left, short.usd, whole.usd, f"the budget of {limits.usd} USD"))
        elif limits.unpriced_token_ceiling is not None and (windowed or limits.usd is not None):
            ceiling = limits.unpriced_token_ceiling
            words = f"the ceiling of {ceiling:,} tokens for models without a known price"
            found.append(_room(ceiling - self.unpriced_tokens - self.held_unpriced, least, most, words))
        return found

    def passed_by(
        self, limits: Limits, needs: Reservation, *, with_held: bool = True, windowed: bool = False
    ) -> PassedLimit | None:
        """The limit that a request which may take this much would pass; in a spend window, money is limited, too.

        Without what is held for others it is what it will come to, at best, when they have settled.
        """
        held_input, held_output, held_usd, held_unpriced = (
            (self.held_input, self.held_output, self.held_usd, self.held_unpriced)
            if with_held
            else (0, 0, Decimal(0), 0)
        )
        into = self.input_tokens + held_input + needs.input_tokens
        out_of = self.output_tokens + held_output + needs.output_tokens
        for limit, would, what in (
            (limits.input_tokens, into, "input_tokens"),
            (limits.output_tokens, out_of, "output_tokens"),
            (limits.tokens, into + out_of, "tokens"),
        ):
            if limit is not None and would > limit:
                return PassedLimit("tokens", limit, would, what)
        if limits.usd is None and not windowed:
            return None
        most = Decimal(limits.usd) if limits.usd is not None else Decimal(0)
        if needs.usd is not None:
            if limits.usd is None:
                return None
            would_cost = self.usd + held_usd + needs.usd
            return PassedLimit("cost", float(most), float(would_cost)) if would_cost > most else None
        ceiling = limits.unpriced_token_ceiling
        if ceiling is None:
            return PassedLimit("cost", float(most), float(self.usd + held_usd), UNPRICED)
        tokens = self.unpriced_tokens + held_unpriced + needs.input_tokens + needs.output_tokens
        if tokens <= ceiling:
            return None
        return PassedLimit("cost", ceiling, tokens, "tokens of a model whose price nobody knows")


def answer_size(rooms: Iterable[Room], shortest: int, longest: int, share: int = SHARE) -> AnswerSize:
    """The longest answer with which the request takes at most a part of what is left of each limit.

    It is never shorter than the shortest that is worth asking for. Whether that one fits is another question.
    """
    size = AnswerSize(longest)
    for room in rooms:
        tokens = affordable(room.left / share, room.short, room.whole, shortest, longest)
        if tokens < size.tokens:
            size = AnswerSize(tokens, room.what)
    return size


def affordable(left: Decimal, short: Decimal, whole: Decimal, shortest: int, most: int) -> int:
    """As many tokens of output as this is enough for, between a short answer and the longest there can be.

    `short` and `whole` are what requests with these two would take.
    """
    if left >= whole or most <= shortest:
        return most
    if left <= short:
        return shortest
    return shortest + int((left - short) / (whole - short) * (most - shortest))


def _room(left: int, short: int, whole: int, what: str) -> Room:
    return Room(Decimal(left), Decimal(short), Decimal(whole), what)


def left_of(ledger: TurnLedger, limits: Limits, seconds: float) -> BudgetLeft:
    """What is left for whoever looks, after so many seconds of work."""

    def less(limit: int | None, used: int) -> int | None:
        return None if limit is None else max(0, limit - used)

    into, out_of = ledger.input_tokens + ledger.held_input, ledger.output_tokens + ledger.held_output
    spent = ledger.usd + ledger.held_usd
    return BudgetLeft(
        model_calls=less(limits.model_calls, ledger.model_calls),
        tool_calls=less(limits.tool_calls, ledger.tool_calls),
        seconds=None if limits.seconds is None else max(0.0, limits.seconds - seconds),
        tokens=less(limits.tokens, into + out_of),
        input_tokens=less(limits.input_tokens, into),
        output_tokens=less(limits.output_tokens, out_of),
        usd=None if limits.usd is None else str(max(Decimal(0), Decimal(limits.usd) - spent)),
        subtasks=less(limits.subtasks, ledger.subtasks),
        per_tool={name: max(0, most - ledger.calls_of(name)) for name, most in limits.per_tool.items()},
    )
