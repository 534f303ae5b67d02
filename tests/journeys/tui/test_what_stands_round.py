"""What a person wants to know at a glance: round a call that waits, and of the calls of a turn that runs."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome, served
from kit.surfaces.watched_screen import watching
from wakeful import open_store
from wakeful.service.serving.options import ServeOptions


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    options = ServeOptions(port=0, tools=("kit.surfaces.asking_agents:agents",))
    with served(tmp_path_factory.mktemp("home"), options) as found:
        yield found


def asked(client: HomeClient) -> dict[str, Any]:
    """The approval that a message leads to, with another message behind it, once somebody was told."""
    (found,) = client.get("/approvals").body
    return dict(client.get(f"/approvals/{found['approval_id']}").body)


def typed(home: ServedHome, *words: str) -> str:
    line = [sys.executable, "-m", "wakeful.surfaces.cli", *words]
    return subprocess.run(line, env=home.environment, capture_output=True, text=True, timeout=60, check=True).stdout


def from_python(home: ServedHome, approval: str) -> object:
    with open_store(home.folder / "wakeful.db") as store:
        return store.approval(approval).model_dump(mode="json")


async def test_a_call_that_waits_says_who_was_told_what_was_read_and_what_waits_behind(
    home: ServedHome, client: HomeClient
) -> None:
    async with watching(home.socket, agent="asker") as screen:
        await screen.type("refund")
        await screen.until("1 NEEDS YOU (F6)")
        client.post("/agents/asker/messages", {"text": "and then this"})
        await screen.press("f6")
        shown = await screen.until("cat: delivered ")
        shown = await screen.until("behind it: your message ")
        assert "it had read: policy.md, limits.md, count_orders" in shown
        assert "Run refund(" not in shown.partition("Needs you ")[2].partition("Esc")[0], "said once is enough"

        found = asked(client)
        assert (found["told"]["to"], found["told"]["state"], found["waits_behind"]) == ("cat", "delivered", 1)
        told = typed(home, "approvals", "show", found["approval_id"])
        assert re.search(r"^  had read   policy.md, limits.md, count_orders$", told, re.M)
        assert re.search(r"^  told       cat, delivered at \S+ \S+$", told, re.M)
        assert re.search(r"^  behind it  operator_prompt of \S+ \S+$", told, re.M)
        assert await asyncio.to_thread(from_python, home, found["approval_id"]) == found

        client.post(f"/approvals/{found['approval_id']}/decision", {"decision": "rejected"})
        await screen.until("nothing needs you   today")
        after = client.get(f"/approvals/{found['approval_id']}").body
        assert (after["behind"], after["waits_behind"], after["had_read"]) == ([], 0, found["had_read"])


async def test_calls_of_a_turn_have_their_times_each_below_the_one_that_made_it(
    home: ServedHome, client: HomeClient
) -> None:
    async with watching(home.socket, agent="asker") as screen:
        await screen.type("/display verbose")
        await screen.type("dig gate")
        shown = await screen.until("   .. work_until")
        (parent,) = re.findall(r'^   \.\. run_subtask "who calls pay\(\)\?".*$', shown, re.M)
        assert re.search(r" \d+ s$", parent)
        (child,) = re.findall(r"^      \.\. work_until .*$", shown, re.M)
        assert re.search(r" \d+ s$", child)
        assert len(shown.splitlines()) <= 24
        assert "turn $0.00, 2 of 200 calls" in await screen.until("turn $0.00, 2 of")
        (Path(home.folder) / "gate").touch()
        await screen.until("asker finished")
        await screen.gone("   .. work_until")
