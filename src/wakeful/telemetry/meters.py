"""Metrics by the SDK of OpenTelemetry: to an OTLP endpoint, and as the text that Prometheus reads.

Labels come from lists that end: states, kinds of failure, and names of models and tools, of which the first
`MOST_NAMES` count by themselves and the rest together. Agents, turns and people are never labels.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful._version import __version__
from wakeful.contracts.telemetry import Telemetry
from wakeful.telemetry.span_sender import in_thread
from wakeful.views import span_names as names
from wakeful.views.turn_spans import OTHER, SpanRecord

if TYPE_CHECKING:
    from opentelemetry.metrics import Observation
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.resources import Resource
    from prometheus_client import CollectorRegistry

MOST_NAMES = 100
CLOSE_SECONDS = 2.0
SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
LONG_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0)
TOKENS = tuple(float(4**power) for power in range(14))


class Figures(NamedTuple):
    """What is so now, in numbers."""

    agents: Mapping[str, int]
    """By what they are allowed to do: running, paused, stopped."""
    tasks: int
    approvals: int
    turns: int
    refused: Mapping[str, int]
    """Requests refused at the door since the process started, by code."""
    export_failures: int = 0


NO_FIGURES = Figures({}, 0, 0, 0, {})


class BoundedNames:
    """Names as labels: the first so many by themselves, all others as one."""

    def __init__(self, most: int = MOST_NAMES) -> None:
        self._most = most
        self._known: set[str] = set()

    def label(self, name: str) -> str:
        if name not in self._known:
            if len(self._known) >= self._most:
                return OTHER
            self._known.add(name)
        return name


class Meters:
    """What is counted and measured of turns that ended, and what is so when somebody asks."""

    def __init__(self, readers: "Iterable[MetricReader]", resource: "Resource", registry: Any = None) -> None:
        from opentelemetry.sdk.metrics import MeterProvider

        self._registry: CollectorRegistry | None = registry
        self._provider = MeterProvider(list(readers), resource=resource, shutdown_on_exit=False)
        self.figures = NO_FIGURES
        self._models, self._tools = BoundedNames(), BoundedNames()
        meter = self._provider.get_meter("wakeful", __version__)

        def histogram(name: str, unit: str, words: str, bounds: tuple[float, ...]) -> Any:
            return meter.create_histogram(name, unit, words, explicit_bucket_boundaries_advisory=list(bounds))

        def gauge(name: str, words: str, read: "Callable[[], Iterable[Observation]]") -> None:
            def observe(_: object) -> "Iterable[Observation]":
                return read()

            meter.create_observable_gauge(name, [observe], description=words)

        self._turns = meter.create_counter(names.TURNS, "{turn}", "Turns that ended.")
        self._turn_seconds = histogram(
            names.TURN_DURATION, "s", "From a turn's start to its end, waits included.", LONG_SECONDS
        )
        self._queue_seconds = histogram(names.QUEUE_WAIT, "s", "From a message to the start of its turn.", SECONDS)
        self._operation_seconds = histogram(names.OPERATION_DURATION, "s", "Requests to models.", SECONDS)
        self._tokens = histogram(names.TOKEN_USAGE, "{token}", "Tokens of a request to a model.", TOKENS)
        self._tool_seconds = histogram(names.TOOL_DURATION, "s", "Calls of tools.", SECONDS)
        self._approval_seconds = histogram(
            names.APPROVAL_WAIT, "s", "How long approvals were waited for.", LONG_SECONDS
        )
        gauge(names.AGENTS, "Agents, by what they are allowed to do.", lambda: _by("state", self.figures.agents))
        gauge(names.OPEN_TASKS, "Background tasks that run.", lambda: _one(self.figures.tasks))
        gauge(names.OPEN_APPROVALS, "Decisions that are waited for.", lambda: _one(self.figures.approvals))
        gauge(names.OPEN_TURNS, "Turns that have not ended.", lambda: _one(self.figures.turns))
        gauge(names.REFUSED, "Requests refused since the start.", lambda: _by("code", self.figures.refused))
        gauge(names.EXPORT_FAILURES, "Failed requests to the endpoint.", lambda: _one(self.figures.export_failures))

    def take(self, spans: Iterable[SpanRecord]) -> None:
        """Count and measure the spans of a turn."""
        for span in spans:
            seconds = (span.ended - span.began) / 1_000_000
            failed = {names.ERROR: span.error} if span.error else {}
            if names.TURN in span.attributes:
                self._take_turn(span, seconds)
            elif span.operation == names.CHAT:
                self._take_request(span, seconds, failed)
            elif span.operation == names.EXECUTE_TOOL:
                tool = self._tools.label(str(span.attributes[names.TOOL_NAME]))
                self._tool_seconds.record(seconds, {names.TOOL_NAME: tool, **failed})
            elif names.APPROVAL in span.attributes:
                status = str(span.attributes.get(names.APPROVAL_STATUS, "open"))
                self._approval_seconds.record(seconds, {"status": status})

    def _take_turn(self, span: SpanRecord, seconds: float) -> None:
        status = str(span.attributes.get(names.TURN_STATUS, OTHER))
        why = str(span.attributes.get(names.STOP_REASON, OTHER))
        self._turns.add(1, {"status": status, "stop_reason": why})
        self._turn_seconds.record(seconds, {"status": status})
        waited = span.attributes.get(names.QUEUE_WAIT_MS)
        if isinstance(waited, int | float):
            self._queue_seconds.record(waited / 1_000)

    def _take_request(self, span: SpanRecord, seconds: float, failed: dict[str, str]) -> None:
        model = f"{span.attributes[names.PROVIDER]}:{span.attributes[names.REQUEST_MODEL]}"
        provider, _, name = self._models.label(model).partition(":")
        labels = {names.OPERATION: names.CHAT, names.PROVIDER: provider, names.REQUEST_MODEL: name or OTHER}
        self._operation_seconds.record(seconds, {**labels, **failed})
        for kind, field in (("input", names.INPUT_TOKENS), ("output", names.OUTPUT_TOKENS)):
            count = span.attributes.get(field)
            if isinstance(count, int) and count:
                self._tokens.record(count, {**labels, names.TOKEN_TYPE: kind})

    def text(self) -> bytes:
        """Everything in the format of Prometheus; empty where `metrics_route` is off."""
        from prometheus_client import generate_latest

        return b"" if self._registry is None else generate_latest(self._registry)

    async def close(self) -> None:
        """Send what was not sent yet, if the endpoint takes it within a moment."""
        import asyncio

        with contextlib.suppress(Exception):
            async with asyncio.timeout(CLOSE_SECONDS):
                await in_thread(lambda: self._provider.shutdown(timeout_millis=CLOSE_SECONDS * 1_000))


def _one(number: int) -> "list[Observation]":
    from opentelemetry.metrics import Observation

    return [Observation(number)]


def _by(label: str, numbers: Mapping[str, int]) -> "list[Observation]":
    from opentelemetry.metrics import Observation

    return [Observation(number, {label: name}) for name, number in numbers.items()]


def open_meters(telemetry: Telemetry, headers: Mapping[str, str], resource: "Resource") -> Meters:
    """With a reader for each place that the owner's file names."""
    readers: list[MetricReader] = []
    registry = None
    if telemetry.metrics_route:
        from opentelemetry.exporter.prometheus import PrometheusMetricReader
        from prometheus_client import CollectorRegistry

        registry = CollectorRegistry()
        readers.append(PrometheusMetricReader(registry=registry, scope_info_enabled=False))
    if telemetry.endpoint and telemetry.metrics:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        exporter = OTLPMetricExporter(
            endpoint=f"{telemetry.endpoint.rstrip('/')}/v1/metrics",
            headers=dict(headers),
            timeout=telemetry.timeout_seconds,
        )
        readers.append(PeriodicExportingMetricReader(exporter))
    return Meters(readers, resource, registry)
