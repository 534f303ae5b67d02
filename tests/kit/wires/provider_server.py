"""A provider on this machine: answers in order what it was told to, and remembers what it was asked.

It runs in a thread, so that a command, a program of its own process or an event loop can talk to it alike.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from kit.wires import anthropic_samples, chat_streams, gemini_samples, responses_wire

EVENTS = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}


class Answer(NamedTuple):
    """What one request gets."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = EVENTS


class Asked(NamedTuple):
    """One request."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


Answers = Answer | Callable[[Asked], Answer]


class ProviderServer:
    """Where it listens, what it was asked, and what it will say. With nothing left to say it answers 500."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.asked: list[Asked] = []
        self.answers: list[Answers] = []
        self.always: Answers | None = None
        """For every request beyond `answers`."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        answer = self.answers.pop(0) if self.answers else self.always or refusal(500, "server_error", "no answer left")
        return answer(asked) if callable(answer) else answer


@contextmanager
def serving() -> Iterator[ProviderServer]:
    """The server, while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = held.answer(Asked(self.path, headers, json.loads(body)))
            self.send_response(answer.status)
            for name, value in {**answer.headers, "content-length": str(len(answer.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    held = ProviderServer(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def refusal(status: int, kind: str, words: str, **headers: str) -> Answer:
    """An error that every wire format understands."""
    body = {"type": "error", "error": {"type": kind, "code": kind, "message": words}}
    return Answer(json.dumps(body).encode(), status, {**JSON, **headers})


# --- answers in the words of each wire format: some words, or one call of the first tool ------------------------------


def chat_words(text: str) -> Answer:
    chunks = (chat_streams.chunk({"content": text}), chat_streams.chunk(finish="stop"), chat_streams.USAGE_CHUNK)
    return Answer(chat_streams.stream(*chunks))


def chat_call(asked: Asked, arguments: dict[str, Any]) -> Answer:
    name = asked.body["tools"][0]["function"]["name"]
    call = chat_streams.piece(0, name, json.dumps(arguments), "call_1")
    return Answer(chat_streams.stream(call, chat_streams.chunk(finish="tool_calls"), chat_streams.USAGE_CHUNK))


def responses_words(text: str) -> Answer:
    ended = responses_wire.response(responses_wire.message(responses_wire.words(text)))
    return Answer(responses_wire.sse(responses_wire.events_of(ended)))


def responses_call(asked: Asked, arguments: dict[str, Any]) -> Answer:
    call = responses_wire.call("call_1", json.dumps(arguments), name=asked.body["tools"][0]["name"])
    return Answer(responses_wire.sse(responses_wire.events_of(responses_wire.response(call))))


def messages_words(text: str) -> Answer:
    events = [anthropic_samples.started(), *anthropic_samples.text_block(0, text), *anthropic_samples.ended()]
    return Answer(anthropic_samples.sse(events))


def messages_call(asked: Asked, arguments: dict[str, Any]) -> Answer:
    block = anthropic_samples.call_block(0, "toolu_1", asked.body["tools"][0]["name"], json.dumps(arguments))
    events = [anthropic_samples.started(), *block, *anthropic_samples.ended("tool_use")]
    return Answer(anthropic_samples.sse(events))


def gemini_words(text: str) -> Answer:
    return Answer(gemini_samples.sse([gemini_samples.answer({"text": text})]))


def gemini_call(asked: Asked, arguments: dict[str, Any]) -> Answer:
    name = asked.body["tools"][0]["functionDeclarations"][0]["name"]
    return Answer(gemini_samples.sse([gemini_samples.answer(gemini_samples.call(name, arguments, "call_1"))]))
