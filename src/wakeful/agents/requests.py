"""Model requests of a turn: built from an append-only history, sent one at a time, each ending in facts."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from wakeful.agents.asking import Attempt
from wakeful.agents.watching import ModelGlimpsed
from wakeful.agents.work import TurnWork
from wakeful.contracts.conversation import AssistantItem, History, ToolItem, UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import ContinuationDecided, ModelRequested
from wakeful.contracts.models import ModelGlimpse
from wakeful.decisions.turn import AskModel
from wakeful.mediation.offloading import refers, resolve
from wakeful.ports import Model, ModelRequest


class Requests:
    """Asks the model, and the caller who holds the loop; never both at once."""

    def __init__(self, work: TurnWork, post: Callable[[list[Fact]], None]) -> None:
        self._work = work
        self._post = post
        self._history = History()
        self._seen = 0
        """How many of the turn's items are in the history."""
        self._task: asyncio.Task[None] | None = None
        self._giving_up = False
        self.arguments: dict[str, dict[str, Any] | None] = {}
        """Arguments of the newest reply, as they came: in the log, long ones stand behind references."""

    def intent(self, step: AskModel) -> tuple[Fact, Model, float]:
        """The fact of the request to come, its model, and the milliseconds to wait before sending it."""
        work = self._work
        model = work.models[step.candidate]
        wait = step.backoff
        wait_ms = int(wait.ms * work.jitter()) if wait.jitter else wait.ms
        event = ModelRequested(
            model_ref=model.ref,
            candidate=step.candidate,
            attempt=step.attempt,
            items=len(work.state.items) + len(work.state.notes),
            backoff_ms=wait_ms,
        )
        return work.fact(event, step.step), model, wait_ms

    def send(self, step: AskModel, model: Model, wait_ms: float) -> None:
        """Send it; its intent is on disk."""
        task = self._work.spawn(self._ask(step, model, wait_ms))
        task.add_done_callback(lambda task: self._over(task, step, model))
        self._task = task

    def give_up(self) -> None:
        """The turn is to end: nobody waits for the answer."""
        self._giving_up = True
        if self._task is not None:
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
        events, item = await attempt.outcome(list(work.state.attempts), work.call_ids)
        if item is not None:
            self.arguments = {call.call_id: call.arguments for call in item.calls}
        self._post([work.fact(event, step.step) for event in events])

    def _over(self, task: "asyncio.Task[None]", step: AskModel, model: Model) -> None:
        """A request that was given up is a lost attempt, also one whose task had not come to run yet."""
        if task.cancelled() and self._giving_up:
            given_up = self._attempt(step, model, 0.0).cancelled(self._work.clock.now())
            self._post([self._work.fact(given_up, step.step)])
        # Cancelled otherwise, the runner is going down: the intent stays open.

    def _attempt(self, step: AskModel, model: Model, built_ms: float) -> Attempt:
        work = self._work
        config = work.config
        return Attempt(
            model,
            ModelRequest(
                instructions=config.instructions,
                history=self._history,
                tools=config.tools,
                turn_id=work.row.turn_id,
                step=step.step,
                attempt=step.attempt,
                answered=work.state.answered,
                settings=config.settings,
                output_schema=config.output_schema,
                stream=work.stream,
            ),
            candidate=step.candidate,
            more_candidates=step.candidate + 1 < len(work.models),
            context_build_ms=built_ms,
            clock=work.clock,
            keep=work.store.put_blob,
            show=self._show(step) if work.watcher is not None else None,
        )

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
