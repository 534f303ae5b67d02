"""Spans to where traces are kept, over OTLP or by any other exporter of the SDK.

A request runs in a thread of its own that nobody waits for when the process ends: an address that hangs holds up
nothing but the next request to it.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from wakeful._version import __version__
from wakeful.contracts.telemetry import Telemetry
from wakeful.views.span_names import ERROR
from wakeful.views.turn_spans import SpanMoment, SpanRecord

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

T = TypeVar("T")


class SpanSender:
    """Sends spans by an exporter of the SDK."""

    def __init__(self, exporter: "SpanExporter", resource: "Resource") -> None:
        self._exporter = exporter
        self._resource = resource

    async def send(self, spans: Sequence[SpanRecord]) -> bool:
        """False: they were not taken. Never raises for what the other side does."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        made = [self._span(each) for each in spans]
        try:
            return await in_thread(lambda: self._exporter.export(made)) is SpanExportResult.SUCCESS
        except Exception:
            return False

    def close(self) -> None:
        """Let go of a request that runs, and of the connection."""
        with contextlib.suppress(Exception):
            self._exporter.shutdown()

    def _span(self, record: SpanRecord) -> "ReadableSpan":
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        def context(span_id: int) -> SpanContext:
            return SpanContext(record.trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

        failed = {ERROR: record.error} if record.error else {}
        return ReadableSpan(
            record.name,
            context(record.span_id),
            None if record.parent_id is None else context(record.parent_id),
            self._resource,
            {**record.attributes, **failed},
            [_event(each) for each in record.moments],
            kind=SpanKind.CLIENT if record.kind == "client" else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR) if record.error else Status(StatusCode.UNSET),
            start_time=record.began * 1_000,
            end_time=record.ended * 1_000,
            instrumentation_scope=InstrumentationScope("wakeful", __version__),
        )


def _event(moment: SpanMoment) -> "Event":
    from opentelemetry.sdk.trace import Event

    return Event(moment.name, dict(moment.attributes), moment.at * 1_000)


def telemetry_resource(telemetry: Telemetry, instance: str) -> "Resource":
    """Who tells: the service and its version, and what `OTEL_RESOURCE_ATTRIBUTES` adds."""
    from opentelemetry.sdk.resources import Resource

    return Resource.create(
        {"service.name": telemetry.service_name, "service.version": __version__, "service.instance.id": instance}
    )


def otlp_sender(telemetry: Telemetry, headers: Mapping[str, str], resource: "Resource") -> SpanSender:
    """Over HTTP, to the endpoint of the owner's file."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    # A failed request is told once by whoever sends, and not with every try.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    exporter = OTLPSpanExporter(
        endpoint=f"{telemetry.endpoint.rstrip('/')}/v1/traces", headers=headers, timeout=telemetry.timeout_seconds
    )
    return SpanSender(exporter, resource)


async def in_thread(work: Callable[[], T]) -> T:
    """Do something that may hang. Whoever is cancelled meanwhile does not wait for it, and neither does the process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, problem: BaseException | None) -> None:
        if done.done():
            return
        if problem is not None:
            done.set_exception(problem)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, problem = None, None
        try:
            result = work()
        except Exception as error:
            problem = error
        with contextlib.suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(tell, result, problem)

    threading.Thread(target=run, name="wakeful-telemetry", daemon=True).start()
    return await done
