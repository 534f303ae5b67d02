"""What may be asked of the process that runs the agents: how it is, its metrics, and to shut down."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import NoRequest, OpenStore, Operation, check_no_tool

if TYPE_CHECKING:
    from wakeful.service.queries.doctor import DoctorReport
    from wakeful.service.queries.process_status import ServingProcess
    from wakeful.views.process_status import MetricsText, RuntimeStatus

_STATUS = "wakeful.views.process_status.RuntimeStatus"


@dataclass(frozen=True, slots=True)
class StatusQuestion:
    """How the process is."""


@dataclass(frozen=True, slots=True)
class DoctorQuestion:
    """Is anything wrong with the installation, its providers or the store? All of the store is read."""


@dataclass(frozen=True, slots=True)
class ShutdownRequest:
    """Begin nothing more, let what is under way end, and end. Agents stay as they are, and go on at the next start."""

    by: str = ""
    drain: float | None = None
    """Seconds that calls of models and tools under way have to end in; 0: none. None: as `[daemon] drain` says."""


async def _status(opened: OpenStore, asked: StatusQuestion) -> "RuntimeStatus":
    from wakeful.service.queries.process_status import process_status

    return await process_status(_serving(opened), opened.engine)


async def _doctor(opened: OpenStore, asked: DoctorQuestion) -> "DoctorReport":
    from wakeful.contracts.errors import InvalidRequest

    examine = opened.process.examine if opened.process is not None else None
    if examine is None:
        raise InvalidRequest("no process serves this store", "Ask it from the terminal: wakeful doctor")
    return await examine()


async def _shutdown(opened: OpenStore, asked: ShutdownRequest) -> "RuntimeStatus":
    from wakeful.service.queries.process_status import process_status
    from wakeful.service.serving.options import check_drain

    check_no_tool("the runtime")
    check_drain(asked.drain)
    process = _serving(opened)
    status = await process_status(process, opened.engine)
    process.shut_down(asked.by, asked.drain)
    return status


async def _metrics(opened: OpenStore, asked: NoRequest) -> "MetricsText":
    from wakeful.service.telemetry import metrics_are_off
    from wakeful.views.process_status import MetricsText

    reader = opened.living.telemetry if opened.living is not None else None
    if reader is None:
        raise metrics_are_off()
    return MetricsText(text=(await reader.metrics()).decode())


def _serving(opened: OpenStore) -> "ServingProcess":
    from wakeful.contracts.errors import InvalidRequest

    if opened.process is None:
        raise InvalidRequest("no process serves this store", "Start one: wakeful daemon start")
    return opened.process


PROCESS_STATUS = Operation("runtime.process", "observe", StatusQuestion, _STATUS, _status)
DOCTOR = Operation("runtime.doctor", "observe", DoctorQuestion, "wakeful.service.queries.doctor.DoctorReport", _doctor)
SHUT_DOWN = Operation("runtime.shutdown", "operate", ShutdownRequest, _STATUS, _shutdown)
METRICS = Operation("runtime.metrics", "observe", NoRequest, "wakeful.views.process_status.MetricsText", _metrics)
