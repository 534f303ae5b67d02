"""Chats over HTTP: a message goes in, and the turn that answers it comes out of the same answer, as a stream.

    POST /agents/{agent_id}/chat      say something; the answer is the stream of its turn
    GET  /turns/{turn_id}/chat        the chat of a turn: as JSON, or as a stream
    GET  /messages/{message_id}       where a message is; as a stream the chat of the turn that takes it

A client that lost its stream comes back to any of them with `Last-Event-ID`. With its key a message is said once,
however often it is posted. A client that goes away stops nothing, unless it asked for that.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Body, Depends, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from wakeful.contracts.messages import Priority
from wakeful.service.operations.chat import (
    SAY,
    SHOW_CHAT,
    SHOW_MESSAGE,
    ChatQuery,
    ChatWords,
    MessageName,
    begin_chat,
    cancel_answer,
    check_place,
    follow_chat,
    follow_message_chat,
    follow_message_events,
)
from wakeful.service.operations.operation import OpenStore
from wakeful.surfaces.http.body_routes import BodyRoute, RequestParts
from wakeful.surfaces.http.event_routes import After, LastEvent, standard_frame
from wakeful.surfaces.http.event_streams import SSE, OpenStreams, frame_of, seen_before, sse_answer, wants_stream
from wakeful.surfaces.http.guard import SLASH, caller_of
from wakeful.surfaces.http.operation_routes import ERRORS, needs_scope, refuse_unknown_fields
from wakeful.surfaces.http.request_keys import KeyHeader, as_key_of_message
from wakeful.views.chat_messages import CHAT_MESSAGE, ChatMessage, ChatReplay
from wakeful.views.runtime_records import SentMessage

if TYPE_CHECKING:
    from wakeful.service.queries.chat_streams import ChatStream

EXAMPLE = """\
retry: 1000

id: 41
event: message_taken
data: {"type":"message_taken","message_id":"msg_1","agent":"ops","thread_id":"main","event_seq":41,"state":"queued"}

event: chunk
data: {"type":"chunk","thread_id":"main","turn_id":"turn_1","content":"All backups ","done":false,"depth":0,"step":1}

id: 48
event: chunk
data: {"type":"chunk","thread_id":"main","turn_id":"turn_1","event_seq":48,"content":"are there.","done":true}

id: 52
event: turn_terminal
data: {"type":"turn_terminal","thread_id":"main","turn_id":"turn_1","event_seq":52,"status":"completed"}

