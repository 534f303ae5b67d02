"""What a runtime tells of itself, and where: traces, metrics, and its own log."""

from typing import Annotated, Literal

from pydantic import Field

from wakeful.contracts.values import Value


class Telemetry(Value):
    """Where traces and metrics of turns go. Blank: nowhere."""

    endpoint: str = Field("", pattern=r"^(https?://[^/\s?#]+(/[^\s?#]*)?)?$")
    """The beginning of an OTLP address over HTTP; `/v1/traces` and `/v1/metrics` are added."""
    headers_env: str = ""
    """The variable that holds headers for it, as `name=value,name=value`."""
    traces: bool = True
    """Spans are sent to the endpoint."""
    metrics: bool = True
    """Metrics are sent to the endpoint."""
    metrics_route: bool = False
    """`/metrics` of the daemon answers in the format of Prometheus."""
    content: bool = False
    """Spans hold what was said: messages, arguments and results, redacted and cut."""
    service_name: str = Field("wakeful", min_length=1, max_length=200)
    timeout_seconds: Annotated[float, Field(gt=0, le=120, allow_inf_nan=False)] = 10
    """How long one request to the endpoint may take."""

    @property
    def is_on(self) -> bool:
        return bool(self.endpoint) or self.metrics_route


class DaemonLog(Value):
    """How the daemon writes its own log."""

    format: Literal["text", "json"] = "text"
    """json: one object a line."""
    level: Literal["debug", "info", "warning", "error"] = "info"
