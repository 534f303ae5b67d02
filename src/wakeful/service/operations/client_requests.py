"""What may be asked about requests to clients: the calls that run outside this process."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.service.operations.operation import OpenStore, Operation
from wakeful.service.operations.turns import TurnName, named_turn, turn_ahead

if TYPE_CHECKING:
    from wakeful.contracts.runtime_tools import RuntimeToolRequest
    from wakeful.service.commands.client_requests import RequestOutcome
    from wakeful.views.store_records import TurnContinuation


@dataclass(frozen=True, slots=True)
class RequestName:
    """A client's request by its id, or enough of its beginning."""

    request: str


@dataclass(frozen=True, slots=True)
class ClientResult:
    """What a client gave, or with `error` why it could not."""

    request: str
    result: Any = None
    error: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class RequestEnd:
    """A request that nobody will answer, or whose answer nobody wants."""

    request: str
    cancelled: bool = False
    by: str = ""


class RequestReceipt(NamedTuple):
    """What a client's request ended with, and its turn if it is unfinished."""

    ended: "RequestOutcome"
    ahead: "TurnContinuation | None"


async def _requests(opened: OpenStore, asked: TurnName) -> "list[RuntimeToolRequest]":
    from wakeful.service.commands.client_requests import pending_requests

    turn_id = (await named_turn(opened, asked.turn)).turn_id if asked.turn is not None else None
    return await pending_requests(opened.engine, turn_id)


async def _request(opened: OpenStore, asked: RequestName) -> "RuntimeToolRequest":
    from wakeful.service.commands.client_requests import show_request

    return await show_request(opened.engine, asked.request)


async def _submit(opened: OpenStore, asked: ClientResult) -> RequestReceipt:
    from wakeful.contracts.errors import InvalidValue
    from wakeful.service.commands.client_requests import submit_result

    if asked.error is not None and asked.result is not None:
        raise InvalidValue("invalid_result", "error", "there is a result beside it", "Give a result or an error.")
    ended = await submit_result(opened.engine, asked.request, asked.result, error=asked.error, by=asked.by)
    return RequestReceipt(ended, await turn_ahead(opened, ended.turn_id))


async def _end(opened: OpenStore, asked: RequestEnd) -> RequestReceipt:
    from wakeful.service.commands.client_requests import end_unanswered

    ended = await end_unanswered(opened.engine, asked.request, cancelled=asked.cancelled, by=asked.by)
    return RequestReceipt(ended, await turn_ahead(opened, ended.turn_id))


_REQUEST = "wakeful.contracts.runtime_tools.RuntimeToolRequest"
LIST_REQUESTS = Operation("requests.list", "observe", TurnName, _REQUEST, _requests, many=True)
SHOW_REQUEST = Operation("requests.show", "observe", RequestName, _REQUEST, _request)
SUBMIT_RESULT = Operation(
    "requests.submit", "operate", ClientResult, f"{__name__}.RequestReceipt", _submit, repeatable=True
)
END_REQUEST = Operation("requests.end", "operate", RequestEnd, f"{__name__}.RequestReceipt", _end, repeatable=True)
