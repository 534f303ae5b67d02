"""Turns that failed: which there are, and trying one again."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation, check_no_tool
from wakeful.service.operations.turns import PAGE, TurnName, named_turn, turn_ahead

if TYPE_CHECKING:
    from wakeful.contracts.budgets import Budget
    from wakeful.views.store_records import FailedTurnRecord, ReplacementMessage, SteeredTurn


@dataclass(frozen=True, slots=True)
class TurnRetry:
    """A turn that is to be tried again, and what it may use in all from now on."""

    turn: str
    by: str = ""
    usd: str | None = None
    """The most dollars in all, those so far included; the same for the other limits."""
    tokens: int | None = None
    """The most tokens in all."""
    model_calls: int | None = None
    """The most requests to models in all."""
    tool_calls: int | None = None
    """The most calls of tools in all."""
    seconds: float | None = None
    """The most seconds of work in all."""
    subtasks: int | None = None
    """The most subtasks in all."""
    max_steps: int | None = None
    """The most rounds in all."""


@dataclass(frozen=True, slots=True)
class FailureQuery:
    """Which failed turns; None: any."""

    agent: str | None = None
    since: int | None = None
    cause: str | None = None
    """The kind of a provider's failure, or the stop reason of the turn."""
    limit: int = PAGE


async def _retry(opened: OpenStore, asked: TurnRetry) -> "SteeredTurn":
    from wakeful.service.commands.turn_retries import retry_turn
    from wakeful.service.queries.history import turn_record
    from wakeful.views.store_records import SteeredTurn

    check_no_tool("a turn that failed")
    row = await named_turn(opened, asked.turn)
    budget, max_steps = budget_in(asked), asked.max_steps
    if opened.living is not None:
        now = await opened.living.retry(row, by=asked.by, budget=budget, max_steps=max_steps)
    else:
        now = await retry_turn(opened.engine, row.turn_id, requested_by=asked.by, budget=budget, max_steps=max_steps)
    ahead = await turn_ahead(opened, row.turn_id)
    return SteeredTurn(**dict(turn_record(now)), accepted=True, before=row.state, ahead=ahead)


def budget_in(asked: TurnRetry) -> "Budget | None":
    """What a request says of limits; None: nothing. Raises InvalidBudget."""
    from wakeful.contracts.budgets import Budget

    names = ("usd", "tokens", "model_calls", "tool_calls", "seconds", "subtasks")
    given = {name: value for name in names if (value := getattr(asked, name)) is not None}
    return Budget(**given) if given else None


async def _failed(opened: OpenStore, asked: FailureQuery) -> "list[FailedTurnRecord]":
    from wakeful.service.queries.failed_turns import failed_turns

    return await failed_turns(opened.store, asked.agent, asked.since, asked.cause, asked.limit)


async def _replacement(opened: OpenStore, asked: TurnName) -> "ReplacementMessage":
    from wakeful.service.commands.turn_retries import failed_turn, message_in_place
    from wakeful.views.store_records import ReplacementMessage

    row = await named_turn(opened, asked.turn)
    return ReplacementMessage(turn_id=row.turn_id, text=message_in_place(await failed_turn(opened.store, row.turn_id)))


_RECORDS = "wakeful.views.store_records"
RETRY = Operation("turns.retry", "operate", TurnRetry, f"{_RECORDS}.SteeredTurn", _retry)
LIST_FAILED = Operation("turns.failed", "observe", FailureQuery, f"{_RECORDS}.FailedTurnRecord", _failed, many=True)
SHOW_REPLACEMENT = Operation("turns.replacement", "observe", TurnName, f"{_RECORDS}.ReplacementMessage", _replacement)
