"""Two models behind HTTP, in a process that outlives the runs that are killed: what is asked there is paid for.

The first model is unreliable, each time in another way; the second answers. The first speaks chat completions, or
Gemini's own API. The server keeps, for each world (a run
and those that take it up again), what it was asked and when. It runs where the test runs, the killed program elsewhere.
"""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.request import urlopen

from kit.wires import anthropic_samples, chat_streams, gemini_samples

FIRST, GEMINI, SECOND = "openai-compatible:first", "gemini:first", "anthropic:second"
ROUNDS: list[str | None] = ["refund", "send_letter", "refund", None]
"""The tool each round calls; the last one answers."""
ANSWER = "It is done."
WORLD = "x-world"


class Paid(NamedTuple):
    """One request, as the server saw it."""

    at: int
    """Microseconds since 1970."""
    model_ref: str
    round: int


@contextmanager
def paid_models() -> Iterator[str]:
    """The address of the two models."""
    server = _Server(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def bill(url: str, world: str) -> list[Paid]:
    """Every request of a world, in order."""
    with urlopen(f"{url}/bill?{world}", timeout=60) as answer:
        return [Paid(*line) for line in json.loads(answer.read())]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.bills: dict[str, list[Paid]] = defaultdict(list)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no error of the server's."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self._say(200, json.dumps(self.server.bills[self.path.partition("?")[2]]).encode())

    def do_POST(self) -> None:
        at = time.time_ns() // 1000
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        bills = self.server.bills[self.headers[WORLD]]
        ref = _model(self.path)
        number = 1 + _results(body)
        asked_before = sum(paid.model_ref == ref and paid.round == number for paid in bills)
        bills.append(Paid(at, ref, number))
        if ref == SECOND:
            self._stream(_messages(number))
        else:
            self._unreliable(_chat(number) if ref == FIRST else _gemini(number), number, asked_before)

    def _unreliable(self, whole: list[bytes], number: int, asked_before: int) -> None:
        if number == 1:  # never: a cut, a clean end too early, and overload; then the other model is asked
            if asked_before % 3 == 2:
                self._say(529, b'{"error": {"type": "overloaded_error"}}', ("retry-after-ms", "1"))
            else:
                self._stream(whole[:2], ends=asked_before % 3 == 1)
        elif number == 2:  # never, and there is no use in asking again
            self._say(401, b'{"error": {"message": "no such key"}}')
        elif number == 3 and not asked_before:  # not at once
            self._say(503, b'{"error": {"message": "not now"}}', ("retry-after", "0"))
        else:
            self._stream(whole)

    def _stream(self, events: list[bytes], *, ends: bool = True) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        if ends:
            self.send_header("content-length", str(sum(map(len, events))))
        else:
            self.send_header("content-length", str(sum(map(len, events)) + 100))
            self.close_connection = True
        self.end_headers()
        for event in events:
            self.wfile.write(event)
            self.wfile.flush()

    def _say(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """It says nothing; the bill says it all."""


def _model(path: str) -> str:
    if path.startswith("/v1beta/models/first:streamGenerateContent"):
        return GEMINI
    return FIRST if path.endswith("/chat/completions") else SECOND


def _results(body: dict[str, Any]) -> int:
    """How many results a request shows: one for each round that is over."""
    if "contents" in body:
        return sum("functionResponse" in part for each in body["contents"] for part in each["parts"])
    blocks = [block for message in body["messages"] for block in _blocks(message)]
    return sum(block.get("role") == "tool" or block.get("type") == "tool_result" for block in blocks)


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    if message["role"] == "tool":
        return [message]
    content = message["content"]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _chat(number: int) -> list[bytes]:
    name = ROUNDS[number - 1]
    said = (
        [chat_streams.chunk({"content": ANSWER})] if name is None else [chat_streams.piece(0, name, "", f"c{number}")]
    )
    if name is not None:
        said.append(chat_streams.piece(0, arguments="{}"))
    chunks = [*said, chat_streams.chunk(finish="stop" if name is None else "tool_calls"), chat_streams.USAGE_CHUNK]
    return [*(chat_streams.stream(each, done=False) for each in chunks), b"data: [DONE]\n\n"]


def _gemini(number: int) -> list[bytes]:
    name = ROUNDS[number - 1]
    said = {"text": ANSWER} if name is None else gemini_samples.call(name, {}, f"c{number}")
    thought = {"text": "Let me see.", "thought": True}
    pieces = [gemini_samples.answer(part, finish=None) for part in (thought, said)]
    return [gemini_samples.sse([piece]) for piece in (*pieces, gemini_samples.answer({"text": ""}))]


def _messages(number: int) -> list[bytes]:
    name = ROUNDS[number - 1]
    said = (
        anthropic_samples.text_block(0, ANSWER)
        if name is None
        else anthropic_samples.call_block(0, f"c{number}", name, "{}")
    )
    ended = anthropic_samples.ended("end_turn" if name is None else "tool_use")
    return [anthropic_samples.sse([event]) for event in [anthropic_samples.started(), *said, *ended]]
