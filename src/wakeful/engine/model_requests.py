"""Model requests of one level: built from an append-only history, sent one at a time, each ending in facts."""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableSequence, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from wakeful.contracts.conversation import AssistantItem, CallPart, History, ToolItem, UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import (
    AnyEvent,
    ContinuationDecided,
    CostEstimated,
    LimitChanged,
    ModelFailed,
    ModelRequested,
    ModelResponseAccepted,
    RoutingFallbackApplied,
)
from wakeful.contracts.frames import ProviderPromptFrame
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import ModelGlimpse
from wakeful.contracts.spending import WindowRef
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.values import unchecked
from wakeful.decisions.compaction import context_tokens
from wakeful.decisions.context import advised, frame_of
from wakeful.decisions.evolve.models import LAST_CALL
from wakeful.decisions.injected_fields import shown_tools
from wakeful.decisions.ledger import KEPT_FOR_ANSWER, Reservation, affordable
from wakeful.decisions.levels import Level, OpenRequest, artifacts_of, as_child
from wakeful.decisions.paged_list import PagedList
from wakeful.decisions.planner import plan_section
from wakeful.decisions.policy.server_tools import NOTHING, ProviderOffer, offered_to_provider
from wakeful.decisions.policy.verdict import CompiledPolicy, with_answers
from wakeful.decisions.prompt_size import characters, tokens
from wakeful.decisions.routing import MoneyLeft, moved_limits
from wakeful.decisions.runtime_answers import FINISH
from wakeful.decisions.step import AskModel
from wakeful.decisions.tool_choice import choice_now
from wakeful.engine.model_attempt import Attempt, without_secrets
from wakeful.engine.settings_left_out import settings_for
from wakeful.engine.turn_work import TurnWork
from wakeful.engine.watchers import ModelGlimpsed
from wakeful.gate.large_content import resolve
from wakeful.ports import Model, ModelRequest, Reattachable
from wakeful.tools.artifact_reader import reader_declaration
from wakeful.tools.results import READ_ARTIFACT

ABANDON_SECONDS = 10.0
"""How long the end of a turn waits for a provider to be told that nobody waits for its answer."""


class Intent(NamedTuple):
    """What is written before a request is sent; or, when it cannot be, instead of it."""

    facts: list[Fact]
    model: Model
    wait_ms: int = 0
    """Milliseconds to wait before sending it."""
    sends: bool = True
    final: bool = False
    """It is the last one that the money is enough for."""
    most_output: int | None = None
    """Tokens that its answer may have, where the money is enough for fewer than the model may write."""


class RequestTerms(NamedTuple):
    """What is the same in every request of a level to one model."""

    settings: ModelSettings
    withheld: tuple[str, ...]
    tools: Sequence[ToolDeclaration]
    accepted_gap: frozenset[str]
    more_candidates: bool


_model_requested = unchecked(ModelRequested)
ANSWER_TOKENS = 1_024
"""Of output, what is kept for the final answer where money is limited."""
UNKNOWN_OUTPUT = 4_096
"""What an answer is taken to have at most, in tokens, where neither the model nor the settings say."""
_NOTHING = Reservation(0, 0, None)


class Attention:
    """The requests of a turn that want something of its runner. Most never do, and a tree has many."""

    def __init__(self) -> None:
        self.reattaching: set[Requests] = set()
        """A crash cut them off, and they are to be taken up again."""
        self.unwritten: set[Requests] = set()
        """They wait for an id to be on disk."""


