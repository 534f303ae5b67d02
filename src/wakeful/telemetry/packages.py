"""The packages of OpenTelemetry: are they there, and loaded before any agent has its tools?

A module that is imported later is looked for on the search path, where an agent may have written one of its name.
"""

from importlib import import_module
from importlib.util import find_spec

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.telemetry import Telemetry

INSTALL = "pip install 'wakeful[telemetry]'"
_SDK = (
    "opentelemetry.sdk",
    "opentelemetry.metrics",
    "opentelemetry.sdk.metrics",
    "opentelemetry.sdk.metrics.export",
    "opentelemetry.sdk.resources",
    "opentelemetry.sdk.trace",
    "opentelemetry.sdk.trace.export",
    "opentelemetry.sdk.util.instrumentation",
    "opentelemetry.trace",
)
_OTLP = (
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
)
_PROMETHEUS = ("opentelemetry.exporter.prometheus",)


def check_packages(telemetry: Telemetry) -> None:
    """Raises InvalidConfig, naming what to install, when telemetry is on and its packages are not there."""
    for name in _modules(telemetry):
        if not _is_there(name):
            raise InvalidConfig(f"[telemetry] needs the package {name}, which is not installed", INSTALL)


def load_packages(telemetry: Telemetry) -> None:
    """Load everything that this room uses of them. Raises InvalidConfig as `check_packages` does."""
    check_packages(telemetry)
    for name in _modules(telemetry):
        import_module(name)


def _modules(telemetry: Telemetry) -> tuple[str, ...]:
    if not telemetry.is_on:
        return ()
    return (*_SDK, *(_OTLP if telemetry.endpoint else ()), *(_PROMETHEUS if telemetry.metrics_route else ()))


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
