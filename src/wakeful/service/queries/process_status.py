"""The process that runs the agents: what it was started with, what it is at, and the newest failure."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from wakeful.engine.run_request import Engine
from wakeful.service.queries.agent_records import is_listed, lives_of
from wakeful.service.queries.doctor import DoctorReport
from wakeful.views.process_status import DrainStatus, ProcessFailure, RuntimeStatus, activity_of

WAITING = ("awaiting_task", "asleep")
NEWEST = 50
"""So many of the newest turns are looked at for a failure."""


@dataclass(slots=True)
class ServingProcess:
    """What a process knows of itself."""

    pid: int
    version: str
    home_dir: str
    store: str
    started_at: float
    shut_down: Callable[[str, float | None], None]
    """Ask it to end, in the name of somebody, and within so many seconds; None: as its settings say."""
    draining: Callable[[], DrainStatus | None] = lambda: None
    access: str = "local"
    socket_path: str | None = None
    http_addr: str | None = None
    public_url: str | None = None
    fingerprint: str = ""
    problems: Callable[[], list[str]] = field(default=list)
    refused: Callable[[], dict[str, int]] = field(default=dict)
    examine: Callable[[], Awaitable[DoctorReport]] | None = None
    """Look at everything and say how it is."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it ends: nobody waits any longer."""


async def process_status(process: ServingProcess, engine: Engine) -> RuntimeStatus:
    listed = [row for row in await engine.store.runtime_agents() if is_listed(row)]
    lives = await lives_of(engine, listed, is_page=False)
    waits = {wait.agent_id for wait in await engine.store.open_waits()}
    waiting = sum(bool(life.status in WAITING or life.waiting_for or name in waits) for name, life in lives.items())
    tasks = len(await engine.store.open_tasks())
    return RuntimeStatus(
        pid=process.pid,
        version=process.version,
        home_dir=process.home_dir,
        store=process.store,
        socket_path=process.socket_path,
        http_addr=process.http_addr,
        public_url=process.public_url,
        access=process.access,
        fingerprint=process.fingerprint,
        started_at=process.started_at,
        activity=activity_of([life.status for life in lives.values()], waiting, tasks),
        last_failure=await newest_failure(engine),
        problems=tuple(process.problems()),
        refused=process.refused(),
        draining=process.draining(),
    )


async def newest_failure(engine: Engine) -> ProcessFailure | None:
    """The newest turn of an agent that failed, among the newest ones."""
    store = engine.store
    for row in await store.turns(limit=NEWEST):
        if row.state == "failed" and await store.runtime_agent(row.agent_id) is not None:
            return ProcessFailure(
                occurred_at=(row.ended_at or row.created_at) / 1e6,
                summary=f"a turn of agent {row.agent_id} failed: {row.prompt_preview}",
                phase="runtime_turn",
                detail_hint=f"wakeful events {row.turn_id}",
            )
    return None
