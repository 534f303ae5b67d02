"""Are the packages of OpenTelemetry there? Asked before anything of them is loaded."""

from importlib.util import find_spec

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.telemetry import Telemetry

INSTALL = "pip install 'wakeful[telemetry]'"


def check_packages(telemetry: Telemetry) -> None:
    """Raises InvalidConfig, naming what to install, when telemetry is on and its packages are not there."""
    needed = []
    if telemetry.is_on:
        needed.append("opentelemetry.sdk")
    if telemetry.endpoint:
        needed.append("opentelemetry.exporter.otlp.proto.http")
    if telemetry.metrics_route:
        needed.append("opentelemetry.exporter.prometheus")
    for name in needed:
        if not _is_there(name):
            raise InvalidConfig(f"[telemetry] needs the package {name}, which is not installed", INSTALL)


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
