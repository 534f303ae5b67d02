"""A FastAPI application that promises nothing: what the daemon is compared with.

    uvicorn served.bare_app:app

One event goes to all who follow, a message is parsed and answered, a chat is answered with one chunk.
"""

import asyncio
from collections.abc import AsyncIterator

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

app = FastAPI()


class News:
    """The newest event, and those who wait for the next one."""

    text = ""
    told = asyncio.Event()


class Message(BaseModel):
    text: str
    thread: str = "main"


@app.get("/events")
async def events() -> StreamingResponse:
    async def parts() -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        while True:
            await News.told.wait()
            yield f"data: {News.text}\n\n".encode()

    return StreamingResponse(parts(), media_type="text/event-stream")


@app.post("/messages")
async def messages(message: Message) -> dict[str, str]:
    News.text = message.text
    News.told.set()
    News.told = asyncio.Event()
    return {"thread": message.thread, "state": "queued"}


@app.post("/chat")
async def chat(message: Message) -> StreamingResponse:
    async def parts() -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        yield f"event: chunk\ndata: {message.text}\n\n".encode()

    return StreamingResponse(parts(), media_type="text/event-stream")
