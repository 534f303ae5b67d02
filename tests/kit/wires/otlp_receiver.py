"""An address that takes traces and metrics over OTLP, on this machine: it reads what comes, hangs, or refuses."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class SentSpan(NamedTuple):
    """A span as it came."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    failed: bool
    kind: int
    nanoseconds: int


class OtlpReceiver:
    """What came. `mood` says what becomes of the next request: take, refuse, hang."""

    def __init__(self) -> None:
        self.address = ""
        self.mood = "take"
        self.spans: list[SentSpan] = []
        self.metrics: set[str] = set()
        self.headers: list[dict[str, str]] = []
        self.asked = 0
        self.released = threading.Event()

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        self.asked += 1
        self.headers.append(headers)
        if self.mood == "hang":
            self.released.wait(60)
        if self.mood != "take":
            return 503
        if path.endswith("/v1/metrics"):
            sent = ExportMetricsServiceRequest.FromString(body)
            self.metrics |= {
                metric.name
                for each in sent.resource_metrics
                for scope in each.scope_metrics
                for metric in scope.metrics
            }
            return 200
        for each in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in each.scope_spans:
                self.spans += [_read(span) for span in scope.spans]
        return 200

    def turns(self) -> list[str]:
        """The turns whose spans came, in their order."""
        return [span.attributes["wakeful.turn.id"] for span in self.spans if "wakeful.turn.id" in span.attributes]

    def until_sent(self, *turns: str, seconds: float = 60) -> None:
        """Until the spans of these turns came. None comes twice."""
        until = time.monotonic() + seconds
        while not set(turns) <= set(self.turns()):
            assert time.monotonic() < until, f"{turns} were to come; these came: {self.turns()}"
            time.sleep(0.05)
        assert len(self.turns()) == len(set(self.turns())), "a turn came twice"


def _read(span: Any) -> SentSpan:
    attributes = {each.key: _value(each.value) for each in span.attributes}
    return SentSpan(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        attributes,
        span.status.code == 2,
        span.kind,
        span.end_time_unix_nano - span.start_time_unix_nano,
    )


def _value(value: Any) -> Any:
    field = value.WhichOneof("value")
    if field == "array_value":
        return tuple(_value(each) for each in value.array_value.values)
    return getattr(value, field)


@contextmanager
def otlp_receiver() -> Iterator[OtlpReceiver]:
    found = OtlpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status = found.take(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            try:
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()
            except OSError:
                pass  # whoever asked has gone

        def log_message(self, format: str, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        found.address = f"http://127.0.0.1:{server.server_address[1]}"
        yield found
    finally:
        found.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
