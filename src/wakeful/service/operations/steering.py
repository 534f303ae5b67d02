"""What may be asked of a turn that is under way: to stop, to pause, to hear something."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from wakeful.service.operations.operation import OPERATOR, OpenStore, Operation
from wakeful.service.operations.turns import TurnAhead, named_turn, turn_ahead

if TYPE_CHECKING:
    from wakeful.ports import TurnRow


@dataclass(frozen=True, slots=True)
class TurnControl:
    """A turn that is to stop, to rest or to continue, and who wants it."""

    turn: str | None = None
    by: str = OPERATOR


@dataclass(frozen=True, slots=True)
class MessageToTurn:
    """Something to say to a turn that is under way."""

    turn: str
    text: str
    said_by: str = OPERATOR


class Cancellation(NamedTuple):
    """What became of asking a turn to stop."""

    before: "TurnRow"
    accepted: bool
    """False: it was over already."""
    now: "TurnRow"
    ahead: TurnAhead | None
    """There when no process runs it: somebody has to take it up so that it ends."""


class Pause(NamedTuple):
    """What became of asking a turn to rest."""

    row: "TurnRow"
    accepted: bool
    ahead: TurnAhead | None


class MessageReceipt(NamedTuple):
    """A message that is safe."""

    turn_id: str
    message_id: str


async def _cancel(opened: OpenStore, asked: TurnControl) -> Cancellation:
    from wakeful.service.commands.interruption import cancel_turn

    row = await named_turn(opened, asked.turn)
    if not await cancel_turn(opened.engine, row.turn_id, requested_by=asked.by):
        return Cancellation(row, False, row, None)
    now = await named_turn(opened, row.turn_id)
    held = not now.is_open or await opened.store.is_held(row.agent_id, row.thread_id)
    return Cancellation(row, True, now, None if held else await turn_ahead(opened, row.turn_id))


async def _pause(opened: OpenStore, asked: TurnControl) -> Pause:
    from wakeful.service.commands.steering import pause_turn

    row = await named_turn(opened, asked.turn)
    accepted = await pause_turn(opened.engine, row.turn_id, requested_by=asked.by)
    return Pause(row, accepted, await turn_ahead(opened, row.turn_id) if row.is_open else None)


async def _unpause(opened: OpenStore, asked: TurnControl) -> Pause:
    from wakeful.service.commands.steering import unpause_turn

    row = await named_turn(opened, asked.turn)
    accepted = await unpause_turn(opened.engine, row.turn_id, requested_by=asked.by)
    return Pause(row, accepted, await turn_ahead(opened, row.turn_id) if row.is_open else None)


async def _interject(opened: OpenStore, asked: MessageToTurn) -> MessageReceipt:
    from wakeful.service.commands.steering import interject

    row = await named_turn(opened, asked.turn)
    said = await interject(opened.engine, row.turn_id, asked.text, said_by=asked.said_by)
    return MessageReceipt(row.turn_id, said)


CANCEL = Operation("turns.cancel", "operate", TurnControl, f"{__name__}.Cancellation", _cancel, repeatable=True)
PAUSE = Operation("turns.pause", "operate", TurnControl, f"{__name__}.Pause", _pause, repeatable=True)
UNPAUSE = Operation("turns.unpause", "operate", TurnControl, f"{__name__}.Pause", _unpause, repeatable=True)
INTERJECT = Operation("turns.interject", "operate", MessageToTurn, f"{__name__}.MessageReceipt", _interject)
