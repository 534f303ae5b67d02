"""`stream`: watch a run while it happens.

    async with stream(agent, prompt) as s:
        async for event in s: ...          # `wakeful.events`: status, step, text, tool_call, output, tool_result ...
        result = await s.result()

Facts are shown after they are stored; text may be shown before, and an attempt that is lost says so. Leaving the block
early cancels the run, unless it was detached; an exception on the way out leaves the run unfinished, to be resumed.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, Generic, Self, overload

from typing_extensions import TypeVar, Unpack

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.content import Prompt
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import InvalidRequest
from wakeful.contracts.values import JsonValue
from wakeful.service import Agent, Engine, Glimpse, ModelGlimpsed, OutputGlimpsed, RunRequest
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.commands.turns import run_turn
from wakeful.service.entrance import arrivals
from wakeful.service.run_result import RunResult
from wakeful.surfaces.library.run_checks import StorePlace, check_prompt, check_store, settled
from wakeful.surfaces.library.run_options import RunOptions, request_of
from wakeful.surfaces.library.runs import run
from wakeful.views.partial_answer import PartialAnswer
from wakeful.views.run_stream_events import StreamEvent, TextEvent
from wakeful.views.tree_stream import TreeStream

Deps = TypeVar("Deps")
Out = TypeVar("Out")


class StreamedRun(Generic[Out]):
    """A run that is being watched. Made by `stream(...)`."""

    def __init__(self, request: RunRequest, store: StorePlace) -> None:
        self._request = request
        self._store = store
        self._events: asyncio.Queue[StreamEvent | None] = asyncio.Queue()
        self._view: TreeStream | None = None
        self._partial = PartialAnswer()
        self._early: list[StoredFact] = []
        self._task: asyncio.Task[RunResult[Any]] | None = None
        self._system: Engine | None = None
        self._detached = False
        self.turn_id: str | None = None
        """Known as soon as the run is safe in the store."""
        request.watcher = self
        request.on_turn = self._begun

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task = self._task
        assert task is not None
        if self._detached or task.done():
            return
        if kind is None and self._system is not None and self.turn_id is not None:
            await cancel_turn(self._system, self.turn_id)
            await asyncio.wait({task})
            return
        task.cancel()
        await asyncio.wait({task})

    async def _run(self) -> RunResult[Any]:
        try:
            await arrivals.enter()
            async with opened_store(self._store) as opened:
                self._system = new_engine(opened)
                result = await run_turn(self._system, self._request)
                if self._view is not None and not self._view.ended:
                    self.facts(result.facts())  # it was finished before: shown from the log
                return await settled(self._system, result, self._request, self._store)
        finally:
            self._events.put_nowait(None)

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[StreamEvent]:
        self._started()
        while (event := await self._events.get()) is not None:
            yield event
        self._events.put_nowait(None)  # whoever iterates again finds the end, too
        await asyncio.shield(self._started())  # what went wrong is the caller's to see

    async def text(self) -> AsyncIterator[str]:
        """Only the words of the run itself as they come, without those of subtasks."""
        async for event in self:
            if isinstance(event, TextEvent) and event.phase == "executor" and not event.path:
                yield event.text

    def partial(self) -> JsonValue:
        """The structured answer as far as it has come: JSON, not validated; None while there is none.

        Raises InvalidRequest where the agent's `output_type` is text.
        """
        if self._request.agent.output_schema is None:
            raise InvalidRequest(
                f"s.partial() of agent {self._request.agent.name!r}, whose answer is text",
                "read s.text(), or give the agent an output_type",
            )
        return self._partial.value

    async def partials(self) -> AsyncIterator[JsonValue]:
        """The structured answer each time that more of it has come: JSON, not validated. The last one is the whole."""
        self.partial()  # raises where there is none
        come, before = PartialAnswer(), None
        async for event in self:
            come.take(event)
            if come.value is not None and come.value != before:
                before = come.value
                yield before

    async def result(self) -> RunResult[Out]:
        """The result, once the run rests."""
        return await asyncio.shield(self._started())

    def _started(self) -> "asyncio.Task[RunResult[Any]]":
        if self._task is None:  # nothing would ever come
            raise InvalidRequest(
                "stream() has not been started", "write `async with stream(...) as s:`, then `async for event in s:`"
            )
        return self._task

    def detach(self) -> None:
        """Let the run go on after the block is left."""
        self._detached = True

    async def cancel(self) -> None:
        """Ask the run to stop: it ends as cancelled, with every call accounted for."""
        if self._system is not None and self.turn_id is not None:
            await cancel_turn(self._system, self.turn_id)

    # --- the watcher -------------------------------------------------------------------------------------------------

    def _begun(self, turn_id: str, agent_id: str) -> None:
        self.turn_id = turn_id
        self._view = TreeStream(turn_id)

    def facts(self, recorded: Sequence[StoredFact]) -> None:
        if self._view is not None:
            for entry in recorded:
                self._show(self._view.feed(entry))

    def glimpse(self, seen: Glimpse) -> None:
        if self._view is None:
            return
        if isinstance(seen, ModelGlimpsed):
            self._show(self._view.glimpse(seen.step, seen.piece, seen.level))
        elif isinstance(seen, OutputGlimpsed):
            self._show(self._view.output(seen.step, seen.call_id, seen.tool_name, seen.text, seen.level))

    def _show(self, events: Sequence[StreamEvent]) -> None:
        for event in events:
            self._partial.take(event)
            self._events.put_nowait(event)


@overload
def stream(
    agent: Agent[None, Out], prompt: Prompt, *, deps: None = None, **options: Unpack[RunOptions]
) -> StreamedRun[Out]: ...
@overload
def stream(
    agent: Agent[Deps, Out], prompt: Prompt, *, deps: Deps, **options: Unpack[RunOptions]
) -> StreamedRun[Out]: ...
def stream(agent: Agent[Any, Any], prompt: Prompt, *, store: StorePlace = None, **options: Any) -> StreamedRun[Any]:
    """Run an agent and watch it. Takes what `run` takes."""
    request = request_of(agent, prompt, **options)
    check_prompt(prompt)
    check_store(request.agent, store, key=request.key, thread=request.thread, approver=request.approver)
    return StreamedRun(request, store)


stream.__signature__ = inspect.signature(run).replace(  # type: ignore[attr-defined]  # it takes what `run` takes
    return_annotation=StreamedRun
)
