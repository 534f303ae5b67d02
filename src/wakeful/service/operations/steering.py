"""What may be asked of a turn that is under way: to stop, to pause, to hear something."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation
from wakeful.service.operations.turns import named_turn, turn_ahead

if TYPE_CHECKING:
    from wakeful.ports import TurnRow
    from wakeful.views.store_records import MessageReceipt, SteeredTurn, TurnContinuation


@dataclass(frozen=True, slots=True)
class TurnControl:
    """A turn that is to stop, to rest or to continue, and who wants it."""

    turn: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class MessageToTurn:
    """Something to say to a turn that is under way."""

    turn: str
    text: str
    said_by: str = ""


async def _cancel(opened: OpenStore, asked: TurnControl) -> "SteeredTurn":
    from wakeful.service.commands.interruption import cancel_turn

    row = await named_turn(opened, asked.turn)
    if not await cancel_turn(opened.engine, row.turn_id, requested_by=asked.by):
        return _steered(row, row, None, accepted=False)
    now = await named_turn(opened, row.turn_id)
    held = not now.is_open or await opened.store.is_held(row.agent_id, row.thread_id)
    return _steered(row, now, None if held else await turn_ahead(opened, row.turn_id), accepted=True)


async def _pause(opened: OpenStore, asked: TurnControl) -> "SteeredTurn":
    from wakeful.service.commands.steering import pause_turn

    row = await named_turn(opened, asked.turn)
    accepted = await pause_turn(opened.engine, row.turn_id, requested_by=asked.by)
    return _steered(row, row, await turn_ahead(opened, row.turn_id) if row.is_open else None, accepted=accepted)


async def _unpause(opened: OpenStore, asked: TurnControl) -> "SteeredTurn":
    from wakeful.service.commands.steering import unpause_turn

    row = await named_turn(opened, asked.turn)
    accepted = await unpause_turn(opened.engine, row.turn_id, requested_by=asked.by)
    return _steered(row, row, await turn_ahead(opened, row.turn_id) if row.is_open else None, accepted=accepted)


def _steered(before: "TurnRow", now: "TurnRow", ahead: "TurnContinuation | None", *, accepted: bool) -> "SteeredTurn":
    from wakeful.service.queries.history import turn_record
    from wakeful.views.store_records import SteeredTurn

    return SteeredTurn(**dict(turn_record(now)), accepted=accepted, before=before.state, ahead=ahead)


async def _interject(opened: OpenStore, asked: MessageToTurn) -> "MessageReceipt":
    from wakeful.service.commands.steering import interject
    from wakeful.views.store_records import MessageReceipt

    row = await named_turn(opened, asked.turn)
    said = await interject(opened.engine, row.turn_id, asked.text, said_by=asked.said_by)
    return MessageReceipt(turn_id=row.turn_id, message_id=said)


_RECORDS = "wakeful.views.store_records"
CANCEL = Operation("turns.cancel", "operate", TurnControl, f"{_RECORDS}.SteeredTurn", _cancel, repeatable=True)
PAUSE = Operation("turns.pause", "operate", TurnControl, f"{_RECORDS}.SteeredTurn", _pause, repeatable=True)
UNPAUSE = Operation("turns.unpause", "operate", TurnControl, f"{_RECORDS}.SteeredTurn", _unpause, repeatable=True)
INTERJECT = Operation("turns.interject", "operate", MessageToTurn, f"{_RECORDS}.MessageReceipt", _interject)
