"""What a request to a model may take and cost, and whether the turn has room for it."""

from collections.abc import Callable, Sequence
from decimal import Decimal

from wakeful.contracts.events import CostEstimated, LimitChanged
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.spending import WindowRef
from wakeful.decisions.compaction import context_tokens
from wakeful.decisions.ledger import KEPT_FOR_ANSWER, Reservation, affordable
from wakeful.engine.turn_work import TurnWork
from wakeful.ports import Model

ANSWER_TOKENS = 1_024
"""Of output, what is kept for the final answer where money is limited."""
UNKNOWN_OUTPUT = 4_096
"""What an answer is taken to have at most, in tokens, where neither the model nor the settings say."""
_NOTHING = Reservation(0, 0, None)


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

    def estimate(self, model: Model, *, final: bool, limited: bool) -> tuple[CostEstimated | None, Reservation]:
        """The most it can take and cost, where that is known."""
        work = self._work

        def prompt() -> int:
            return self._prompt_tokens(final)

        most = _most_output(model, self._settings)
        bound = most if most is not None else UNKNOWN_OUTPUT
        if work.terms.pricing is None or (most is None and not limited):  # without a limit there is no most it can cost
            return None, Reservation(prompt(), bound, None) if limited else _NOTHING
        searches = 0 if final and work.state.limits.usd is not None else self._most_searches(model)
        more = {"searches": searches} if searches else {}
        estimate = work.terms.pricing.estimate(model, prompt, bound, work.clock.now(), **more)
        if not limited:
            return estimate, _NOTHING
        usd = Decimal(estimate.amount) if estimate is not None else None
        return estimate if most is not None else None, Reservation(prompt(), bound, usd)

    def no_room(
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
            return LimitChanged(limit_name=passed.name, limit=passed.limit, observed=passed.observed, what=passed.what)
        if work.terms.windows is None or not windows:
            return None
        others = Decimal(0) if with_held else ledger.held_usd
        return work.terms.windows.refusal(windows, reservation.usd or Decimal(0), others)

    def kept_for_answer(self) -> Decimal:
        """Money that no other request may use: the price of the root's input as it is now and of a short answer."""
        work, state = self._work, self._work.state
        limits, config = state.limits, state.config
        if limits.usd is None or not limits.final_answer_reserve or work.terms.pricing is None or config is None:
            return Decimal(0)
        model = work.code.models_of(state)[0]
        answer = short_answer(model, config.model_settings)
        estimate = work.terms.pricing.estimate(model, lambda: context_tokens(state), answer, work.clock.now())
        return Decimal(estimate.amount) if estimate is not None else Decimal(0)

    def last_answer(self, model: Model) -> tuple[CostEstimated | None, Reservation] | None:
        """A request whose answer is as long as the money that is left allows; None where that is not a short answer."""
        work, limits = self._work, self._work.state.limits
        if limits.usd is None or not limits.final_answer_reserve or work.terms.pricing is None:
            return None
        prompt = self._prompt_tokens(True)

        def costs(output: int) -> CostEstimated | None:
            assert work.terms.pricing is not None
            return work.terms.pricing.estimate(model, lambda: prompt, output, work.clock.now())

        answer = short_answer(model, self._settings)
        most = _most_output(model, self._settings) or UNKNOWN_OUTPUT
        short, whole = costs(answer), costs(most)
        if short is None or whole is None:
            return None
        left = Decimal(limits.usd) - work.state.ledger.usd - work.state.ledger.held_usd
        output = affordable(left, Decimal(short.amount), Decimal(whole.amount), answer, most)
        estimate = costs(output)
        assert estimate is not None
        return estimate, Reservation(prompt, output, Decimal(estimate.amount))


def short_answer(model: Model, settings: ModelSettings) -> int:
    """The tokens of output that are kept for the final answer where money is limited."""
    most = _most_output(model, settings)
    return ANSWER_TOKENS if most is None else min(ANSWER_TOKENS, most)


def _most_output(model: Model, settings: ModelSettings) -> int | None:
    """As many tokens as an answer may have; a model that does not say has no limit that is known."""
    most = getattr(model, "most_output", None)
    return most(settings) if most is not None else None