"""
ChatForm = Annotated[
    Literal["chat", "standard"],
    Query(description="`standard`: the turn's events in the draft standard's form instead of chat messages."),
]
CancelOnDisconnect = Annotated[
    bool,
    Query(
        description="Stop the turn when this client goes away. It holds for this connection: a daemon that ends stops "
        "no turn. Ask for it again with the same key."
    ),
]
T = TypeVar("T")
Id = Annotated[str, Path(min_length=1, max_length=500)]


class ChatRequest(BaseModel):
    """Something to say to an agent in one of its threads."""

    model_config = ConfigDict(extra="forbid", strict=True)
    text: str = Field(examples=["Are the backups there?"])
    thread: str = Field("main", description="The conversation it belongs to.")
    key: str | None = Field(None, description="The same key again is the same message. Also as `Idempotency-Key`.")
    priority: Priority = "normal"
    supersede: bool = Field(False, description="Stop the turns of the thread that began before.")


class ChatQueryString(BaseModel):
    """How a chat is to be shown."""

    model_config = ConfigDict(extra="forbid")
    form: Literal["chat", "standard"] = "chat"
    cancel_on_disconnect: bool = False


def chat_router(opened: OpenStore, streams: OpenStreams) -> APIRouter:
    """The routes of chats."""
    router = APIRouter(dependencies=[Depends(refuse_unknown_fields)], tags=["chat"])
    described = streamed()

    async def say(
        request: Request,
        agent_id: Id,
        asked: Annotated[ChatRequest, Body()],
        form: ChatForm = "chat",
        cancel_on_disconnect: CancelOnDisconnect = False,
        last: LastEvent = None,
        idempotency_key: KeyHeader = None,
    ) -> Response:
        after = seen_before(0, last)
        values = asked.model_dump()
        as_key_of_message(idempotency_key, values)
        caller = caller_of(request.scope).name
        words = ChatWords(agent_id.replace(SLASH, "/"), **values, sender=caller)
        await check_place(opened, words, after)
        if form == "standard":
            sent = MessageName((await SAY.handler(opened, words)).message_id)
            events = follow_message_events(opened, sent, after)
            if cancel_on_disconnect:
                events = _cancelling(opened, sent, caller, streams.closing, events)
            return await sse_answer(events, standard_frame, streams)
        message, chat = await begin_chat(opened, words, after)
        if cancel_on_disconnect:
            sent = MessageName(message.message_id)
            batches = _cancelling(opened, sent, caller, streams.closing, _whole(chat))
            return await sse_answer(batches, chat_frames, streams)
        return await _streamed(chat, streams)

    router.add_api_route(
        "/agents/{agent_id}/chat",
        say,
        methods=["POST"],
        responses={**ERRORS, 200: described},
        response_class=Response,
        dependencies=[Depends(needs_scope("operate"))],
        route_class_override=BodyRoute,
    )
    made = router.routes[-1]
    assert isinstance(made, BodyRoute)
    parts = RequestParts(
        ("agent_id",), ChatRequest, is_needed=True, query=ChatQueryString, headers={"last": "last-event-id"}
    )
    made.prepare(parts, "operate")

    @router.get(
        "/turns/{turn_id}/chat",
        responses={**ERRORS, 200: described},
        response_model=ChatReplay,
        dependencies=[Depends(needs_scope("observe"))],
    )
    async def of_turn(request: Request, turn_id: Id, after: After = 0, last: LastEvent = None) -> Response:
        asked = ChatQuery(turn_id, seen_before(after, last))
        if not wants_stream(request):
            return JSONResponse((await SHOW_CHAT.handler(opened, asked)).model_dump(mode="json"))
        return await _streamed(await follow_chat(opened, asked, may_answer=_may_answer(request)), streams)

    @router.get(
        "/messages/{message_id}",
        responses={**ERRORS, 200: described},
        response_model=SentMessage,
        dependencies=[Depends(needs_scope("observe"))],
    )
    async def of_message(request: Request, message_id: Id, after: After = 0, last: LastEvent = None) -> Response:
        asked, seen = MessageName(message_id), seen_before(after, last)
        if not wants_stream(request):
            return JSONResponse((await SHOW_MESSAGE.handler(opened, asked)).model_dump(mode="json"))
        chat = await follow_message_chat(opened, asked, seen, may_answer=_may_answer(request))
        return await _streamed(chat, streams)

    return router


def streamed() -> dict[str, Any]:
    """How a stream of chat messages is described: the event names its message, and its data is that message."""
    named = CHAT_MESSAGE.json_schema(mode="serialization")["discriminator"]["mapping"]
    events = {kind: {"$ref": place.replace("#/$defs/", "#/components/schemas/")} for kind, place in named.items()}
    return {
        "description": "A stream of server-sent events. Each has the type of its message as `event`, the message as "
        "JSON in `data` and, where it is stored, its `event_seq` as `id`. An `event: error` has the shape of errors.",
        "content": {
            SSE: {
                "schema": {"type": "string", "contentMediaType": SSE, "examples": [EXAMPLE]},
                "x-events": {**events, "error": {"$ref": "#/components/schemas/ErrorAnswer"}},
            }
        },
    }


def chat_frames(messages: Sequence[ChatMessage]) -> bytes:
    """Messages that leave together; the id of each is the number of its fact in the log of its agent."""
    return b"".join(map(_chat_frame, messages))


def _chat_frame(message: ChatMessage) -> bytes:
    number = getattr(message, "event_seq", None)
    data = message.model_dump_json(exclude_none=True)
    return frame_of(data, event=message.type, event_id="" if number is None else str(number))


async def _streamed(chat: "ChatStream", streams: OpenStreams) -> Response:
    first: Sequence[ChatMessage] | None = None if chat.first is None else [chat.first]
    return await sse_answer(chat, chat_frames, streams, first=first, ends=_is_end)


def _is_end(messages: Sequence[ChatMessage]) -> bool:
    return messages[-1].type == "turn_terminal"


async def _whole(chat: "ChatStream") -> AsyncGenerator[Sequence[ChatMessage], None]:
    async with aclosing(chat):
        if chat.first is not None:
            yield [chat.first]
        async for messages in chat:
            yield messages


def _may_answer(request: Request) -> bool:
    return caller_of(request.scope).may("operate")


async def _cancelling(
    opened: OpenStore, sent: MessageName, caller: str, closing: asyncio.Event, messages: AsyncGenerator[T, None]
) -> AsyncGenerator[T, None]:
    """The same, for a client that wants no answer that it cannot see. A server that ends stops nothing."""
    is_whole = False
    try:
        async with aclosing(messages):
            async for message in messages:
                yield message
        is_whole = True
    finally:
        if not is_whole and not closing.is_set():
            asked = asyncio.create_task(cancel_answer(opened, sent, by=caller))
            _cancelled.add(asked)
            asked.add_done_callback(_cancelled.discard)


_cancelled: set[asyncio.Task[None]] = set()
"""Cancels on their way: a task that nobody holds may be collected."""
