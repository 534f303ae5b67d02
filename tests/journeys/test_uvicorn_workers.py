"""A web app under `uvicorn --workers 4`: one store, one agent, a thread for every user, with and without kills.

WAKEFUL_UVICORN_USERS=200 is the whole of it; the normal run is a small share of that.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kit.surfaces.served_home import python_path
from kit.wires.loopback import free_port
from wakeful.contracts.events import MessageAdmitted
from wakeful.store.sqlite import SqliteStore

WORKERS = 4
USERS = int(os.environ.get("WAKEFUL_UVICORN_USERS", "16"))
MESSAGES = 2


class Server:
    """uvicorn with its workers, which are its children and known by their replies."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.said = folder / "uvicorn.txt"
        here = Path(__file__).parent
        around = {**os.environ, "SHOP_FOLDER": str(folder), "PYTHONPATH": python_path(here)}
        command = [sys.executable, "-m", "uvicorn", "shop_app:app", "--workers", str(WORKERS), "--host", "127.0.0.1"]
        command += ["--timeout-worker-healthcheck", "30"]  # a machine that is busy is no reason to kill a worker
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), "--log-level", "warning"], env=around, stdout=said, stderr=said
            )
        self.workers: set[int] = set()

    def heard(self, told: dict[str, Any]) -> str:
        """The answer; which worker gave it is noted."""
        assert told["server"] == self.process.pid
        self.workers.add(told["worker"])
        answer: str = told.get("answer", "")
        return answer

    def kill(self, chance: random.Random) -> None:
        """Kill a worker that answered before. uvicorn starts another one in its place."""
        worker = chance.choice(self.living())
        self.workers.discard(worker)
        os.kill(worker, signal.SIGKILL)

    def living(self) -> list[int]:
        """The workers that answered before and are there: an answer may come from one that was killed since."""
        return sorted(filter(self._is_child, self.workers))

    def _is_child(self, pid: int) -> bool:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except FileNotFoundError:
            return False
        state, parent = stat.rpartition(")")[2].split()[:2]
        return int(parent) == self.process.pid and state != "Z"

    async def stop(self) -> None:
        """As a person does it: the workers close their stores and end with it."""
        self.process.terminate()
        await asyncio.to_thread(self.process.wait)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Server]:
    server = Server(folder)
    try:
        yield server
    finally:
        await server.stop()


class Clients:
    """Everybody who writes to the shop. Whoever loses a connection sends the same message again."""

    def __init__(self, server: Server, client: httpx2.AsyncClient) -> None:
        self._server = server
        self._client = client
        self.answers: dict[str, str] = {}
        self._news = asyncio.Condition()

    async def ask(self, **params: str) -> str:
        while True:
            try:
                reply = await self._client.post("/", params=params)
            except httpx2.TransportError:  # nobody listens yet, or the worker was killed
                assert self._server.process.poll() is None, self._server.said.read_text()
                await asyncio.sleep(0.05)
                continue
            assert reply.status_code == 200, self._server.said.read_text()
            return self._server.heard(reply.json())

    async def send(self, user: str, key: str) -> None:
        self.answers[key] = await self.ask(user=user, key=key)
        async with self._news:
            self._news.notify_all()

    async def come_to(self, answers: int) -> None:
        """So many are there, and a worker is known."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.answers) >= answers and self._server.living())

    async def meet_workers(self) -> None:
        while len(self._server.workers) < WORKERS:
            await self.ask()


def keys_of(users: int) -> list[tuple[str, str]]:
    """The messages of all users: those of one user are sent together, and queue between the workers."""
    return [(f"user_{user}", f"user_{user}_message_{each}") for each in range(MESSAGES) for user in range(users)]


@pytest.mark.parametrize("kills", [0, 2 if USERS < 200 else 20])
async def test_an_app_with_four_workers_answers_every_user_once(tmp_path: Path, kills: int) -> None:
    messages, chance = keys_of(USERS), random.Random(kills)
    async with serving(tmp_path) as server:
        limits = httpx2.Limits(max_keepalive_connections=0)  # each request may come to another worker
        where = f"http://127.0.0.1:{server.port}"
        async with httpx2.AsyncClient(base_url=where, limits=limits, timeout=None, trust_env=False) as client:
            clients = Clients(server, client)
            await clients.meet_workers()
            async with asyncio.TaskGroup() as everybody:
                for user, key in messages:
                    everybody.create_task(clients.send(user, key))
                for kill in range(kills):
                    await clients.come_to((kill + 1) * len(messages) // (kills + 2))
                    server.kill(chance)

    keys = {key for _, key in messages}
    unknown = {key for key, told in clients.answers.items() if told == f"completed 1 {key} is done"}
    assert clients.answers == {key: f"completed {int(key in unknown)} {key} is done" for key in keys}
    done = Counter((tmp_path / "world").read_text().splitlines())
    assert set(done.values()) == {1}, "no effect twice"
    assert keys - unknown <= done.keys(), "what is known to have happened did"
    if not kills:
        assert not unknown and server.said.read_text() == "", "without an error or a warning"
    assert "Traceback" not in server.said.read_text()

    store = await SqliteStore.open(tmp_path / "runs.db")
    facts = [entry.fact.event for entry in await store.read("shop")]
    assert Counter(event.key for event in facts if isinstance(event, MessageAdmitted)) == Counter(keys)
    for user in {user for user, _ in messages}:
        rows = await store.turns_of_thread("shop", user)
        assert [(row.turn_index, row.is_open) for row in rows] == [(each + 1, False) for each in range(MESSAGES)]
    assert await store.verify() == []
    await store.close()
