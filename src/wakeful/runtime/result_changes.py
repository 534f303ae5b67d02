"""Tells that an agent came to something else than the last time: for agents whose `notify` has `change`.

What an operator asked is answered to the operator, and is not compared. What a timer or a trigger woke the agent for
is compared with what the same one came to before; the first time is told.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused, InvalidConfig
from wakeful.contracts.events import MessageAdmitted, ResultChanged, TurnStarted
from wakeful.contracts.messages import OperatorOrigin, TimerOrigin, TriggerOrigin
from wakeful.contracts.notices import MOST_WORDS, NotifyTarget
from wakeful.engine.run_request import Engine

FindTarget: TypeAlias = Callable[[], NotifyTarget | None]
"""Where notices about the agent go. Raises InvalidConfig."""


async def tell_change(engine: Engine, find_target: FindTarget, agent_id: str, turn_id: str, text: str) -> None:
    """A turn was completed. A kill before this is told after the next one."""
    try:
        target = find_target()
    except InvalidConfig:
        return
    words = " ".join(text.split())
    if target is None or "change" not in target.on or not words:
        return
    source = await _source(engine, agent_id, turn_id)
    if source is None:
        return
    digest = hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()
    known = await engine.store.told_result(agent_id, source)
    if known is not None and known.digest == digest:
        return
    event = ResultChanged(source=source, digest=digest, text=words[:MOST_WORDS])
    with suppress(EventRefused):
        await engine.store.admit(agent_id, [Fact(event, engine.clock.now(), None, None)])


async def _source(engine: Engine, agent_id: str, turn_id: str) -> str | None:
    """What woke the agent for a turn; None: its operator did."""
    turn = await engine.store.turn(turn_id)
    if turn is None:
        return None
    started = next(
        (
            entry.fact.event
            for entry in await engine.store.read(agent_id, after=turn.first_seq - 1, turn_id=turn_id, limit=3)
            if isinstance(entry.fact.event, TurnStarted)
        ),
        None,
    )
    message = await engine.store.message(started.message_ids[0]) if started is not None else None
    if message is None:
        return None
    (entry,) = await engine.store.read(agent_id, after=message.admitted_seq - 1, limit=1)
    admitted = entry.fact.event
    match admitted.origin if isinstance(admitted, MessageAdmitted) else None:
        case None | OperatorOrigin():
            return None
        case TimerOrigin(timer_id=name):
            return name
        case TriggerOrigin(descriptor_id=name):
            return name
        case _:
            return ""
