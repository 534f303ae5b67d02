"""Events of an agent, of a turn and of all agents: as pages of JSON, or as a stream to readers that accept
`text/event-stream`.

A stream goes on after `Last-Event-ID`, or after `after`: the `event_seq` of the last event that its reader has, or of
the feed over all agents the cursor of its last entry.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from wakeful.contracts.envelope import RuntimeEvent
from wakeful.service.operations.operation import OpenStore
from wakeful.service.operations.operator_feed import (
    LIST_FEED,
    REPLAY_EVENTS,
    FeedQuery,
    ReplayQuery,
    follow_events,
    follow_feed,
)
from wakeful.service.operations.turn_reports import LIST_LINES, LineQuery, follow_lines_of_events
from wakeful.service.operations.turns import LIST_EVENTS, EventQuery, read_events
from wakeful.surfaces.http.body_routes import require
from wakeful.surfaces.http.cursors import link_to
from wakeful.surfaces.http.event_streams import (
    SSE,
    OpenStreams,
    SharedFrames,
    seen_before,
    sse_answer,
    sse_frame,
    wants_stream,
)
from wakeful.surfaces.http.guard import SLASH
from wakeful.surfaces.http.operation_routes import ERRORS, LARGEST, MOST, PAGE, needs_scope, refuse_unknown_fields
from wakeful.views.presentation.display_modes import DisplayMode
from wakeful.views.presentation.feed_entries import FeedEntry
from wakeful.views.presentation.replayed_events import ReplayedEvent
from wakeful.views.standard_form import standard_form
from wakeful.views.turn_lines import TurnLine, TurnView

E = TypeVar("E", bound=BaseModel)
After = Annotated[int, Query(ge=0, le=LARGEST, description="The `event_seq` of the last event that is known.")]
Limit = Annotated[int, Query(ge=1, le=MOST, description="How many events at most; a stream has no end.")]
EventForm = Annotated[
    Literal["wakeful", "standard"],
    Query(description="`standard`: in the camelCase form of the draft standard (`wakeful schema standard-events`)."),
]
LastEvent = Annotated[str | None, Header(alias="Last-Event-ID", description="Where a stream goes on.")]
RESPONSES: dict[int | str, dict[str, Any]] = {
    **ERRORS,
    200: {
        "description": "A page of events; as `text/event-stream` those and all that follow.",
        "content": {SSE: {"schema": {"type": "string"}}},
    },
}


def event_router(opened: OpenStore, streams: OpenStreams) -> APIRouter:
    """The routes of events."""
    replay_frames = SharedFrames(lambda event: event.envelope.event_id, replay_frame)
    feed_frames = SharedFrames(lambda entry: entry.cursor, feed_frame)
    router = APIRouter(dependencies=[Depends(needs_scope("observe")), Depends(refuse_unknown_fields)], tags=["events"])

    @router.get(
        "/agents/{agent_id}/events",
        responses=RESPONSES,
        response_model=list[ReplayedEvent],
    )
    async def of_agent(
        request: Request, agent_id: str, after: After = 0, limit: Limit = PAGE, last: LastEvent = None
    ) -> Response:
        asked = ReplayQuery(agent_id.replace(SLASH, "/"), seen_before(after, last), limit)
        if not wants_stream(request):
            events = await REPLAY_EVENTS.handler(opened, asked)
            return _page(request, events, limit, lambda event: str(event.envelope.event_seq))
        return await sse_answer(follow_events(opened, asked), replay_frames, streams)

    @router.get("/turns/{turn_id}/events", responses=RESPONSES, response_model=list[RuntimeEvent])
    async def of_turn(
        request: Request,
        turn_id: str,
        after: After = 0,
        limit: Limit = PAGE,
        reveal: bool = False,
        form: EventForm = "wakeful",
        last: LastEvent = None,
    ) -> Response:
        if reveal:
            require(request, "reveal")
        turn_id = turn_id.replace(SLASH, "/")
        asked = EventQuery(turn_id, seen_before(after, last), limit, reveal)
        shown = event_frame if form == "wakeful" else standard_frame
        if not wants_stream(request):
            found = await LIST_EVENTS.handler(opened, asked)
            write = standard_form if form == "standard" else written
            return _page(request, found, limit, lambda event: event.event_id.rpartition(":")[2], write)
        return await sse_answer(
            read_events(opened, EventQuery(turn_id, asked.after, None, reveal), follow_it=True), shown, streams
        )

    @router.get(
        "/turns/{turn_id}/lines",
        responses=RESPONSES,
        response_model=list[TurnLine],
    )
    async def lines_of_turn(
        request: Request,
        turn_id: str,
        view: TurnView = "stream",
        after: After = 0,
        limit: Limit = PAGE,
        reveal: bool = False,
        last: LastEvent = None,
    ) -> Response:
        if reveal:
            require(request, "reveal")
        asked = LineQuery(turn_id.replace(SLASH, "/"), view, seen_before(after, last), limit, reveal)
        if not wants_stream(request):
            found = await LIST_LINES.handler(opened, asked)
            answer = JSONResponse([line.model_dump(mode="json") for line in found])
            if len(found) >= limit:
                link_to(answer, request, after=str(found[-1].event_seq))
            return answer
        return await sse_answer(follow_lines_of_events(opened, asked), line_frames, streams)

    @router.get("/feed", responses=RESPONSES, response_model=list[FeedEntry])
    async def of_all(
        request: Request,
        after: Annotated[str | None, Query(description="The cursor of the last entry that is known.")] = None,
        limit: Limit = PAGE,
        display: DisplayMode = "verbose",
        last: LastEvent = None,
    ) -> Response:
        asked = FeedQuery(last or after, limit, display)
        if not wants_stream(request):
            return _page(request, await LIST_FEED.handler(opened, asked), limit, lambda entry: entry.cursor)
        return await sse_answer(follow_feed(opened, asked), feed_frames, streams)

    return router


def event_frame(event: RuntimeEvent) -> bytes:
    """One event of the log; its id is its number in the log of its agent."""
    number = event.event_id.rpartition(":")[2]
    return sse_frame(event.model_dump(mode="json", exclude_none=True), event=event.type, event_id=number)


def line_frames(lines: Sequence[TurnLine]) -> bytes:
    """The lines of one event; the last of them has its number: who has that one has them all."""
    frames = []
    for place, line in enumerate(lines, 1):
        view = next(name for name in get_args(TurnView) if getattr(line, name) is not None)
        number = str(line.event_seq) if place == len(lines) else ""
        frames.append(sse_frame(line.model_dump(mode="json"), event=view, event_id=number))
    return b"".join(frames)


def standard_frame(event: RuntimeEvent) -> bytes:
    """The same in the form of the draft standard."""
    return sse_frame(standard_form(event), event=event.type, event_id=event.event_id.rpartition(":")[2])


def replay_frame(event: ReplayedEvent) -> bytes:
    """One event of an agent; its id is its number in the log of its agent."""
    data = event.model_dump(mode="json", exclude_none=True)
    return sse_frame(data, event=event.envelope.kind, event_id=str(event.envelope.event_seq))


def feed_frame(entry: FeedEntry) -> bytes:
    """One entry of the feed; its id is its cursor."""
    data = entry.model_dump(mode="json", exclude_none=True)
    return sse_frame(data, event=entry.presentation.category, event_id=entry.cursor)


def written(event: BaseModel) -> dict[str, Any]:
    """As JSON data, without what is not set."""
    return event.model_dump(mode="json", exclude_none=True)


def _page(
    request: Request,
    events: Sequence[E],
    limit: int,
    place: Callable[[E], str],
    write: Callable[[E], dict[str, Any]] = written,
) -> JSONResponse:
    answer = JSONResponse([write(event) for event in events])
    if len(events) == limit:
        link_to(answer, request, after=place(events[-1]))
    return answer
