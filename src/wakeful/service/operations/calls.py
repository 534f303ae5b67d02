"""What may be asked about tool calls: why the gate decided as it did, and which outcomes are unknown."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from wakeful.service.operations.operation import OPERATOR, NoRequest, OpenStore, Operation, check_no_tool
from wakeful.service.operations.turns import TurnAhead, turn_ahead

if TYPE_CHECKING:
    from wakeful.ports import UnknownRow
    from wakeful.views.explanation import CallExplanation


@dataclass(frozen=True, slots=True)
class CallName:
    """A call by its id, or `TURN/CALL`."""

    call: str


@dataclass(frozen=True, slots=True)
class OutcomeOfCall:
    """What somebody found out about a call."""

    call: str
    happened: bool
    result: str = ""
    by: str = OPERATOR


class CallResolution(NamedTuple):
    """A call whose outcome is known now, and its turn if it is unfinished."""

    row: "UnknownRow"
    ahead: TurnAhead | None


async def _why(opened: OpenStore, asked: CallName) -> "CallExplanation":
    from wakeful.service.queries.explanation import why_call

    return await why_call(opened.store, asked.call)


async def _unknown(opened: OpenStore, asked: NoRequest) -> "list[UnknownRow]":
    return await opened.store.unknown()


async def _resolve(opened: OpenStore, asked: OutcomeOfCall) -> CallResolution:
    from wakeful.service.commands.outcome_resolution import resolve_unknown

    check_no_tool(asked.call)
    row = await resolve_unknown(opened.engine, asked.call, happened=asked.happened, result=asked.result, by=asked.by)
    return CallResolution(row, await turn_ahead(opened, row.turn_id))


_UNKNOWN = "wakeful.ports.UnknownRow"
EXPLAIN = Operation("calls.explain", "observe", CallName, "wakeful.views.explanation.CallExplanation", _why)
LIST_UNKNOWN = Operation("calls.unknown", "observe", NoRequest, _UNKNOWN, _unknown, many=True)
RESOLVE = Operation("calls.resolve", "operate", OutcomeOfCall, f"{__name__}.CallResolution", _resolve, repeatable=True)
