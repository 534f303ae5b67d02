"""What may be asked about a message that was sent: the result of the turn that takes it, once there is one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wakeful.contracts.errors import WakefulError
from wakeful.service.operations.operation import OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.service.run_result import RunResult
    from wakeful.views.runtime_records import MessageAnswer

MOST_SECONDS = 60.0
SHUTTING_DOWN = "shutting_down"


class AnswerCutOff(WakefulError):
    """The process that runs the agents ends before the answer is there; whoever runs them next has it."""

    code = SHUTTING_DOWN


@dataclass(frozen=True, slots=True)
class AnswerQuery:
    """A message, and for how long its answer is waited for: at most a minute, so that nothing between gives up."""

    message: str
    seconds: float = 25.0
    """How long to wait, at most."""


async def _answer(opened: OpenStore, asked: AnswerQuery) -> "MessageAnswer":
    import asyncio

    from wakeful.contracts.errors import InvalidRequest
    from wakeful.views.runtime_records import MessageAnswer

    if opened.living is None:
        raise InvalidRequest("no process runs the agents of this store", "Start one: wakeful daemon start")
    try:
        async with asyncio.timeout(max(0.0, min(asked.seconds, MOST_SECONDS))):
            result = await _before_the_end(opened, asked.message)
    except TimeoutError:
        row = await opened.store.message(asked.message)
        return MessageAnswer(message_id=asked.message, turn_id=row.turn_id if row is not None else None)
    return MessageAnswer(message_id=asked.message, turn_id=result.turn_id, result=result.to_dict())


async def _before_the_end(opened: OpenStore, message: str) -> "RunResult[Any]":
    """The result, where it is there before the process ends. Raises AnswerCutOff."""
    import asyncio

    assert opened.living is not None
    if opened.process is None:
        return await opened.living.answer(message)
    answered = asyncio.ensure_future(opened.living.answer(message))
    ends = asyncio.ensure_future(opened.process.closing.wait())
    try:
        await asyncio.wait((answered, ends), return_when=asyncio.FIRST_COMPLETED)
        if answered.done():
            return answered.result()
    finally:
        answered.cancel()
        ends.cancel()
        await asyncio.gather(answered, ends, return_exceptions=True)
    raise AnswerCutOff(
        f"the daemon is shutting down, and message {message} has no answer yet",
        f"It is kept. Once the daemon runs again: GET /messages/{message}/answer, or wakeful why {message}",
    )


ANSWER = Operation("runtime.answer", "observe", AnswerQuery, "wakeful.views.runtime_records.MessageAnswer", _answer)
