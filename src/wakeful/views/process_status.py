"""The process that runs the agents, as clients see it. Times are Unix seconds."""

from typing import Literal, TypeAlias

from wakeful.contracts.values import Value

Activity: TypeAlias = Literal["idle", "waiting", "processing"]
"""processing: a public agent is booting or running. waiting: none is, and something that can be seen is waited for.
idle: neither."""
FailurePhase: TypeAlias = Literal["startup", "shutdown", "runtime_turn"]
MOST_SHOWN = 3
"""Calls of a kind that are named one by one."""


class RuntimeActivity(Value):
    """What the runtime is at, in numbers."""

    state: Activity
    active_agent_count: int = 0
    """Public agents that may run."""
    active_task_count: int = 0
    processing_agent_count: int = 0
    """Public agents that are booting or running."""
    waiting_agent_count: int = 0
    """Public agents that wait for something: a task, an answer, a time."""


class ProcessFailure(Value):
    """The newest failure that is known."""

    occurred_at: float
    summary: str
    phase: FailurePhase
    detail_hint: str = ""
    """How to learn more."""


class WaitedFor(Value):
    """A call under way, in a process that drains."""

    agent_id: str
    tool: str = ""
    """The tool that is called; blank: a model is asked."""
    seconds: float
    """For how long it has been under way."""


class DrainStatus(Value):
    """A process that ends once what is under way has ended."""

    seconds_left: float
    """After them it ends in any case."""
    waits_for: tuple[WaitedFor, ...] = ()


class RuntimeStatus(Value):
    """The process that runs the agents of a home."""

    pid: int
    version: str
    home_dir: str
    store: str
    socket_path: str | None = None
    http_addr: str | None = None
    """Where it listens on the network; None: nowhere."""
    public_url: str | None = None
    access: str = "local"
    fingerprint: str = ""
    """Of the settings that it was started with."""
    started_at: float
    activity: RuntimeActivity
    last_failure: ProcessFailure | None = None
    problems: tuple[str, ...] = ()
    """Files of agents that could not be loaded."""
    refused: dict[str, int] = {}
    """Requests that were refused at the door since it was started, by the code of their error."""
    draining: DrainStatus | None = None
    """None: nobody has asked it to end."""


class MetricsText(Value):
    """What is counted and measured, as Prometheus reads it."""

    text: str


def activity_of(statuses: list[str], waiting: int, tasks: int) -> RuntimeActivity:
    """From how the public agents stand, how many of them wait for something, and the tasks that run."""
    processing = sum(status in ("booting", "awake_running") for status in statuses)
    state: Activity = "processing" if processing else "waiting" if waiting or tasks else "idle"
    return RuntimeActivity(
        state=state,
        active_agent_count=sum(status not in ("paused", "stopped") for status in statuses),
        active_task_count=tasks,
        processing_agent_count=processing,
        waiting_agent_count=waiting,
    )


def drain_words(draining: DrainStatus) -> str:
    """`waiting for 1 model call (agent ops, 34 s), at most 86 s`"""
    by_kind: dict[str, list[WaitedFor]] = {}
    for each in draining.waits_for:
        by_kind.setdefault(f"call of {each.tool}" if each.tool else "model call", []).append(each)
    kinds = []
    for kind, found in by_kind.items():
        many = kind.replace("call", "calls", 1) if len(found) > 1 else kind
        longest = sorted(found, key=lambda each: -each.seconds)
        shown = [f"agent {each.agent_id}, {each.seconds:.0f} s" for each in longest[:MOST_SHOWN]]
        more = [f"{len(found) - MOST_SHOWN} more"] if len(found) > MOST_SHOWN else []
        kinds.append(f"{len(found)} {many} ({'; '.join([*shown, *more])})")
    return f"waiting for {' and '.join(kinds) or 'what is under way'}, at most {draining.seconds_left:.0f} s"
