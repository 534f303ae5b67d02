"""A client's request and its answer as readers see them: views of `runtime_tool.requested` and `runtime_tool.resolved`.

Pure. The parameters are the real ones: a client has to run the call with them.
"""

from collections.abc import Collection
from typing import Any, Protocol

from wakeful.contracts.envelope import iso
from wakeful.contracts.events import RuntimeToolRequested, RuntimeToolResolved
from wakeful.contracts.runtime_tools import PENDING, RequestStatus, RuntimeToolRequest, RuntimeToolResult, timed_out
from wakeful.contracts.values import Value
from wakeful.decisions.injected_fields import split
from wakeful.views.store_records import TurnContinuation


class EndedRequest(Value):
    """What a request to a client ended with."""

    request_id: str
    tool: str
    call_id: str
    turn_id: str
    status: RequestStatus
    success: bool
    result: dict[str, Any] | None = None
    error: str | None = None
    cancelled: bool = False
    ahead: TurnContinuation | None = None
    """Its turn, where that is unfinished and somebody has to take it up."""


class RequestTurn(Protocol):
    """Whose call it is."""

    @property
    def turn_id(self) -> str: ...

    @property
    def agent_name(self) -> str: ...

    @property
    def thread_id(self) -> str: ...


def request_view(
    turn: RequestTurn,
    step: int,
    call_id: str,
    asked: RuntimeToolRequested,
    written: dict[str, Any],
    injected: Collection[str],
    status: RequestStatus = PENDING,
) -> RuntimeToolRequest:
    """The request. `written` is what the model wrote, `injected` the fields among it that no tool gets."""
    sent = asked.arguments if asked.arguments is not None else split(written, frozenset(injected)).executable
    metadata = dict(asked.metadata)
    run_id = metadata.pop("run_id", "") or turn.turn_id
    return RuntimeToolRequest(
        status=status,
        request_id=asked.request_id,
        tool_name=asked.tool_name,
        tool_call_id=call_id,
        parameters=sent,
        run_id=run_id,
        timeout_at=iso(asked.timeout_at),
        runtime=asked.runtime,
        metadata={**metadata, "turn_count": step, "agent": turn.agent_name, "thread": turn.thread_id},
    )


def result_view(request: RuntimeToolRequest, said: RuntimeToolResolved, value: Any) -> RuntimeToolResult:
    """The answer. `value` is what the client gave, wherever it is kept."""
    if said.status == "runtime_tool_timeout":
        end = timed_out(request, cancelled=said.cancelled)
        return end.model_copy(update={"error": said.error}) if said.error else end
    given = {"result": value} if said.success else {"error": said.error}
    return RuntimeToolResult.normalise({"success": said.success, "metadata": said.metadata, **given}, request)


def ended_request(request: RuntimeToolRequest, result: RuntimeToolResult) -> EndedRequest:
    return EndedRequest(
        request_id=request.request_id,
        tool=request.tool_name,
        call_id=request.tool_call_id,
        turn_id=request.run_id,
        status=request.status,
        success=result.success,
        result=result.result,
        error=result.error,
        cancelled=bool(result.metadata.get("cancelled")),
    )