class Requests:
    """Asks the model, and the caller who holds the loop; never both at once."""

    def __init__(self, work: TurnWork, post: Callable[[list[Fact]], None], level: Level, attention: Attention) -> None:
        self._attention = attention
        self._work = work
        self._post = post
        self._level_id = level.id
        assert level.config is not None
        self._config = level.config
        self._history = History()
        self._compactions = level.conversation.compactions
        self._seen = 0
        """How many of the turn's items are in the history."""
        shown = shown_tools(self._config.tools, self._config.injected_tool_args)
        self._searches = any(tool.server is not None for tool in shown)
        """Does the agent have a tool that the provider runs?"""
        self._tools = tuple(tool for tool in shown if tool.server is None) if self._searches else shown
        self._terms: dict[int, RequestTerms] = {}
        """By the model's place in the chain."""
        self._with_reader: tuple[ToolDeclaration, ...] | None = None
        self._task: asyncio.Future[None] | None = None
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
        """Tokens that the running request's answer may have, where money is short."""
        self._frame: ProviderPromptFrame | None = None
        self._characters: int | None = None
        """Of what stands before the conversation, where somebody asked."""
        self.arguments: dict[str, dict[str, Any] | None] = {}
        """Arguments of the newest reply, as they came: in the log, long ones stand behind references."""

    @property
    def level(self) -> Level:
        state = self._work.state
        return state if self._level_id is None else state.tree.levels[self._level_id]

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
        limited = work.state.ledger.needs_reservation(work.state.limits, windowed=bool(windows))
        estimate, reservation = self._estimate(model, step, limited=limited)
        held: dict[str, Any] = {}
        most_output: int | None = None
        if limited:
            kept = Decimal(0) if step.final else self._kept_for_answer()
            limit = self._no_room(reservation, windows, kept)
            if limit is not None and self._no_room(reservation, windows, kept, with_held=False) is None:
                # Only what others hold stands in its way, and they will not take all of it: asked again when one has
                # settled.
                return Intent([], model, sends=False)
            if limit is not None and limit.limit_name == "cost" and self._level_id is None:
                smaller = self._last_answer(model, step)
                if smaller is not None and self._no_room(smaller[1], windows) is None:
                    step, (estimate, reservation) = replace(step, final=True), smaller
                    most_output, limit = reservation.output_tokens, None
            if limit is not None:
                return Intent([self._fact(limit, step.step)], model, sends=False)
            held = {
                "reserved_input": reservation.input_tokens,
                "reserved_output": reservation.output_tokens,
                "reserved_usd": str(reservation.usd) if reservation.usd is not None else None,
            }
        if windows and work.terms.windows is not None:
            held["windows"] = windows
            work.terms.windows.hold(windows, reservation.usd or Decimal(0))
        wait = step.backoff
        wait_ms = int(wait.ms * work.terms.jitter()) if wait.jitter else wait.ms
        if step.final:
            held["final"] = True
        if step.candidate:
            held["candidate"] = step.candidate
        if wait_ms:
            held["backoff_ms"] = wait_ms
        event = _model_requested(
            model_ref=model.ref,
            attempt=step.attempt,
            items=len(level.conversation.items)
            + len(level.next_request.notes)
            + (step.final and not level.next_request.told_last),
            **held,
        )
        facts = self._moved(step, model) if step.candidate else []
        if estimate is not None:
            facts.append(work.fact(estimate, step.step, None, level))
        facts.append(work.fact(event, step.step, None, level))
        return Intent(facts, model, wait_ms, final=step.final, most_output=most_output)

    def _gap(self, model: Model) -> ModelFailure | None:
        """A level that ends with a call, before a model that makes none: it would be reminded until it had no rounds.

        What the root needs is looked at when its models are chosen; what a child needs is known when there is one.
        """
        if self._level_id is None or _takes_tools(model) or self._config.tool(FINISH) is None:
            return None
        words = f"capability_gap: it has no tools, and a result that fits a schema is a call of {FINISH}"
        return ModelFailure(words, kind="contract_error", stage="connect", retryable=False)

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

    def _last_answer(self, model: Model, step: AskModel) -> tuple[CostEstimated | None, Reservation] | None:
        """A request whose answer is as long as the money that is left allows; None where that is not a short answer."""
        work, limits = self._work, self._work.state.limits
        if limits.usd is None or not limits.final_answer_reserve or work.terms.pricing is None:
            return None
        prompt = self._prompt_tokens(final=True)

        def costs(output: int) -> CostEstimated | None:
            assert work.terms.pricing is not None
            return work.terms.pricing.estimate(model, lambda: prompt, output, work.clock.now())

        answer = short_answer(model, self._config.model_settings)
        most = _most_output(model, self._config.model_settings) or UNKNOWN_OUTPUT
        short, whole = costs(answer), costs(most)
        if short is None or whole is None:
            return None
        left = Decimal(limits.usd) - work.state.ledger.usd - work.state.ledger.held_usd
        output = affordable(left, Decimal(short.amount), Decimal(whole.amount), answer, most)
        estimate = costs(output)
        assert estimate is not None
        return estimate, Reservation(prompt, output, Decimal(estimate.amount))

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
            return LimitChanged(limit_name=passed.name, limit=passed.limit, observed=passed.observed, what=passed.what)
        if work.terms.windows is None or not windows:
            return None
        others = Decimal(0) if with_held else ledger.held_usd
        return work.terms.windows.refusal(windows, reservation.usd or Decimal(0), others)

    def _estimate(self, model: Model, step: AskModel, *, limited: bool) -> tuple[CostEstimated | None, Reservation]:
        """The most it can take and cost, where that is known."""
        work = self._work

        def prompt() -> int:
            return self._prompt_tokens(final=step.final)

        most = _most_output(model, self._config.model_settings)
        bound = most if most is not None else UNKNOWN_OUTPUT
        if work.terms.pricing is None or (most is None and not limited):  # without a limit there is no most it can cost
            return None, Reservation(prompt(), bound, None) if limited else _NOTHING
        estimate = work.terms.pricing.estimate(model, prompt, bound, work.clock.now())
        if not limited:
            return estimate, _NOTHING
        usd = Decimal(estimate.amount) if estimate is not None else None
        return estimate if most is not None else None, Reservation(prompt(), bound, usd)

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
        self._most_output = intent.most_output
        asked = step if step.final == intent.final else replace(step, final=intent.final)
        self._begin(asked, intent.model, intent.wait_ms)

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

    def _begin(self, step: AskModel, model: Model, wait_ms: float) -> None:
        work, asking = self._work, self._ask(step, model, wait_ms)
        # In a tree the requests of a pass begin side by side, and their answers are taken in one by one.
        begin = work.tasks.spawn_eagerly if not work.state.tree.levels else work.tasks.spawn
        self._task = begin(asking, lambda: self._given_up(step, model))

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

    async def _ask_caller(self) -> None:
        work = self._work
        assert work.people.ask_caller is not None
        self._post([work.fact(ContinuationDecided(go_on=await work.people.ask_caller()))])

    async def _ask(self, step: AskModel, model: Model, wait_ms: float) -> None:
        work = self._work
        if wait_ms:
            await work.clock.sleep(wait_ms / 1000)
        began = time.perf_counter()
        await self._extend()
        attempt = self._attempt(step, model, round((time.perf_counter() - began) * 1000, 3))
        attempt.waited_ms = int(wait_ms)
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
        frame = self._frame or self._frame_of_level()
        terms = self._terms.get(step.candidate) or self._terms_of(step.candidate, model)
        searches = self._server_tools() if self._searches else NOTHING
        return Attempt(
            model,
            ModelRequest(
                instructions=frame.system_prompt,
                frame=frame,
                history=self._history,
                tools=self._offered(terms.tools),
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
                    has_tools=bool(self._tools),
                ),
                settings=terms.settings
                if self._most_output is None
                else terms.settings.model_copy(update={"max_tokens": self._most_output}),
                server_tools=searches.tools,
                withheld=terms.withheld,
                output_schema=config.output_schema,
                accepted_gap=terms.accepted_gap,
                stream=work.terms.stream,
                watched=work.audience.watcher is not None,
                accepted=self._accepted(step, model),
            ),
            candidate=step.candidate,
            more_candidates=terms.more_candidates,
            context_build_ms=built_ms,
            clock=work.clock,
            keep=work.place.store.put_blob,
            show=self._show(step) if work.audience.watcher is not None else None,
            pricing=work.terms.pricing,
            reattach_to=self._response_id,
            low_limits=work.terms.low_limits,
            left_out=work.terms.left_out,
            withheld_tools=searches.withheld,
        )

    def _server_tools(self) -> ProviderOffer:
        """What the provider may run by itself in the next request, by the policy and by what was seen until now."""
        state, config = self._work.state, self._config

        def policies() -> list[CompiledPolicy]:
            # Where another agent works for this turn, its own policy holds, and the turn's.
            root = state.config
            others = [root.policy] if root is not None and root.agent_name != config.agent_name else []
            rules = state.rules
            return [
                with_answers(each, config.tools, rules.standing, rules.revoked) for each in (config.policy, *others)
            ]

        return offered_to_provider(
            config.tools,
            policies,
            derived_from=state.terms.derived_from,
            exposure=state.thread.exposure,
            now=self._work.clock.now() / 1_000_000,
        )

    def _terms_of(self, candidate: int, model: Model) -> "RequestTerms":
        models = self._models
        settings = settings_for(model, self._config, models)
        tools = self._tools if _takes_tools(model) else ()
        gap, more_candidates = frozenset(self._config.accept_gap), candidate + 1 < len(models)
        terms = self._terms[candidate] = RequestTerms(settings.sent, settings.withheld, tools, gap, more_candidates)
        return terms

    def _prompt_tokens(self, *, final: bool = False) -> int:
        """A guess at how long the next prompt is; only what is new is looked at."""
        config, level = self._config, self.level
        self._begin_anew_after_compaction(level)
        if self._characters is None:
            self._characters = (
                len(config.instructions)
                + len(self._plan())
                + sum(len(tool.name) + len(tool.description) + len(str(tool.input_schema)) for tool in config.tools)
            )
        said = level.conversation.measure.of(level.conversation.items).characters
        last_words = characters([LAST_CALL]) if final and not level.next_request.told_last else 0
        return tokens(self._characters + said + characters(level.next_request.notes) + last_words)

    def _begin_anew_after_compaction(self, level: Level) -> None:
        """The beginning was folded into a summary: what was built on it is built again."""
        if level.conversation.compactions != self._compactions:
            self._compactions = level.conversation.compactions
            self._history, self._seen, self._characters = History(), 0, None

    def _frame_of_level(self) -> ProviderPromptFrame:
        """Made once: every request of a level begins the same."""
        if self._frame is None:
            work = self._work
            self._frame = frame_of(self._config, work.place.claim.agent_id, work.place.claim.seen, self._plan())
        return self._frame

    def _plan(self) -> str:
        """What the executor is shown of the plan, where there is one."""
        plan = self._work.state.planning.plan if self._level_id is None else None
        return plan_section(plan) if plan is not None else ""

    async def _extend(self) -> None:
        """Hand on what is new since the last request, whole: what stands behind references is fetched."""
        level = self.level
        self._begin_anew_after_compaction(level)
        items, told = level.conversation.items, level.conversation.advised
        window = self._config.context_window
        new: MutableSequence[UserItem | AssistantItem | ToolItem]
        if told and window is not None:
            new = advised(items[self._seen :], self._seen, told, window)
        elif not self._seen and isinstance(items, PagedList):
            new = items.snapshot()  # what stands in pages is decoded by a model that looks at it
        else:
            new = list(items[self._seen :])
        seen, self._seen = self._seen, len(items)
        for place in reversed(level.conversation.measure.of(items).referring):
            if place < seen:
                break
            new[place - seen] = await resolve(new[place - seen], self._work.place.store.get_blob)
        if seen:
            self._history.extend(new)
        else:
            self._history = History.over(new)

    def _offered(self, tools: Sequence[ToolDeclaration]) -> Sequence[ToolDeclaration]:
        """The level's tools, and `read_artifact` once output was spilled."""
        if not tools or not artifacts_of(self.level) or self._config.tool(READ_ARTIFACT) is not None:
            return tools
        if self._with_reader is None:
            self._with_reader = (*tools, reader_declaration())
        return self._with_reader

    def _show(self, step: AskModel) -> Callable[[ModelGlimpse], None]:
        level = self.level
        depth = level.depth
        made_by = child.call.call_id if (child := as_child(level)) is not None else None

        def show(piece: ModelGlimpse) -> None:
            self._work.audience.glimpse(ModelGlimpsed(step.step, step.attempt, piece, self._level_id, depth, made_by))

        return show


def short_answer(model: Model, settings: ModelSettings) -> int:
    """The tokens of output that are kept for the final answer where money is limited."""
    most = _most_output(model, settings)
    return ANSWER_TOKENS if most is None else min(ANSWER_TOKENS, most)


def _most_output(model: Model, settings: ModelSettings) -> int | None:
    """As many tokens as an answer may have; a model that does not say has no limit that is known."""
    most = getattr(model, "most_output", None)
    return most(settings) if most is not None else None


def _takes_tools(model: Model) -> bool:
    """A model that cannot call tools still answers; what a model does not say it cannot do, it is asked to do."""
    profile = getattr(model, "profile", None)
    return profile is None or bool(profile.tools)


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
