"""What may be asked about tool calls: why the gate decided as it did, and which outcomes are unknown."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import NoRequest, OpenStore, Operation, check_no_tool
from wakeful.service.operations.turns import turn_ahead

if TYPE_CHECKING:
    from wakeful.views.explanation import CallExplanation
    from wakeful.views.store_records import ResolvedCall, UnknownCall


@dataclass(frozen=True, slots=True)
class CallName:
    """A call by its id, or `TURN/CALL`."""

    call: str


@dataclass(frozen=True, slots=True)
class OutcomeOfCall:
    """What somebody found out about a call."""

    call: str
    happened: bool
    """Did the call have its effect?"""
    result: str = ""
    """What it came to, where it happened: the model is told."""
    by: str = ""


async def _why(opened: OpenStore, asked: CallName) -> "CallExplanation":
    from wakeful.service.queries.explanation import why_call

    return await why_call(opened.store, asked.call)


async def _unknown(opened: OpenStore, asked: NoRequest) -> "list[UnknownCall]":
    from wakeful.service.queries.history import unknown_calls

    return await unknown_calls(opened.store)


async def _resolve(opened: OpenStore, asked: OutcomeOfCall) -> "ResolvedCall":
    from wakeful.service.commands.outcome_resolution import resolve_unknown
    from wakeful.service.queries.history import unknown_record
    from wakeful.views.store_records import ResolvedCall

    check_no_tool(asked.call)
    row = await resolve_unknown(opened.engine, asked.call, happened=asked.happened, result=asked.result, by=asked.by)
    return ResolvedCall(**dict(unknown_record(row)), ahead=await turn_ahead(opened, row.turn_id))


_RECORDS = "wakeful.views.store_records"
EXPLAIN = Operation("calls.explain", "observe", CallName, "wakeful.views.explanation.CallExplanation", _why)
LIST_UNKNOWN = Operation("calls.unknown", "observe", NoRequest, f"{_RECORDS}.UnknownCall", _unknown, many=True)
RESOLVE = Operation("calls.resolve", "operate", OutcomeOfCall, f"{_RECORDS}.ResolvedCall", _resolve, repeatable=True)
