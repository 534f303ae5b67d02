"""One agent's log is damaged while it is in the middle of a turn: the daemon starts, and everybody else is served."""

import contextlib
import sqlite3
import subprocess
import time
from collections.abc import Iterator

import pytest

from kit.surfaces.command_line import command_line
from kit.surfaces.served_home import ServedHome, served


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    with served(tmp_path_factory.mktemp("home")) as found:
        sent = found.client.post("/agents/clerk/messages", {"text": "hold never"}).body
        ends = time.monotonic() + 60
        while found.client.get(f"/messages/{sent['message_id']}").body["turn_id"] is None and time.monotonic() < ends:
            time.sleep(0.05)
        found.kill()
        with (
            contextlib.closing(sqlite3.connect(found.folder / "wakeful.db")) as store,
            store,
        ):  # as a failing disk would
            (agent,) = store.execute("SELECT id FROM agents WHERE agent_id = 'clerk'").fetchone()
            store.execute("UPDATE appends SET body = zeroblob(length(body)) WHERE id >> 40 = ?", (agent,))
        yield found.start()


def test_the_overview_and_the_costs_of_all_agents_leave_its_turn_out_and_say_so(home: ServedHome) -> None:
    overview = home.client.get("/overview")
    assert overview.status == 200, overview
    assert {line["agent"]: line["spent_is_complete"] for line in overview.body["agents"]} == {
        "clerk": False,
        "keeper": True,
    }
    costs = home.client.get("/cost?by=agent")
    assert costs.status == 200, costs
    assert (costs.body["unread"], costs.body["cost_complete"]) == ({"clerk": 1}, False)
    shown = subprocess.run(command_line("cost"), env=home.environment, capture_output=True, text=True, check=True)
    assert "damaged  1 turn of clerk cannot be read" in shown.stdout


@pytest.mark.parametrize("control", ["paused", "stopped"])
def test_everything_is_held_and_let_go_on(home: ServedHome, control: str) -> None:
    for each in (control, "running"):
        told = home.client.post("/control/runtime/hold", {"control": each})
        assert told.status == 200, told
    sent = home.client.post("/agents/keeper/messages", {"text": "hello", "thread": control}).body
    assert home.client.until_ended(sent)["state"] == "completed"
