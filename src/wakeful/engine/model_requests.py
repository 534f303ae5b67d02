"""Model requests of one level: built from an append-only history, sent one at a time, each ending in facts."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from wakeful.contracts.conversation import CallPart
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import (
    AnyEvent,
    ContinuationDecided,
    LimitChanged,
    ModelFailed,
    ModelRequested,
    ModelResponseAccepted,
    RoutingFallbackApplied,
    WarningIssued,
)
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import ModelGlimpse
from wakeful.contracts.values import unchecked
from wakeful.decisions.levels import Level, OpenRequest, as_child
from wakeful.decisions.policy.server_tools import NOTHING
from wakeful.decisions.routing import MoneyLeft, moved_limits
from wakeful.decisions.runtime_answers import FINISH
from wakeful.decisions.step import AskModel
from wakeful.decisions.tool_choice import choice_now
from wakeful.engine.model_attempt import Attempt, without_secrets
from wakeful.engine.request_budget import RequestBudget, held_to
from wakeful.engine.request_offer import RequestOffer, takes_tools
from wakeful.engine.request_prompt import RequestPrompt
from wakeful.engine.turn_work import TurnWork
from wakeful.engine.watchers import ModelGlimpsed
from wakeful.ports import Model, ModelRequest, Reattachable

FINAL_FOR_MONEY = "final_answer_for_money"
"""The code of the warning that a run answered early because its money was enough for no more."""
ABANDON_SECONDS = 10.0
"""How long the end of a turn waits for a provider to be told that nobody waits for its answer."""


class Intent(NamedTuple):
    """What is written before a request is sent; or, when it cannot be, instead of it."""

    facts: list[Fact]
    model: Model
    waited_ms: int = 0
    """Milliseconds that it was held back after a lost attempt."""
    sends: bool = True
    final: bool = False
    """It is the last one that the money is enough for."""
    most_output: int | None = None
    """Tokens that the provider is told not to pass, where a limit has to hold."""
    shortened_by: str = ""
    """The limit that allows no longer answer, in words."""


class QuickBackoff(NamedTuple):
    """The time between a lost attempt and the next one."""

    attempt: tuple[int, int, int]
    """Its round, candidate and number."""
    ms: int


_model_requested = unchecked(ModelRequested)


class Attention:
    """The requests of a turn that want something of its runner. Most never do, and a tree has many."""

    def __init__(self) -> None:
        self.reattaching: set[Requests] = set()
        """A crash cut them off, and they are to be taken up again."""
        self.unwritten: set[Requests] = set()
        """They wait for an id to be on disk."""
        self.held_back: dict[Requests, int] = {}
        """Quick attempts that wait for their time, in Unix microseconds. Nothing of them is written before."""


class Requests:
    """Asks the model, and the caller who holds the loop; never both at once."""

    def __init__(self, work: TurnWork, post: Callable[[list[Fact]], None], level: Level, attention: Attention) -> None:
        self._attention = attention
        self._work = work
        self._post = post
        self._level_id = level.id
        assert level.config is not None
        self._config = level.config
        self._prompt = RequestPrompt(work, level.config, level)
        self._offer = RequestOffer(work, level.config, level)
        self._budget = self._budget_of(level.config.model_settings)
        self._task: asyncio.Future[None] | None = None
        self._began = 0.0
        """When the newest request was begun, by the clock's growing seconds."""
        self._giving_up = False
        self._abandoning = False
        """The provider is being told; nothing but the runner's own end cuts that short."""
        self._response_id: str | None = None
        """Under which the provider works at the running request by itself, when it does."""
        self.to_reattach: OpenRequest | None = None
        """What a crash cut off and is to be taken up again, until it is."""
        self.unwritten: tuple[Fact, asyncio.Future[None]] | None = None
        """The id of an accepted request on its way to disk, and who waits for it to be there."""
        self._most_output: int | None = None
        """Tokens that the provider of the running request is told not to pass, where a limit has to hold."""
        self._shortened_by = ""
        """That limit, in words, where without it the answer might be longer."""
        self._backoff: QuickBackoff | None = None
        self.arguments: dict[str, dict[str, Any] | None] = {}
        """Arguments of the newest reply, as they came: in the log, long ones stand behind references."""

    def _budget_of(self, settings: ModelSettings) -> RequestBudget:
        return RequestBudget(self._work, settings, self._prompt.tokens, self._offer.most_searches)

    @property
    def level(self) -> Level:
        return self._work.state.level(self._level_id)

    def _fact(self, event: AnyEvent, step: int | None) -> Fact:
        return self._work.fact(event, step, None, self.level)

    @property
    def _models(self) -> Sequence[Model]:
        return self._work.code.models_of(self.level)

    def intent(self, step: AskModel) -> "Intent":
        """The facts of the request to come; of one that cannot be made, that it failed, and nothing is sent.

        One that the budget has no room for is not made either: the fact says which limit it would have passed.
        """
        work, level = self._work, self.level
        if level.answer.max_tokens is not None:
            self._budget = self._budget_of(_with_room(self._config.model_settings, level.answer.max_tokens))
        # A round that a crash cut off keeps its place, also where the chain has become shorter since.
        models = work.code.models_of(level)
        model = models[min(step.candidate, len(models) - 1)]
        refuses: Callable[[ModelSettings], ModelFailure | None] | None = getattr(model, "refusal", None)
        refusal = refuses(self._config.model_settings) if refuses is not None else None  # see `ports.RefusingModel`
        refusal = refusal or self._gap(model)
        if refusal is not None:
            lost = self._attempt(step, model, 0.0).turned_down(refusal)
            return Intent([*self._moved(step, model), self._fact(lost, step.step)], model, sends=False)
        windows = work.windows_of(level) if work.terms.windows is not None else ()
        plan = self._budget.plan(model, windows, final=step.final, of_root=self._level_id is None)
        if plan is None:
            return Intent([], model, sends=False)
        if isinstance(plan, LimitChanged):
            return Intent([self._fact(plan, step.step)], model, sends=False)
        if plan.last_because:
            step = replace(step, final=True)
        held = plan.held()
        if (waited_ms := self._held_back(step)) is None:
            return Intent([], model, sends=False)
        if windows and work.terms.windows is not None:
            held["windows"] = windows
            usd = plan.reservation.usd if plan.reservation is not None else None
            work.terms.windows.hold(windows, usd or Decimal(0))
        if step.final:
            held["final"] = True
        if step.candidate:
            held["candidate"] = step.candidate
        if waited_ms:
            held["backoff_ms"] = waited_ms
        event = _model_requested(
            model_ref=model.ref,
            attempt=step.attempt,
            items=len(level.conversation.items)
            + len(level.next_request.notes)
            + (step.final and not level.next_request.told_last),
            **held,
        )
        facts = self._moved(step, model) if step.candidate else []
        if plan.last_because and not level.next_request.told_last:
            facts.append(self._fact(WarningIssued(code=FINAL_FOR_MONEY, message=plan.last_because), step.step))
        if plan.estimate is not None:
            facts.append(work.fact(plan.estimate, step.step, None, level))
        facts.append(work.fact(event, step.step, None, level))
        return Intent(facts, model, waited_ms, True, step.final, plan.most_output, plan.shortened_by)

    def _held_back(self, step: AskModel) -> int | None:
        """How long a quick attempt was held back, in milliseconds; None while it is."""
        if not step.backoff.ms:
            return 0
        attempt = (step.step, step.candidate, step.attempt)
        if self._backoff is None or self._backoff.attempt != attempt:
            wait = step.backoff
            ms = int(wait.ms * self._work.terms.jitter()) if wait.jitter else wait.ms
            self._backoff = QuickBackoff(attempt, ms)
            if ms:
                self._attention.held_back[self] = self._work.clock.now() + ms * 1000
        return None if self in self._attention.held_back else self._backoff.ms

    def _gap(self, model: Model) -> ModelFailure | None:
        """A level that ends with a call, before a model that makes none: it would be reminded until it had no rounds.

        What the root needs is looked at when its models are chosen; what a child needs is known when there is one.
        """
        if self._level_id is None or takes_tools(model) or self._config.tool(FINISH) is None:
            return None
        words = f"capability_gap: it has no tools, and a result that fits a schema is a call of {FINISH}"
        return ModelFailure(words, kind="contract_error", stage="connect", retryable=False)

    def _moved(self, step: AskModel, model: Model) -> list[Fact]:
        """That the candidate before this one was given up, when it was."""
        asked = self.level.round.request
        failure = asked.failure if asked is not None else None
        # Not when a crash cut the candidate's first attempt off: the move to it is in the log already.
        if step.candidate > 0 and step.attempt == 1 and failure is not None and failure.disposition == "fallback":
            return [self._fact(_moved_on(failure, model, self._work, self.level), step.step)]
        return []

    def send(self, step: AskModel, intent: "Intent") -> None:
        """Send it; its intent is on disk."""
        self._response_id = None
        self._most_output, self._shortened_by = intent.most_output, intent.shortened_by
        asked = step if step.final == intent.final else replace(step, final=intent.final)
        self._begin(asked, intent.model, intent.waited_ms)

    def will_reattach(self, asked: OpenRequest) -> bool:
        """Have an accepted request taken up again by its id; False when today's model is not the one to ask."""
        models = self._models
        model = models[asked.candidate] if asked.candidate < len(models) else None
        if model is None or model.ref != asked.model_ref or not isinstance(model, Reattachable):
            return False
        self.to_reattach = asked
        self._attention.reattaching.add(self)
        return True

    def reattach(self) -> None:
        """Ask for the answer of what a crash cut off; that it is asked for is on disk."""
        asked, self.to_reattach = self.to_reattach, None
        self._attention.reattaching.discard(self)
        assert asked is not None
        self._response_id = asked.response_id
        step = AskModel(asked.step, asked.candidate, asked.attempt, level=self._level_id)
        self._begin(step, self._models[asked.candidate], 0)
        stop = self._work.state.stop
        if stop is not None and stop.applied:
            self.give_up()  # the process died after what ran was told, and before the provider was

    def written(self, facts: Sequence[Fact]) -> None:
        """These are on disk: a model that waited for its id to be there may go on."""
        if self.unwritten is not None and any(fact is self.unwritten[0] for fact in facts):
            (_, waiter), self.unwritten = self.unwritten, None
            self._attention.unwritten.discard(self)
            if not waiter.done():
                waiter.set_result(None)

    def _begin(self, step: AskModel, model: Model, waited_ms: int) -> None:
        work, asking = self._work, self._ask(step, model, waited_ms)
        self._began = work.clock.monotonic()
        self._task = work.tasks.spawn(asking, lambda: self._given_up(step, model))

    def give_up(self) -> None:
        """The turn is to end: nobody waits for the answer."""
        self._giving_up = True
        if self._task is not None and not self._abandoning:
            self._task.cancel()

    async def shut_down(self) -> None:
        """Stop without a word: the intent stays open."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    def ask_caller(self) -> None:
        """Ask whoever holds the loop whether to go on."""
        self._task = self._work.tasks.spawn(self._ask_caller())

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def seconds(self) -> float:
        """For how long the running request has been under way."""
        return self._work.clock.monotonic() - self._began

    async def _ask_caller(self) -> None:
        work = self._work
        assert work.people.ask_caller is not None
        self._post([work.fact(ContinuationDecided(go_on=await work.people.ask_caller()))])

    async def _ask(self, step: AskModel, model: Model, waited_ms: int) -> None:
        work = self._work
        began = time.perf_counter()
        await self._prompt.extend()
        attempt = self._attempt(step, model, round((time.perf_counter() - began) * 1000, 3))
        attempt.waited_ms = waited_ms
        events, item = await attempt.outcome(list(self.level.round.attempts), work.place.call_ids)
        if item is not None:
            self.arguments = {part.call_id: part.arguments for part in item.parts if isinstance(part, CallPart)}
        fact, level = work.fact, self.level
        self._post([fact(event, step.step, None, level) for event in events])

    def _given_up(self, step: AskModel, model: Model) -> None:
        """A request that was given up is a lost attempt, also one whose task had not come to run yet."""
        if self._giving_up:
            if self._response_id is not None and isinstance(model, Reattachable):
                # Told before the end is written: a process that dies here comes back to it.
                self._abandoning = True
                self._task = self._work.tasks.spawn(self._abandon(step, model, self._response_id))
            else:
                self._give_up_for_good(step, model)
        # Cancelled otherwise, the runner is going down: the intent stays open.

    async def _abandon(self, step: AskModel, model: Model, response_id: str) -> None:
        """The provider works at it by itself: it has to be told that nobody waits. The turn ends either way."""
        assert isinstance(model, Reattachable)
        untold = ""
        try:
            async with asyncio.timeout(ABANDON_SECONDS):
                await model.abandon(response_id)
        except Exception as error:
            untold = without_secrets(f"; the provider could not be told ({type(error).__name__}: {error})", model)
        self._give_up_for_good(step, model, untold)

    def _give_up_for_good(self, step: AskModel, model: Model, more: str = "") -> None:
        given_up = self._attempt(step, model, 0.0).cancelled(self._work.clock.now(), more)
        self._post([self._fact(given_up, step.step)])

    def _accepted(self, step: AskModel, model: Model) -> Callable[[str], Awaitable[None]]:
        async def accepted(response_id: str) -> None:
            self._response_id = response_id
            event = ModelResponseAccepted(
                model_ref=model.ref,
                provider=model.ref.partition(":")[0],
                candidate=step.candidate,
                attempt=step.attempt,
                response_id=response_id,
            )
            fact = self._fact(event, step.step)
            self.unwritten = fact, asyncio.get_running_loop().create_future()
            waiter = self.unwritten[1]
            self._attention.unwritten.add(self)
            self._post([fact])
            await waiter

        return accepted

    def _attempt(self, step: AskModel, model: Model, built_ms: float) -> Attempt:
        work = self._work
        config, level = self._config, self.level
        frame = self._prompt.frame()
        terms = self._offer.terms_of(step.candidate, model)
        if level.answer.max_tokens is not None:
            terms = terms._replace(settings=_with_room(terms.settings, level.answer.max_tokens))
        # No money was held for searches of the final answer, where money is what ends the turn.
        last_money = step.final and work.state.limits.usd is not None
        searches = NOTHING if last_money else self._offer.server_tools(model)
        return Attempt(
            model,
            ModelRequest(
                instructions=frame.system_prompt,
                frame=frame,
                history=self._prompt.history,
                tools=self._offer.tools(terms, searches.asks),
                turn_id=work.place.row.turn_id,
                step=step.step,
                attempt=step.attempt,
                answered=level.model_usage.answers,
                level=self._level_id,
                depth=level.depth,
                tool_choice=choice_now(
                    config.model_settings.tool_choice,
                    answered=level.model_usage.answers,
                    final=step.final,
                    has_tools=self._offer.has_tools or bool(searches.asks),
                ),
                settings=terms.settings if self._most_output is None else held_to(terms.settings, self._most_output),
                server_tools=searches.tools,
                withheld=terms.withheld,
                output_schema=config.output_schema,
                accepted_gap=terms.accepted_gap,
                stream=work.terms.stream,
                watched=work.audience.is_there,
                accepted=self._accepted(step, model),
            ),
            candidate=step.candidate,
            more_candidates=terms.more_candidates,
            has_waited=level.round.wait is not None,
            told_wait=level.round.told_wait,
            context_build_ms=built_ms,
            clock=work.clock,
            keep=work.place.store.put_blob,
            show=self._show(step) if work.audience.may_come else None,
            pricing=work.terms.pricing,
            reattach_to=self._response_id,
            low_limits=work.terms.low_limits,
            left_out=work.terms.left_out,
            withheld_tools=searches.withheld,
            shortened_by=self._shortened_by,
        )

    def _show(self, step: AskModel) -> Callable[[ModelGlimpse], None]:
        level = self.level
        depth = level.depth
        made_by = child.call.call_id if (child := as_child(level)) is not None else None

        def show(piece: ModelGlimpse) -> None:
            self._work.audience.glimpse(ModelGlimpsed(step.step, step.attempt, piece, self._level_id, depth, made_by))

        return show


def _with_room(settings: ModelSettings, most: int) -> ModelSettings:
    """For an answer of so many tokens, because a shorter one was cut off."""
    return settings.model_copy(update={"max_tokens": most})


def _moved_on(failure: ModelFailed, model: Model, work: TurnWork, level: Level) -> RoutingFallbackApplied:
    tried = list(dict.fromkeys(record.model_ref for record in level.round.attempts))
    limit = work.state.limits.usd
    return RoutingFallbackApplied(
        routing_id=f"route_{work.place.row.turn_id}",
        from_model_ref=failure.model_ref,
        to_model_ref=model.ref,
        reason=failure.failure_kind,
        attempt=failure.attempt,
        fallback_chain=tuple(tried),
        limit_state=moved_limits(
            failure, MoneyLeft(Decimal(limit) if limit is not None else None, work.state.bill.cost)
        ),
    )
