"""Model requests of a turn: built from an append-only history, sent one at a time, each ending in facts."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from wakeful.agents.asking import Attempt, without_secrets
from wakeful.agents.watching import ModelGlimpsed
from wakeful.agents.work import TurnWork
from wakeful.contracts.conversation import AssistantItem, History, ToolItem, UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import (
    ContinuationDecided,
    LimitState,
    ModelFailed,
    ModelRequested,
    ModelResponseAccepted,
    RoutingFallbackApplied,
)
from wakeful.contracts.frames import ProviderPromptFrame
from wakeful.contracts.models import ModelGlimpse
from wakeful.contracts.values import unchecked
from wakeful.decisions.context import frame_of
from wakeful.decisions.injected import shown_tools
from wakeful.decisions.prompt_size import characters, tokens
from wakeful.decisions.state import Asked
from wakeful.decisions.turn import AskModel
from wakeful.mediation.offloading import refers, resolve
from wakeful.ports import Model, ModelRequest, Reattachable

ABANDON_SECONDS = 10.0
"""How long the end of a turn waits for a provider to be told that nobody waits for its answer."""


class Intent(NamedTuple):
    """What is written before a request is sent; or, when it cannot be, instead of it."""

    facts: list[Fact]
    model: Model
    wait_ms: int = 0
    """Milliseconds to wait before sending it."""
    sends: bool = True


_model_requested = unchecked(ModelRequested)


class Requests:
    """Asks the model, and the caller who holds the loop; never both at once."""

    def __init__(self, work: TurnWork, post: Callable[[list[Fact]], None]) -> None:
        self._work = work
        self._post = post
        self._history = History()
        self._seen = 0
        """How many of the turn's items are in the history."""
        self._tools = shown_tools(work.config.tools, work.config.injected_tool_args)
        self._task: asyncio.Task[None] | None = None
        self._giving_up = False
        self._abandoning = False
        """The provider is being told; nothing but the runner's own end cuts that short."""
        self._response_id: str | None = None
        """Under which the provider works at the running request by itself, when it does."""
        self.to_reattach: Asked | None = None
        """What a crash cut off and is to be taken up again, until it is."""
        self.unwritten: tuple[Fact, asyncio.Future[None]] | None = None
        """The id of an accepted request on its way to disk, and who waits for it to be there."""
        self._frame: ProviderPromptFrame | None = None
        self._sized = 0
        """How many of the turn's items are counted in `_characters`."""
        self._characters = 0
        self.arguments: dict[str, dict[str, Any] | None] = {}
        """Arguments of the newest reply, as they came: in the log, long ones stand behind references."""

    def intent(self, step: AskModel) -> "Intent":
        """The facts of the request to come; of one that cannot be made, that it failed, and nothing is sent."""
        work = self._work
        model = work.models[step.candidate]
        refuses: Callable[[dict[str, Any]], ModelFailure | None] | None = getattr(model, "refusal", None)
        refusal = refuses(work.config.settings) if refuses is not None else None  # see `ports.Refusing`
        if refusal is not None:
            lost = self._attempt(step, model, 0.0).turned_down(refusal)
            return Intent([*self._moved(step, model), work.fact(lost, step.step)], model, sends=False)
        wait = step.backoff
        wait_ms = int(wait.ms * work.jitter()) if wait.jitter else wait.ms
        event = _model_requested(
            model_ref=model.ref,
            candidate=step.candidate,
            attempt=step.attempt,
            items=len(work.state.items) + len(work.state.notes),
            backoff_ms=wait_ms,
        )
        return Intent(
            [*self._moved(step, model), *self._estimate(step, model), work.fact(event, step.step)], model, wait_ms
        )

    def _estimate(self, step: AskModel, model: Model) -> list[Fact]:
        """The most it can cost, where that is known."""
        work = self._work
        most = _most_output(model, work.config.settings)
        if most is None or work.pricing is None:  # without a limit there is no most it can cost
            return []
        estimate = work.pricing.estimate(model, self._prompt_tokens, most, work.clock.now())
        return [] if estimate is None else [work.fact(estimate, step.step)]

    def _moved(self, step: AskModel, model: Model) -> list[Fact]:
        """That the candidate before this one was given up, when it was."""
        failure = self._work.state.asked.failure if self._work.state.asked is not None else None
        # Not when a crash cut the candidate's first attempt off: the move to it is in the log already.
        if step.candidate > 0 and step.attempt == 1 and failure is not None and failure.disposition == "fallback":
            return [self._work.fact(_moved_on(failure, model, self._work), step.step)]
        return []

    def send(self, step: AskModel, model: Model, wait_ms: float) -> None:
        """Send it; its intent is on disk."""
        self._response_id = None
        self._begin(step, model, wait_ms)

    def will_reattach(self, asked: Asked) -> bool:
        """Have an accepted request taken up again by its id; False when today's model is not the one to ask."""
        models = self._work.models
        model = models[asked.candidate] if asked.candidate < len(models) else None
        if model is None or model.ref != asked.model_ref or not isinstance(model, Reattachable):
            return False
        self.to_reattach = asked
        return True

    def reattach(self) -> None:
        """Ask for the answer of what a crash cut off; that it is asked for is on disk."""
        asked, self.to_reattach = self.to_reattach, None
        assert asked is not None
        self._response_id = asked.response_id
        step = AskModel(asked.step, asked.candidate, asked.attempt)
        self._begin(step, self._work.models[asked.candidate], 0)
        stop = self._work.state.stop
        if stop is not None and stop.applied:
            self.give_up()  # the process died after what ran was told, and before the provider was

    def written(self, facts: Sequence[Fact]) -> None:
        """These are on disk: a model that waited for its id to be there may go on."""
        if self.unwritten is not None and any(fact is self.unwritten[0] for fact in facts):
            (_, waiter), self.unwritten = self.unwritten, None
            if not waiter.done():
                waiter.set_result(None)

    def _begin(self, step: AskModel, model: Model, wait_ms: float) -> None:
        task = self._work.spawn(self._ask(step, model, wait_ms))
        task.add_done_callback(lambda task: self._over(task, step, model))
        self._task = task

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
        self._task = self._work.spawn(self._ask_caller())

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    async def _ask_caller(self) -> None:
        work = self._work
        assert work.ask_caller is not None
        self._post([work.fact(ContinuationDecided(go_on=await work.ask_caller()))])

    async def _ask(self, step: AskModel, model: Model, wait_ms: float) -> None:
        work = self._work
        if wait_ms:
            await work.clock.sleep(wait_ms / 1000)
        began = time.perf_counter()
        await self._extend()
        attempt = self._attempt(step, model, round((time.perf_counter() - began) * 1000, 3))
        attempt.waited_ms = int(wait_ms)
        events, item = await attempt.outcome(list(work.state.attempts), work.call_ids)
        if item is not None:
            self.arguments = {call.call_id: call.arguments for call in item.calls}
        self._post([work.fact(event, step.step) for event in events])

    def _over(self, task: "asyncio.Task[None]", step: AskModel, model: Model) -> None:
        """A request that was given up is a lost attempt, also one whose task had not come to run yet."""
        if task.cancelled() and self._giving_up:
            if self._response_id is not None and isinstance(model, Reattachable):
                # Told before the end is written: a process that dies here comes back to it.
                self._abandoning = True
                self._task = self._work.spawn(self._abandon(step, model, self._response_id))
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
        self._post([self._work.fact(given_up, step.step)])

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
            fact = self._work.fact(event, step.step)
            self.unwritten = fact, asyncio.get_running_loop().create_future()
            waiter = self.unwritten[1]
            self._post([fact])
            await waiter

        return accepted

    def _attempt(self, step: AskModel, model: Model, built_ms: float) -> Attempt:
        work = self._work
        config = work.config
        return Attempt(
            model,
            ModelRequest(
                instructions=config.instructions,
                frame=self._frame_of_turn(),
                history=self._history,
                tools=self._tools if _takes_tools(model) else (),
                turn_id=work.row.turn_id,
                step=step.step,
                attempt=step.attempt,
                answered=work.state.answered,
                settings=self._settings(),
                output_schema=config.output_schema,
                stream=work.stream,
                watched=work.watcher is not None,
                accepted=self._accepted(step, model),
            ),
            candidate=step.candidate,
            more_candidates=step.candidate + 1 < len(work.models),
            context_build_ms=built_ms,
            clock=work.clock,
            keep=work.store.put_blob,
            show=self._show(step) if work.watcher is not None else None,
            pricing=work.pricing,
            reattach_to=self._response_id,
        )

    def _prompt_tokens(self) -> int:
        """A guess at how long the next prompt is; only what is new is looked at."""
        work = self._work
        if not self._sized:
            self._characters = len(work.config.instructions) + sum(
                len(tool.name) + len(tool.description) + len(str(tool.input_schema)) for tool in work.config.tools
            )
        items = work.state.items
        self._characters += characters(items[self._sized :])
        self._sized = len(items)
        return tokens(self._characters)

    def _frame_of_turn(self) -> ProviderPromptFrame:
        """Made once: every request of a turn begins the same."""
        if self._frame is None:
            work = self._work
            self._frame = frame_of(work.config, work.claim.agent_id, work.claim.seen)
        return self._frame

    def _settings(self) -> dict[str, Any]:
        cache = self._frame_of_turn().cache
        if cache is None:
            return self._work.config.settings
        return {"prompt_cache_key": cache.prompt_cache_key, **self._work.config.settings}

    async def _extend(self) -> None:
        """Hand on what is new since the last request, whole: what stands behind references is fetched."""
        items = self._work.state.items
        new: list[UserItem | AssistantItem | ToolItem] = items[self._seen :]
        self._seen = len(items)
        if any(refers(item) for item in new):
            new = [await resolve(item, self._work.store.get_blob) for item in new]
        self._history.extend(new)

    def _show(self, step: AskModel) -> Callable[[ModelGlimpse], None]:
        def show(piece: ModelGlimpse) -> None:
            self._work.glimpse(ModelGlimpsed(step.step, step.attempt, piece))

        return show


def _most_output(model: Model, settings: Mapping[str, Any]) -> int | None:
    """As many tokens as an answer may have; a model that does not say has no limit that is known."""
    most = getattr(model, "most_output", None)
    return most(settings) if most is not None else None


def _takes_tools(model: Model) -> bool:
    """A model that cannot call tools still answers; what a model does not say it cannot do, it is asked to do."""
    profile = getattr(model, "profile", None)
    return profile is None or bool(profile.tools)


def _moved_on(failure: ModelFailed, model: Model, work: TurnWork) -> RoutingFallbackApplied:
    tried = list(dict.fromkeys(record.model_ref for record in work.state.attempts))
    limited = failure.failure_kind == "rate_limited"
    return RoutingFallbackApplied(
        routing_id=f"route_{work.row.turn_id}",
        from_model_ref=failure.model_ref,
        to_model_ref=model.ref,
        reason=failure.failure_kind,
        attempt=failure.attempt,
        fallback_chain=tuple(tried),
        limit_state=LimitState(
            rate_limit="limited" if limited else "unknown",
            retry_after_ms=failure.retry_after_ms,
            quota="blocked" if failure.failure_kind == "quota_exhausted" else "unknown",
        ),
    )
