"""What the runtime tells of itself: `[telemetry]` and `[log]` in `wakeful.toml`. Both are read when a runtime starts.

[telemetry]
endpoint = "http://127.0.0.1:4318"   # OTLP over HTTP
metrics_route = true                 # /metrics, for Prometheus

[log]
format = "json"
"""

import os
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import ValidationError

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.telemetry import DaemonLog, Telemetry
from wakeful.contracts.values import Value
from wakeful.settings.owner_file import OwnerFile, check_names, owner_file

TELEMETRY, LOG = "telemetry", "log"
OF_THE_ENDPOINT = ("headers_env", "traces", "metrics", "content", "timeout_seconds")
T = TypeVar("T", bound=Value)


def owner_telemetry(environ: Mapping[str, str] = os.environ, file: OwnerFile | None = None) -> Telemetry:
    """What the owner's file says. Raises InvalidConfig with the place."""
    file = owner_file(environ) if file is None else file
    table = file.table(TELEMETRY)
    found = _read(Telemetry, TELEMETRY, table, file)
    idle = [name for name in OF_THE_ENDPOINT if name in table and not found.endpoint]
    if idle:
        raise InvalidConfig(
            f"{file.path}: [{TELEMETRY}] {idle[0]} has no effect without an endpoint",
            'Add endpoint = "http://127.0.0.1:4318", or take the line out.',
        ).within(TELEMETRY, idle[0])
    if found.content and not found.traces:
        raise InvalidConfig(
            f"{file.path}: [{TELEMETRY}] content has no effect without traces", "Take traces = false out."
        ).within(TELEMETRY, "content")
    if found.endpoint and not (found.traces or found.metrics):
        raise InvalidConfig(
            f"{file.path}: [{TELEMETRY}] endpoint has no effect: traces and metrics are both false",
            "Take one of them out.",
        ).within(TELEMETRY, "metrics")
    return found


def owner_log(environ: Mapping[str, str] = os.environ, file: OwnerFile | None = None) -> DaemonLog:
    """What the owner's file says. Raises InvalidConfig with the place."""
    file = owner_file(environ) if file is None else file
    return _read(DaemonLog, LOG, file.table(LOG), file)


def endpoint_headers(telemetry: Telemetry, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Headers for the endpoint. Raises InvalidConfig for a variable that is not set or holds something else."""
    if not telemetry.headers_env:
        return {}
    said = environ.get(telemetry.headers_env, "")
    if not said:
        raise InvalidConfig(
            f"[{TELEMETRY}] names the variable {telemetry.headers_env}, which is not set",
            f"Set {telemetry.headers_env}.",
        )
    found = {}
    for part in said.split(","):
        name, is_one, value = part.partition("=")
        if not is_one or not name.strip():  # its value is a secret, and is not shown
            raise InvalidConfig(f"{telemetry.headers_env} does not hold headers", "Write name=value,name=value there.")
        found[name.strip().lower()] = value.strip()
    return found


def place_of(endpoint: str) -> str:
    """Where an address leads, without what may be secret in it: names, passwords, paths."""
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _read(kind: type[T], section: str, table: Mapping[str, Any], file: OwnerFile) -> T:
    where = f"{file.path}: [{section}]"
    check_names(table, tuple(kind.model_fields), f"{where} has", section)
    try:
        return kind.model_validate(dict(table), strict=True)
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        said = "its value" if field == "endpoint" else repr(table[field])  # an address may hold a password
        hint = 'Write an address such as "http://127.0.0.1:4318".' if field == "endpoint" else error.errors()[0]["msg"]
        raise InvalidConfig(f"{where} {field} cannot be {said}", hint).within(section, field) from None
