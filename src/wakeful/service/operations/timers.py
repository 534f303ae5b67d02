"""To have a timer run now: by the same path as its due time, in the name of whoever asks."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation, check_no_tool

if TYPE_CHECKING:
    from wakeful.views.runtime_records import TimerRecord


@dataclass(frozen=True, slots=True)
class TimerToRun:
    """A timer by its id, the beginning of it, its name, or the agent that has no other; and who wants it."""

    timer: str
    by: str = ""


async def _run(opened: OpenStore, asked: TimerToRun) -> "TimerRecord":
    from wakeful.runtime.timers import run_timer
    from wakeful.service.queries.runtime_agents import timer_record

    check_no_tool("the timers of agents")
    return timer_record(await run_timer(opened.engine, asked.timer, by=asked.by))


RUN_TIMER = Operation("runtime.run_timer", "operate", TimerToRun, "wakeful.views.runtime_records.TimerRecord", _run)
