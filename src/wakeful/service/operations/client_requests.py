"""What may be asked about requests to clients: the calls that run outside this process."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wakeful.service.operations.operation import OpenStore, Operation
from wakeful.service.operations.turns import TurnName, named_turn, turn_ahead

if TYPE_CHECKING:
    from wakeful.contracts.runtime_tools import RuntimeToolRequest
    from wakeful.service.commands.client_requests import RequestOutcome
    from wakeful.views.client_requests import EndedRequest


@dataclass(frozen=True, slots=True)
class RequestName:
    """A client's request by its id, or enough of its beginning."""

    request: str


@dataclass(frozen=True, slots=True)
class ClientResult:
    """What a client gave, or with `error` why it could not."""

    request: str
    result: Any = None
    """What the call came to."""
    error: str | None = None
    """Why the client could not run it; then there is no result."""
    by: str = ""


@dataclass(frozen=True, slots=True)
class RequestEnd:
    """A request that nobody will answer, or whose answer nobody wants."""

    request: str
    cancelled: bool = False
    by: str = ""


async def _requests(opened: OpenStore, asked: TurnName) -> "list[RuntimeToolRequest]":
    from wakeful.service.commands.client_requests import pending_requests

    turn_id = (await named_turn(opened, asked.turn)).turn_id if asked.turn is not None else None
    return await pending_requests(opened.engine, turn_id)


async def _request(opened: OpenStore, asked: RequestName) -> "RuntimeToolRequest":
    from wakeful.service.commands.client_requests import show_request

    return await show_request(opened.engine, asked.request)


async def _submit(opened: OpenStore, asked: ClientResult) -> "EndedRequest":
    from wakeful.contracts.errors import InvalidValue
    from wakeful.service.commands.client_requests import submit_result

    if asked.error is not None and asked.result is not None:
        raise InvalidValue("invalid_result", "error", "there is a result beside it", "Give a result or an error.")
    ended = await submit_result(opened.engine, asked.request, asked.result, error=asked.error, by=asked.by)
    return await _ended(opened, ended)


async def _end(opened: OpenStore, asked: RequestEnd) -> "EndedRequest":
    from wakeful.service.commands.client_requests import end_unanswered

    ended = await end_unanswered(opened.engine, asked.request, cancelled=asked.cancelled, by=asked.by)
    return await _ended(opened, ended)


async def _ended(opened: OpenStore, outcome: "RequestOutcome") -> "EndedRequest":
    """Raises AlreadyDecided, with what it ended with, for a request that had ended before."""
    from wakeful.contracts.errors import AlreadyDecided
    from wakeful.views.client_requests import ended_request

    ended = ended_request(outcome.request, outcome.result)
    if outcome.duplicate:
        refused = AlreadyDecided(ended.request_id, ended.status.removeprefix("runtime_tool_"), None)
        refused.ended_with = ended.model_dump(mode="json", exclude_none=True)
        raise refused
    return ended.model_copy(update={"ahead": await turn_ahead(opened, outcome.turn_id)})


_REQUEST = "wakeful.contracts.runtime_tools.RuntimeToolRequest"
LIST_REQUESTS = Operation("requests.list", "observe", TurnName, _REQUEST, _requests, many=True)
SHOW_REQUEST = Operation("requests.show", "observe", RequestName, _REQUEST, _request)
_ENDED = "wakeful.views.client_requests.EndedRequest"
SUBMIT_RESULT = Operation("requests.submit", "operate", ClientResult, _ENDED, _submit, repeatable=True)
END_REQUEST = Operation("requests.end", "operate", RequestEnd, _ENDED, _end, repeatable=True)
