"""What a request to a model may take and cost, and whether the turn has room for it.

Rule: a request takes at most a third of what is left beside what is kept for the final answer, so that losing it does
not end the work. Its answer gets as many tokens as that allows, and never less than `ANSWER_TOKENS`. The tools stay.
Only where not even that fits is the root's next request its final answer.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from wakeful.contracts.events import CostEstimated, LimitChanged
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.setting_names import VENDORS
from wakeful.contracts.spending import WindowRef
from wakeful.decisions.compaction import context_tokens
from wakeful.decisions.ledger import KEPT_FOR_ANSWER, SHARE, Reservation, answer_size
from wakeful.decisions.limit_words import money_words
from wakeful.engine.turn_work import TurnWork
from wakeful.ports import Model

ANSWER_TOKENS = 1_024
"""Of output, what every request may have where money is limited; and what is kept for the final answer."""
UNKNOWN_OUTPUT = 4_096
"""The longest answer, in tokens, where neither the model nor the settings say, and a limit has to hold."""


class RequestPlan(NamedTuple):
    """A request that there is room for."""

    estimate: CostEstimated | None
    """The most it can cost; None: nothing says so."""
    reservation: Reservation | None = None
    """What is held back for it; None: nothing is limited."""
    most_output: int | None = None
    """Tokens of its answer that the provider is told not to pass; None: the model's own limit or the settings' do."""
    shortened_by: str = ""
    """The limit that allows no longer answer, in words."""
    last_because: str = ""
    """Why it is the final answer, in words, where the money is enough for no other; else empty."""

    def held(self) -> dict[str, Any]:
        """Its fields of `model.requested`."""
        if self.reservation is None:
            return {}
        usd = self.reservation.usd
        held = {
            "reserved_input": self.reservation.input_tokens,
            "reserved_output": self.reservation.output_tokens,
            "reserved_usd": str(usd) if usd is not None else None,
        }
        return {**held, "shortened_by": self.shortened_by} if self.shortened_by else held


class RequestBudget:
    """The money and the tokens of a level's requests."""

    def __init__(
        self,
        work: TurnWork,
        settings: ModelSettings,
        prompt_tokens: Callable[[bool], int],
        most_searches: Callable[[Model], int],
    ) -> None:
        self._work = work
        self._settings = settings
        self._prompt_tokens = prompt_tokens
        """A guess at how long the next prompt is; with True, of the last one."""
        self._most_searches = most_searches
        """How many searches of the provider's own are held for the next request."""

    def plan(
        self, model: Model, windows: Sequence[WindowRef], *, final: bool, of_root: bool
    ) -> RequestPlan | LimitChanged | None:
        """The next request; or the limit that it would pass. None: only what others hold stands in its way, and they
        will not take all of it, so it is asked for again when one of them has settled."""
        work = self._work
        if not work.state.ledger.needs_reservation(work.state.limits, windowed=bool(windows)):
            most = _most_output(model, self._settings)
            if most is None:  # then there is no most that it can cost
                return RequestPlan(None)
            return RequestPlan(self._price(model, lambda: self._prompt_tokens(final), most, final=final))
        kept = Decimal(0) if final else self._kept_for_answer()
        plan = self._sized(model, windows, kept, final=final)
        assert plan.reservation is not None
        limit = self._no_room(plan.reservation, windows, kept)
        if limit is None:
            return plan
        if self._no_room(plan.reservation, windows, kept, with_held=False) is None:
            return None
        if final or not kept or not of_root or limit.limit_name != "cost" or limit.window is not None:
            return limit
        last = self._sized(model, windows, Decimal(0), final=True, share=1)
        assert last.reservation is not None
        words = f"{money_words(limit)}: the model was asked for its final answer, and could call no more tools"
        return self._no_room(last.reservation, windows) or last._replace(last_because=words)

    def _sized(
        self, model: Model, windows: Sequence[WindowRef], kept: Decimal, *, final: bool, share: int = SHARE
    ) -> RequestPlan:
        """A request whose answer is as long as the limits allow."""
        work, most = self._work, _most_output(model, self._settings)
        prompt = self._prompt_tokens(final)
        longest = most if most is not None else UNKNOWN_OUTPUT
        shortest = min(ANSWER_TOKENS, longest) if getattr(model, "limits_output", True) else longest

        def priced(output: int) -> tuple[CostEstimated | None, Reservation]:
            estimate = self._price(model, lambda: prompt, output, final=final)
            return estimate, Reservation(prompt, output, Decimal(estimate.amount) if estimate is not None else None)

        estimate, whole = priced(longest)
        _, short = priced(shortest)
        rooms = work.state.ledger.rooms(work.state.limits, short, whole, kept, windowed=bool(windows))
        if work.terms.windows is not None and short.usd is not None and whole.usd is not None:
            rooms += work.terms.windows.rooms(windows, short.usd, whole.usd)
        size = answer_size(rooms, shortest, longest, share)
        if size.shortened_by:
            estimate, reservation = priced(size.tokens)
            return RequestPlan(estimate, reservation, size.tokens, size.shortened_by)
        # Nobody limits this answer: the provider is told of the length that was held for it, unless length is free.
        is_unknown = most is None and any(room.whole > room.short for room in rooms)
        return RequestPlan(estimate if most is not None or is_unknown else None, whole, longest if is_unknown else None)

    def _price(self, model: Model, prompt: Callable[[], int], output: int, *, final: bool) -> CostEstimated | None:
        work = self._work
        if work.terms.pricing is None:
            return None
        searches = 0 if final and work.state.limits.usd is not None else self._most_searches(model)
        more = {"searches": searches} if searches else {}
        return work.terms.pricing.estimate(model, prompt, output, work.clock.now(), **more)

    def _no_room(
        self,
        reservation: Reservation,
        windows: Sequence[WindowRef],
        kept: Decimal = Decimal(0),
        *,
        with_held: bool = True,
    ) -> LimitChanged | None:
        """The limit that the request would pass: the turn's own first, then what holds over time.

        `kept` is what has to be left over for the turn's final answer.
        """
        work, ledger = self._work, self._work.state.ledger
        limits, windowed = work.state.limits, bool(windows)
        passed = ledger.passed_by(limits, reservation, with_held=with_held, windowed=windowed)
        if passed is None and kept and reservation.usd is not None:
            more = reservation._replace(usd=reservation.usd + kept)
            passed = ledger.passed_by(limits, more, with_held=with_held, windowed=windowed)
            passed = passed._replace(what=KEPT_FOR_ANSWER) if passed is not None else None
        if passed is not None:
            money: dict[str, str] = {}
            if passed.name == "cost" and limits.usd is not None and reservation.usd is not None:
                left = Decimal(limits.usd) - ledger.usd - (ledger.held_usd if with_held else 0)
                needed = reservation.usd + (kept if passed.what == KEPT_FOR_ANSWER else 0)
                money = {"left": f"{max(Decimal(0), left):f}", "needed": f"{needed:f}"}
            return LimitChanged(
                limit_name=passed.name, limit=passed.limit, observed=passed.observed, what=passed.what, **money
            )
        if work.terms.windows is None or not windows:
            return None
        others = Decimal(0) if with_held else ledger.held_usd
        return work.terms.windows.refusal(windows, reservation.usd or Decimal(0), others)

    def _kept_for_answer(self) -> Decimal:
        """Money that no other request may use: the price of the root's input as it is now and of a short answer."""
        work, state = self._work, self._work.state
        limits, config = state.limits, state.config
        if limits.usd is None or not limits.final_answer_reserve or work.terms.pricing is None or config is None:
            return Decimal(0)
        model = work.code.models_of(state)[0]
        answer = short_answer(model, config.model_settings)
        estimate = work.terms.pricing.estimate(model, lambda: context_tokens(state), answer, work.clock.now())
        return Decimal(estimate.amount) if estimate is not None else Decimal(0)


