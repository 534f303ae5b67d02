"""The life of a call that somebody outside answers: asked, then answered, timed out or cancelled, exactly once.

The store decides who ends a request (compare and set); the winner alone tells the hooks and continues the run. Whoever
comes later, or repeats, gets `duplicate: true` with what the winner stored. Storage, queues and the scheduling of
continuations are the host's.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.runtime_tools import (
    COMPLETED,
    INVALID_CONTINUATION,
    INVALID_STORE,
    NOT_FOUND,
    TIMEOUT,
    RuntimeToolRequest,
    RuntimeToolResult,
    timed_out,
)
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.transcript import tool_result
from wakeful.decisions.redaction import call_envelope
from wakeful.ports.client_requests import RequestEnding, RuntimeToolContinuation, RuntimeToolRequestStore
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks

Continuation: TypeAlias = (
    RuntimeToolContinuation | Callable[[RuntimeToolRequest, RuntimeToolResult, dict[str, Any]], Any]
)
Record: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Writes an entry of the log: its name, and its envelopes."""
ENDING = ("get", "complete", "timeout")


class RuntimeToolLifecycle:
    """Operations on requests, over any store. `record` writes each step into a log, before anybody is told."""

    def __init__(self, hooks: HookRegistry = default_hooks, *, record: Record | None = None) -> None:
        self._hooks = hooks
        self._record = record

    async def create_pending_request(
        self,
        store: RuntimeToolRequestStore,
        request: RuntimeToolRequest | Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
    ) -> RuntimeToolRequest:
        """Keep a request; one that is kept already is returned as it is, ended or not, and nobody is told again.

        Raises InvalidValue for a request that is not fit, and whatever the store raises.
        """
        pending = RuntimeToolRequest.normalise(request)
        if not pending.is_pending:
            raise InvalidValue(
                "invalid_runtime_tool_request", "status", f"a new request is pending, not {pending.status}"
            )
        kept = await _done(store.get(pending.request_id))
        if kept is not None:
            return RuntimeToolRequest.normalise(kept)
        await _done(store.create(pending))
        await self._told("runtime_tool_request_created", {"request": pending.model_dump(mode="json")}, context)
        return pending

    async def submit_result(
        self,
        store: RuntimeToolRequestStore,
        result: RuntimeToolResult | Mapping[str, Any],
        continuation: Continuation | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        declaration: ToolDeclaration | None = None,
    ) -> dict[str, Any]:
        """Answer a request. Raises InvalidValue for an answer that does not fit it; nothing is written then."""
        _check_store(store)
        resume = _resumer(continuation)
        named = result.request_id if isinstance(result, RuntimeToolResult) else _named(result)
        stored = await self._known(store, named)
        answer = RuntimeToolResult.normalise(result, stored)
        settled = _settled(await _done(store.complete(stored.request_id, answer)), stored.request_id)
        return await self._ended("runtime_tool_result_submitted", settled, resume, context, declaration)

    async def timeout_request(
        self,
        store: RuntimeToolRequestStore,
        request_id: str,
        continuation: Continuation | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        declaration: ToolDeclaration | None = None,
    ) -> dict[str, Any]:
        """End a request that nobody answered: its call has failed."""
        return await self._unanswered(store, request_id, continuation, context, declaration, cancelled=False)

    async def cancel_request(
        self,
        store: RuntimeToolRequestStore,
        request_id: str,
        continuation: Continuation | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        declaration: ToolDeclaration | None = None,
    ) -> dict[str, Any]:
        """End a request that nobody is to answer any more: the same end, and `cancelled` in the answer."""
        return await self._unanswered(store, request_id, continuation, context, declaration, cancelled=True)

    async def recent_pending_requests(
        self, store: RuntimeToolRequestStore, query: Mapping[str, Any] | None = None
    ) -> list[RuntimeToolRequest]:
        """Pending requests, for clients that poll and for scans. Keys: run_id, tool_name, before, limit."""
        found = await _done(store.recent_pending(dict(query or {})))
        requests = [RuntimeToolRequest.normalise(request) for request in found]
        return [request for request in requests if request.is_pending]

    # --- inside -----------------------------------------------------------------------------------------------------

    async def _unanswered(
        self,
        store: RuntimeToolRequestStore,
        request_id: str,
        continuation: Continuation | None,
        context: Mapping[str, Any] | None,
        declaration: ToolDeclaration | None,
        *,
        cancelled: bool,
    ) -> dict[str, Any]:
        _check_store(store)
        resume = _resumer(continuation)
        stored = await self._known(store, request_id)
        failed = timed_out(stored, cancelled=cancelled)
        settled = _settled(await _done(store.timeout(stored.request_id, failed)), stored.request_id)
        return await self._ended("runtime_tool_request_timed_out", settled, resume, context, declaration)

    async def _known(self, store: RuntimeToolRequestStore, request_id: str) -> RuntimeToolRequest:
        found = await _done(store.get(request_id)) if request_id else None
        if found is None:
            raise InvalidValue(NOT_FOUND, "request_id", f"there is no request {request_id!r}")
        return RuntimeToolRequest.normalise(found)

    async def _ended(
        self,
        hook: str,
        settled: RequestEnding,
        resume: Callable[..., Any] | None,
        context: Mapping[str, Any] | None,
        declaration: ToolDeclaration | None,
    ) -> dict[str, Any]:
        request = RuntimeToolRequest.normalise(settled.request)
        result = settled.result if settled.result is not None else timed_out(request)
        envelopes = {
            "request": request.model_dump(mode="json"),
            "result": result.model_dump(mode="json", exclude_none=True),
        }
        resumed: dict[str, Any] | None = None
        if settled.won:
            await self._told(hook, envelopes, context)
            if resume is not None:
                resumed = await _resumed(resume, request, result, dict(context or {}))
                await self._told("runtime_tool_request_resumed", {**envelopes, "resume_result": resumed}, context)
        return {
            "status": request.status,
            **envelopes,
            "duplicate": not settled.won,
            **({"cancelled": True} if result.metadata.get("cancelled") is True and request.status == TIMEOUT else {}),
            "tool_result_message": _message(request, result),
            "tool_execution_result": _execution(request, result, declaration),
            "continuation_result": resumed,
        }

    async def _told(self, hook: str, envelopes: dict[str, Any], context: Mapping[str, Any] | None) -> None:
        if self._record is not None:
            await self._record(hook, envelopes)
        await self._hooks.observe(hook, *envelopes.values(), dict(context or {}))


