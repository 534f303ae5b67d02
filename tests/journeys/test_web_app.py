"""`examples/web_app.py` under uvicorn with two workers: 50 users, approvals by HTTP, a restart in the middle."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from kit.wires.loopback import free_port

USERS = [f"user-{number}" for number in range(50)]
SAID = {"message_id": "1", "text": "Order A17 arrived broken."}


@asynccontextmanager
async def served(root: Path, folder: Path) -> AsyncIterator[httpx2.AsyncClient]:
    """The app with two workers, as its page starts it, until the block ends."""
    port = free_port()
    words = ["--app-dir", str(root / "examples"), "web_app:app", "--workers", "2", "--port", str(port)]
    server = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", *words, "--log-level", "warning"],
        cwd=folder,
        env={**os.environ, "SHOP_STORE": str(folder / "shop.db")},
        start_new_session=True,
    )
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=240) as client:
            await _is_up(client, server)
            yield client
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


async def _is_up(client: httpx2.AsyncClient, server: "subprocess.Popen[bytes]") -> None:
    while True:
        assert server.poll() is None, "the server ended"
        try:
            await client.get("/openapi.json")
            return
        except httpx2.TransportError:
            await asyncio.sleep(0.1)


async def chat(client: httpx2.AsyncClient, user: str) -> Any:
    answer = await client.post(f"/chat/{user}", params=SAID)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_fifty_users_are_answered_over_a_restart_once_a_colleague_approved(root: Path, tmp_path: Path) -> None:
    async with served(root, tmp_path) as client:
        waiting = await asyncio.gather(*(chat(client, user) for user in USERS))
        assert {each["status"] for each in waiting} == {"approval_required"}
        pending = (await client.get("/approvals")).json()
        assert [each["tool"] for each in pending] == ["refund"] * len(USERS)
    async with served(root, tmp_path) as client:  # both workers were killed
        assert (await client.get("/approvals")).json() == pending
        decided = [await client.post(f"/approvals/{each['id']}/approve", params={"by": "ann"}) for each in pending]
        assert [each.json() for each in decided] == [{"status": "approved"}] * len(USERS)
        twice = await client.post(f"/approvals/{pending[0]['id']}/approve", params={"by": "bob"})
        assert twice.status_code == 409 and "app:ann" in twice.text
        answered = await asyncio.gather(*(chat(client, user) for user in USERS))
        assert answered == [{"status": "completed", "text": "Your refund is on its way."}] * len(USERS)
        assert await asyncio.gather(*(chat(client, user) for user in USERS)) == answered
        assert (await client.get("/approvals")).json() == []
