"""What clients are asked to run: listed, shown, answered, timed out, cancelled, by anybody on the same store.

One lifecycle (`service.client_tools.lifecycle`) over wakeful's own store. Answering needs none of the tool's code; the
turn goes on when somebody takes it up again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from shlex import quote
from typing import Any

from wakeful.contracts.approvals import RUNTIME
from wakeful.contracts.envelope import StoredFact, iso
from wakeful.contracts.errors import RequestNotFound
from wakeful.contracts.events import RuntimeToolRequested, RuntimeToolResolved
from wakeful.contracts.runtime_tools import PENDING, RuntimeToolRequest, RuntimeToolResult
from wakeful.engine.run_request import Engine
from wakeful.service.client_tools.lifecycle import Continuation, RuntimeToolLifecycle
from wakeful.service.client_tools.store import CLIENT, KIND, OwnRequestStore
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks
from wakeful.service.queries.record_names import begin_with, several
from wakeful.views.client_requests import result_view

CREATED, TIMED_OUT = "runtime_tool_request_created", "runtime_tool_request_timed_out"
SCANNER = "timeout_scan"
"""Who ends what nobody answered, for the log, when no turn was at it."""


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What became of an attempt to end a request."""

    request: RuntimeToolRequest
    """As it is now."""
    result: RuntimeToolResult
    """What it ended with."""
    duplicate: bool = False
    """It had ended before; this is what it ended with then."""
    envelope: Mapping[str, Any] | None = None
    """All of it, ready for a transcript and a loop."""

    @property
    def turn_id(self) -> str:
        return self.request.run_id


async def pending_requests(engine: Engine, turn_id: str | None = None) -> list[RuntimeToolRequest]:
    """What waits for a client, oldest first. What is past its time is ended on the way."""
    await time_out_late_requests(engine)
    query = {} if turn_id is None else {"run_id": turn_id}
    return (await OwnRequestStore(engine).recent_pending(query))[::-1]


async def show_request(engine: Engine, request_id: str) -> RuntimeToolRequest:
    """One request, by its id or by enough of its beginning. Raises RequestNotFound, with near names."""
    await time_out_late_requests(engine)
    request = await OwnRequestStore(engine).get(await _found(engine, request_id))
    assert request is not None
    return request


async def submit_result(
    engine: Engine,
    request_id: str,
    result: Any = None,
    *,
    error: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    by: str = CLIENT,
    continuation: Continuation | None = None,
    hooks: HookRegistry = default_hooks,
) -> RequestOutcome:
    """The client's answer: what it gave, or with `error` why it could not. Raises RequestNotFound or InvalidValue."""
    await time_out_late_requests(engine, hooks=hooks)
    answer: dict[str, Any] = {"request_id": await _found(engine, request_id), "metadata": dict(metadata or {})}
    answer.update({"success": False, "error": error} if error is not None else {"result": result})
    store = OwnRequestStore(engine, by=by)
    return _ended(await _lifecycle(store, hooks).submit_result(store, answer, continuation))


async def end_unanswered(
    engine: Engine,
    request_id: str,
    *,
    cancelled: bool = False,
    by: str = CLIENT,
    continuation: Continuation | None = None,
    hooks: HookRegistry = default_hooks,
) -> RequestOutcome:
    """Nobody will answer, or nobody wants the answer any more: the call fails. Raises RequestNotFound."""
    found = await _found(engine, request_id)
    store = OwnRequestStore(engine, by=by)
    lifecycle = _lifecycle(store, hooks)
    end = lifecycle.cancel_request if cancelled else lifecycle.timeout_request
    return _ended(await end(store, found, continuation))


async def time_out_late_requests(engine: Engine, *, hooks: HookRegistry = default_hooks) -> list[RequestOutcome]:
    """End every request that is past its time, whenever and by whomever it was asked."""
    store = OwnRequestStore(engine, by=SCANNER)
    lifecycle = _lifecycle(store, hooks)
    late = await lifecycle.recent_pending_requests(store, {"before": iso(engine.clock.now())})
    ended = [_ended(await lifecycle.timeout_request(store, request.request_id)) for request in late[::-1]]
    return [each for each in ended if not each.duplicate]


async def announce(engine: Engine, facts: Sequence[StoredFact], hooks: HookRegistry = default_hooks) -> None:
    """Tell the hooks what a turn asked of clients and what ran out of time while it ran. It is in the log already."""
    for entry in facts:
        event = entry.fact.event
        if isinstance(event, RuntimeToolRequested) and hooks.has(CREATED):
            request = await OwnRequestStore(engine).get(event.request_id)
            assert request is not None
            await hooks.observe(CREATED, request.settled(PENDING).model_dump(mode="json"), {})
        elif isinstance(event, RuntimeToolResolved) and event.submitted_by == RUNTIME and hooks.has(TIMED_OUT):
            request = await OwnRequestStore(engine).get(event.request_id)
            assert request is not None
            result = result_view(request, event, None).model_dump(mode="json", exclude_none=True)
            await hooks.observe(TIMED_OUT, request.model_dump(mode="json"), result, {})


def _lifecycle(store: OwnRequestStore, hooks: HookRegistry) -> RuntimeToolLifecycle:
    hooks.load()
    return RuntimeToolLifecycle(hooks, record=store.record)


def _ended(envelope: dict[str, Any]) -> RequestOutcome:
    return RequestOutcome(
        RuntimeToolRequest.normalise(envelope["request"]),
        RuntimeToolResult.normalise(envelope["result"]),
        bool(envelope["duplicate"]),
        envelope,
    )


async def _found(engine: Engine, request_id: str) -> str:
    store = engine.store
    row = await store.action(request_id) if request_id else None
    if row is not None and row.kind == KIND:
        return request_id
    names = [row.action_id for row in await store.actions() if row.kind == KIND]
    fitting = begin_with(request_id, names, "runtime-tool-")
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise RequestNotFound(*several(request_id, "requests", fitting))
    near = get_close_matches(request_id, names, n=3, cutoff=0.5)
    listing = f"List pending requests: wakeful requests --store {quote(store.location)}"
    hint = f"Did you mean {' or '.join(near)}?" if near else listing
    raise RequestNotFound(f"there is no request {request_id!r} in {store.location}", hint)
