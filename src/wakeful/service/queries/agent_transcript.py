"""An agent's conversation with its operator: the operator's messages and the agent's briefs, and between them what
became of providers that failed.

It is read from the log, turn by turn, so that it is the same after any number of restarts and reaches as far back as
the log does.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import InvalidRequest
from wakeful.contracts.events import (
    BriefCreated,
    MessageAdmitted,
    ModelAnswered,
    ModelFailed,
    ModelWaiting,
    TurnInterjected,
)
from wakeful.engine.turn_messages import admitted_message, read_turn
from wakeful.ports import Store, TurnRow
from wakeful.ports.turns import TURNS, TURNS_OF_AGENT, TURNS_OF_THREAD
from wakeful.service.commands.agents import agent_named
from wakeful.service.queries.operator_feed import EventPresenter
from wakeful.views.presentation.feed_entries import TranscriptLine
from wakeful.views.presentation.replayed_events import ReplayedEvent

LineKind: TypeAlias = Literal["operator_message", "brief", "provider_failure", "provider_wait"]


async def transcript_of(
    store: Store, agent: str, *, thread: str | None = None, turns: int = 20, keys: Iterable[str] = ()
) -> list[TranscriptLine]:
    """The newest turns of an agent, or of one of its threads, the oldest line first; then what waits in the queue.

    Raises AgentNotFound.
    """
    if turns < 1:
        raise InvalidRequest(f"turns={turns}", "Give a whole number, at least 1.")
    await agent_named(store, agent)
    presenter = EventPresenter(store, keys=keys)
    lines: dict[int, TranscriptLine] = {}
    for row in await _newest(store, agent, thread, turns):
        for recorded in await read_turn(store, row):
            kind = _kind(recorded)
            if kind is not None:
                lines[recorded.seq] = _line(kind, await presenter.present(recorded), row.thread_id, row.turn_id)
    for busy in await store.busy_threads(agent):
        if thread in (None, busy.thread_id):
            for message in await store.queued(agent, busy.thread_id):
                entry = await admitted_message(store, message.message_id)
                if entry is not None and _kind(entry) is not None:
                    line = _line("operator_message", await presenter.present(entry), busy.thread_id, None)
                    lines.setdefault(entry.seq, line)
    return [line for _, line in sorted(lines.items())]


async def _newest(store: Store, agent: str, thread: str | None, limit: int) -> list[TurnRow]:
    if thread is None:
        return await _of_agent(store, agent, limit)
    return await store.list_rows(TURNS, TURNS_OF_THREAD, thread, agent, limit=limit, backwards=True)


async def _of_agent(store: Store, agent: str, limit: int) -> list[TurnRow]:
    """The newest turns of threads that nobody deleted."""
    found: list[TurnRow] = []
    before: tuple[int, ...] = ()
    while len(found) < limit:
        page = await store.list_rows(TURNS, TURNS_OF_AGENT, agent, after=before, limit=limit, backwards=True)
        found += [row for row in page if row.deleted_at is None]
        if len(page) < limit:
            break
        before = (page[-1].first_seq,)
    return found[:limit]


def _kind(recorded: StoredFact) -> LineKind | None:
    match recorded.fact.event:
        case MessageAdmitted(origin=origin):
            return "operator_message" if origin.kind == "operator" else None
        case TurnInterjected():
            return "operator_message"
        case BriefCreated():
            return "brief"
        case ModelFailed(after_wait=False):
            return "provider_failure"
        case ModelWaiting(told=True) | ModelAnswered():
            return "provider_wait"
        case _:
            return None


def _line(kind: LineKind, event: ReplayedEvent, thread: str, turn: str | None) -> TranscriptLine:
    presented = event.presentation
    return TranscriptLine(
        event_id=event.envelope.event_id,
        event_seq=event.envelope.event_seq,
        ts=event.envelope.ts,
        kind=kind,
        agent_id=event.envelope.agent_id,
        thread_id=thread,
        turn_id=turn,
        text=_text(kind, event),
        presentation=presented,
    )


def _text(kind: LineKind, event: ReplayedEvent) -> str:
    if kind != "operator_message":
        return event.presentation.body or event.presentation.summary if kind == "brief" else event.presentation.summary
    item = event.payload.get("item") or {}
    return "".join(str(part.get("text", "")) for part in item.get("parts", ()))