def short_answer(model: Model, settings: ModelSettings) -> int:
    """The tokens of output that are kept for the final answer where money is limited."""
    most = _most_output(model, settings)
    return ANSWER_TOKENS if most is None else min(ANSWER_TOKENS, most)


def _most_output(model: Model, settings: ModelSettings) -> int | None:
    """As many tokens as an answer may have; a model that does not say has no limit that is known."""
    most = getattr(model, "most_output", None)
    return most(settings) if most is not None else None


# --- what the provider is told --------------------------------------------------------------------------------------

_LENGTHS = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"})
_THOUGHTS = frozenset({"budget_tokens", "thinkingBudget", "thinking_budget"})
"""Fields that say how long an answer, and thinking, may be."""
LEAST_THOUGHT = 1_024
"""Fewer tokens to think with are refused by some: then the vendor's field is left out."""


def held_to(settings: ModelSettings, tokens: int) -> ModelSettings:
    """These settings with at most so many tokens for an answer; half of them may be thought in a vendor's own field."""
    changes: dict[str, Any] = {"max_tokens": tokens}
    for name in ("extra_body", *VENDORS):
        if fields := getattr(settings, name):
            changes[name] = _held(fields, tokens)
    return settings.model_copy(update=changes)


def _held(fields: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in fields.items():
        if name in _LENGTHS and (not isinstance(value, int) or value > tokens):
            continue
        if isinstance(value, Mapping):
            thought = next((value[each] for each in _THOUGHTS & value.keys()), None)
            if isinstance(thought, int) and thought > tokens // 2:
                if tokens // 2 < LEAST_THOUGHT:
                    continue
                value = {each: tokens // 2 if each in _THOUGHTS else of for each, of in value.items()}
            value = _held(value, tokens) if name in ("generationConfig", "generation_config") else value
        kept[name] = value
    return kept
