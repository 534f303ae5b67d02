"""A Responses API with background responses, in a process that outlives those it answers: what is created is paid for.

A response goes on whether or not anybody listens. The model's name says how it behaves:

    steady      streams to its end
    cut         breaks every stream after a few events; the rest can be had from where it broke
    unnumbered  the same, without numbers on its events
    polled      cannot be streamed; it is finished when it was asked for again and again
    endless     works until it is cancelled
    forgets     breaks its stream, and has never heard of the response afterwards
    fails       breaks its stream; the response itself failed
"""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

from kit.wires import responses_wire

WORLD = "x-world"
ANSWER = "It is done."
REF = "openai:"
AT_A_TIME = 6
"""Events before a stream breaks."""


class Created(NamedTuple):
    """One response that was made, and paid for."""

    at: int
    """Microseconds since 1970."""
    response_id: str
    round: int


@dataclass
class Response:
    """One background response."""

    model: str
    ended: dict[str, Any]
    asked_for: int = 0
    cancelled: bool = False


@dataclass
class World:
    """What the server has done for one run and those that take it up again."""

    created: list[Created] = field(default_factory=list)
    responses: dict[str, Response] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """Every request, as `METHOD path?query`."""
    bodies: list[dict[str, Any]] = field(default_factory=list)


class BackgroundServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.worlds: dict[str, World] = defaultdict(World)
        self.tool = ""
        """The tool that the first round calls; without one the first round is the answer."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def world(self) -> World:
        """The one of requests that name none."""
        return self.worlds[""]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no error of the server's."""


@contextmanager
def background_server(tool: str = "") -> Iterator[BackgroundServer]:
    """The server, while the block runs."""
    server = BackgroundServer()
    server.tool = tool
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def bill(url: str, world: str) -> list[Created]:
    """Every response that was created in a world, in order."""
    with urlopen(f"{url}/bill?{world}", timeout=60) as answer:
        return [Created(*line) for line in json.loads(answer.read())]


class _Handler(BaseHTTPRequestHandler):
    server: BackgroundServer

    @property
    def _world(self) -> World:
        return self.server.worlds[self.headers.get(WORLD, "")]

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        self._world.asked.append(f"POST {self.path}")
        if self.path.endswith("/cancel"):
            self._cancel(self.path.split("/")[-2])
            return
        assert body["background"] is True and body["store"] is True
        self._world.bodies.append(body)
        response = self._create(body)
        if not body["stream"]:
            self._say(200, {**response.ended, "status": "queued", "output": [], "usage": None})
        elif response.model == "polled":
            self._stream(response, -1, least=1)
        else:
            self._stream(response, -1)

    def do_GET(self) -> None:
        path = urlsplit(self.path)
        if path.path == "/bill":
            self._say(200, self.server.worlds[path.query].created)
            return
        self._world.asked.append(f"GET {self.path}")
        response = self._world.responses.get(path.path.rpartition("/")[2])
        if response is None or response.model == "forgets":
            self._refuse(404, "no such response")
            return
        response.asked_for += 1
        query = parse_qs(path.query)
        if query.get("stream") != ["true"]:
            self._say(200, self._now(response))
        elif response.model == "polled":
            self._refuse(400, "this response was not made to be streamed")
        else:
            self._stream(response, int(query.get("starting_after", ["-1"])[0]))

    def _create(self, body: dict[str, Any]) -> Response:
        world = self._world
        results = sum(item.get("type") == "function_call_output" for item in body["input"])
        number = len(world.created) + 1
        response_id = f"resp_{number}"
        wants_tool = bool(self.server.tool) and not results
        said = (
            responses_wire.call(f"call_{results}", "{}", name=self.server.tool)
            if wants_tool
            else responses_wire.message(responses_wire.words(ANSWER))
        )
        ended = responses_wire.response(said, id=response_id)
        if body["model"] == "fails":
            ended |= {"status": "failed", "error": {"code": "server_error", "message": "it broke"}}
        world.responses[response_id] = Response(body["model"], ended)
        world.created.append(Created(time.time_ns() // 1000, response_id, results + 1))
        return world.responses[response_id]

    def _now(self, response: Response) -> dict[str, Any]:
        """The response as it is: finished, or not yet."""
        if response.cancelled:
            return {**response.ended, "status": "cancelled", "output": []}
        unfinished = response.model == "endless" or (response.model == "polled" and response.asked_for < 3)
        return {**response.ended, "status": "in_progress", "output": []} if unfinished else response.ended

    def _cancel(self, response_id: str) -> None:
        response = self._world.responses.get(response_id)
        if response is None:
            self._refuse(404, "no such response")
            return
        response.cancelled = True
        self._say(200, self._now(response))

    def _stream(self, response: Response, after: int, least: int = AT_A_TIME) -> None:
        events = responses_wire.events_of(response.ended)
        events = [event for event in events if event["sequence_number"] > after]
        whole = response.model in ("steady",) or (response.model == "unnumbered" and response.asked_for > 1)
        if response.model == "unnumbered":
            events = [{key: value for key, value in event.items() if key != "sequence_number"} for event in events]
        if response.model == "endless":
            events = events[:least] if after < 0 else []
        elif not whole:
            events = events[:least]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("x-request-id", "req_1")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(responses_wire.sse([event]))
            self.wfile.flush()
        while response.model == "endless" and not response.cancelled:
            time.sleep(0.01)
        self.close_connection = True

    def _refuse(self, status: int, words: str) -> None:
        self._say(status, {"error": {"type": "invalid_request_error", "code": "refused", "message": words}})

    def _say(self, status: int, said: Any) -> None:
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """It says nothing; the bill says it all."""
