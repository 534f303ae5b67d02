"""The output of a task: both ends of it as JSON, or all of it as a stream while it is said."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.responses import JSONResponse

from wakeful.service.operations.operation import OpenStore
from wakeful.service.operations.tasks import SHOW_OUTPUT, TaskName, follow_output
from wakeful.surfaces.http.event_routes import After, LastEvent
from wakeful.surfaces.http.event_streams import SSE, OpenStreams, seen_before, sse_answer, sse_frame, wants_stream
from wakeful.surfaces.http.guard import SLASH
from wakeful.surfaces.http.operation_routes import ERRORS, needs_scope, refuse_unknown_fields
from wakeful.surfaces.http.route_words import words_of
from wakeful.views.task_records import OutputChunk, TaskOutput

EXAMPLE = """\
retry: 1000

id: 18
event: output
data: {"task_id":"task_1","next":18,"text":"12 tests collected","skipped_bytes":0}

event: ended
data: {"task_id":"task_1","status":"completed","retrieval_status":"success","output":"...","exit_status":0}

"""


def task_router(opened: OpenStore, streams: OpenStreams) -> APIRouter:
    """The route of a task's output."""
    router = APIRouter(dependencies=[Depends(needs_scope("observe")), Depends(refuse_unknown_fields)], tags=["tasks"])

    @router.get(
        "/tasks/{task_id}/output",
        summary=words_of("GET", "/tasks/{task_id}/output"),
        description="Scope: `observe`. Both ends of what a task said. As `text/event-stream`: its lines from `after` "
        "on, those that come (`output`), and its end (`ended`).",
        response_model=TaskOutput,
        responses={**ERRORS, 200: {"content": {SSE: {"schema": {"type": "string"}, "example": EXAMPLE}}}},
    )
    async def output(
        request: Request,
        task_id: Annotated[str, Path(min_length=1, max_length=500)],
        after: After = 0,
        last: LastEvent = None,
    ) -> Response:
        asked = TaskName(task_id.replace(SLASH, "/"))
        if not wants_stream(request):
            return JSONResponse((await SHOW_OUTPUT.handler(opened, asked)).model_dump(mode="json"))
        return await sse_answer(follow_output(opened, asked, seen_before(after, last)), output_frame, streams)

    return router


def output_frame(item: OutputChunk | TaskOutput) -> bytes:
    """Lines of a task; their id is where the next ones begin. Or its end."""
    data = item.model_dump(mode="json", exclude_none=True)
    if isinstance(item, TaskOutput):
        return sse_frame(data, event="ended")
    return sse_frame(data, event="output", event_id=str(item.next))
