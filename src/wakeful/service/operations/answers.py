"""What may be asked about a message that was sent: the result of the turn that takes it, once there is one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.views.runtime_records import MessageAnswer

MOST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class AnswerQuery:
    """A message, and for how long its answer is waited for: at most a minute, so that nothing between gives up."""

    message: str
    seconds: float = 25.0


async def _answer(opened: OpenStore, asked: AnswerQuery) -> "MessageAnswer":
    import asyncio

    from wakeful.contracts.errors import InvalidRequest
    from wakeful.views.runtime_records import MessageAnswer

    if opened.living is None:
        raise InvalidRequest("no process runs the agents of this store", "Start one: wakeful daemon start")
    try:
        async with asyncio.timeout(max(0.0, min(asked.seconds, MOST_SECONDS))):
            result = await opened.living.answer(asked.message)
    except TimeoutError:
        row = await opened.store.message(asked.message)
        return MessageAnswer(message_id=asked.message, turn_id=row.turn_id if row is not None else None)
    return MessageAnswer(message_id=asked.message, turn_id=result.turn_id, result=result.to_dict())


ANSWER = Operation("runtime.answer", "observe", AnswerQuery, "wakeful.views.runtime_records.MessageAnswer", _answer)
