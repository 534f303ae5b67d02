"""How an agent of a runtime stands: a view of its rows, made when somebody asks. Nothing of it is stored.

`status` says whether it runs, and why not. It is no proof that work is finished: that is the closure's to say.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from wakeful.contracts.events.agents import AgentControl
from wakeful.contracts.waking import WaitWake

LifeStatus: TypeAlias = Literal[
    "booting", "awake_idle", "awake_running", "awaiting_task", "asleep", "paused", "stopped"
]
"""booting: it was made, and no definition of it is in force yet. awake_idle: ready to run. awake_running: a turn of it
runs. awaiting_task: it waits for the result of a task. asleep: it waits for something else, or for a time. paused:
everything is kept, and nothing runs. stopped: what comes from outside is refused, until somebody resumes it."""


class StatusFacts(NamedTuple):
    """What the status rests on."""

    control: AgentControl
    has_definition: bool
    is_running: bool
    """A turn of it is under way, and somebody holds its thread."""
    waits: Sequence[WaitWake] = ()
    """What ends its open waits."""


def status_of(facts: StatusFacts) -> LifeStatus:
    """The first that applies: an operator's word, then what happens, then what is waited for."""
    if facts.control != "running":
        return facts.control
    if not facts.has_definition:
        return "booting"
    if facts.is_running:
        return "awake_running"
    if "task_result" in facts.waits:
        return "awaiting_task"
    return "asleep" if facts.waits else "awake_idle"