def _check_store(store: Any) -> None:
    """A store that cannot say who was first would let two answers win."""
    missing = [name for name in ENDING if not callable(getattr(store, name, None))]
    if getattr(store, "compare_and_set", False) is not True or missing:
        what = f"it has no {missing[0]}()" if missing else "it does not say compare_and_set = True"
        raise InvalidValue(INVALID_STORE, "", f"a {type(store).__name__} cannot end requests exactly once: {what}")


def _settled(answer: Any, request_id: str) -> RequestEnding:
    if answer is None:
        raise InvalidValue(NOT_FOUND, "request_id", f"there is no request {request_id!r}")
    if not isinstance(answer, RequestEnding) or answer.request.status not in (COMPLETED, TIMEOUT):
        raise InvalidValue(INVALID_STORE, "", f"the store answered {type(answer).__name__} instead of an ended request")
    return answer


def _named(result: Any) -> str:
    """The request that an answer from outside names."""
    if not isinstance(result, Mapping):
        raise InvalidValue("invalid_runtime_tool_result", "", f"expected an object, not a {type(result).__name__}")
    named = result.get("request_id")
    return named if isinstance(named, str) else ""


def _resumer(continuation: Any) -> Callable[..., Any] | None:
    """How to continue; checked before anything is written."""
    if continuation is None:
        return None
    resume: Any = getattr(continuation, "resume", continuation)
    if not callable(resume):
        raise InvalidValue(
            INVALID_CONTINUATION, "", f"a {type(continuation).__name__} has no resume() and cannot be called"
        )
    found: Callable[..., Any] = resume
    return found


async def _resumed(
    resume: Callable[..., Any], request: RuntimeToolRequest, result: RuntimeToolResult, context: dict[str, Any]
) -> dict[str, Any]:
    answer = await _done(resume(request, result, context))
    if not isinstance(answer, Mapping):
        raise InvalidValue(INVALID_CONTINUATION, "", f"resume() returned a {type(answer).__name__}, not an object")
    return dict(answer)


def _message(request: RuntimeToolRequest, result: RuntimeToolResult) -> dict[str, Any]:
    words = json.dumps(result.result, ensure_ascii=False) if result.success else str(result.error)
    made = tool_result(
        request.tool_name, result.to_tool_result(request.runtime), tool_call_id=request.tool_call_id, content=words
    )
    return made.to_wire()


def _execution(
    request: RuntimeToolRequest, result: RuntimeToolResult, declaration: ToolDeclaration | None
) -> dict[str, Any]:
    turn = request.metadata.get("turn_count")
    entry = {
        "tool_name": request.tool_name,
        "tool_call_id": request.tool_call_id,
        **call_envelope(request.parameters, declaration),
        "result": result.to_tool_result(request.runtime),
        "turn_count": turn if isinstance(turn, int) and not isinstance(turn, bool) else 0,
    }
    return {**entry, "runtime": dict(request.runtime)} if request.runtime else entry


async def _done(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer
