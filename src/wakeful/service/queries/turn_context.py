"""What the model saw in a turn: the log from the turn's window on is folded once more, and looked at on the way."""

from collections.abc import Iterable
from typing import Any

from wakeful.contracts.envelope import event_id
from wakeful.contracts.errors import InvalidConfig
from wakeful.decisions.state import TurnState
from wakeful.engine.state_loader import fold
from wakeful.ports import Store, TurnRow
from wakeful.service.queries.turns import EventReader
from wakeful.views.turn_context import ContextReading, TurnContext, left_out_of, sections_of


async def _context_and_state(store: Store, row: TurnRow, step: int | None) -> tuple[TurnContext, TurnState]:
    """The turn's context, with `step` the messages of that request; and the state that the turn has come to.

    Raises InvalidConfig for a step there is not.
    """
    recorded = await store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    reading = ContextReading(row.turn_id, step)
    state = (await fold(store, row, recorded, before=reading.before)).state
    requests, summaries = reading.requests, reading.summaries
    if step is not None and not any(request.shown for request in requests):
        steps = sorted({request.step for request in requests if request.level is None})
        there = f"it has 1 to {steps[-1]}" if steps else "it has made no request"
        raise InvalidConfig(f"turn {row.turn_id} has no step {step}", there)
    resolved = reading.resolved
    known = resolved.compaction_id if resolved is not None else None
    own = [view for view in summaries.values() if view.turn_id == row.turn_id or view.compaction_id == known]
    told = TurnContext(
        turn_id=row.turn_id,
        agent=row.agent_name,
        thread=row.thread_id,
        history_from=event_id(row.agent_id, row.window_from),
        window=resolved.token_limit if resolved is not None else None,
        sections=sections_of(resolved, state.config),
        left_out=left_out_of(resolved, summaries),
        tools=tuple(tool.name for tool in state.config.tools) if state.config is not None else (),
        requests=tuple(requests if step is None else (each for each in requests if each.shown)),
        summaries=tuple(own),
        tokens_folded=sum(
            view.tokens_before - view.tokens_after
            for view in own
            if view.tokens_after is not None and view.turn_id == row.turn_id
        ),
        folded_calls=reading.folded_calls,
        read_again=tuple(reading.read_again),
    )
    return told, state


async def readable_context(
    store: Store, row: TurnRow, step: int | None = None, *, keys: Iterable[str] = ()
) -> dict[str, Any]:
    """The turn's context as JSON data, with its secrets hidden. Raises InvalidConfig for a step there is not."""
    told, state = await _context_and_state(store, row, step)
    reader = EventReader(store, keys=keys)
    await reader.learn(await store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id))
    await reader.hear(state.conversation.items)
    hidden: dict[str, Any] = reader.hide(told.model_dump(mode="json"))
    return hidden
