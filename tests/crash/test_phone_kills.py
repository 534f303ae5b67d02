"""A runtime is killed at a commit while somebody answers and approves on a phone, and started again.

Wherever it is: each question is decided once, by the phone, the effect happens once, everything that the phone wanted
is settled, and the phone says what was decided.
"""

import json
import os
import random
from datetime import UTC, datetime
from pathlib import Path

from crash import phone_process
from crash.forked import run_forked
from kit.wires.phone_servers import NtfyServer, listening
from wakeful.contracts.events import ActionResolved, ChannelInputReceived, ChannelInputSettled, ToolResult
from wakeful.contracts.events.holds import RUNTIME_STREAM
from wakeful.store.sqlite import SqliteStore
from wakeful.testing.crash_switch import KillPoint

SEED = int(os.environ.get("WAKEFUL_KILL_SEED", datetime.now(UTC).toordinal()))
POINTS = int(os.environ.get("WAKEFUL_KILL_POINTS", "2"))
"""Kills; 0: all there are."""


def lived(folder: Path, server: str, *point: str) -> int:
    """One process of the runtime, to its end; the status that it ended with."""
    folder.mkdir(exist_ok=True)
    place = KillPoint(point[0], int(point[1]), point[2]) if point else None  # type: ignore[arg-type]
    return run_forked(phone_process.main, folder, server, place).returncode


async def check(folder: Path, ntfy: NtfyServer) -> None:
    store = await SqliteStore.open(folder / "wakeful.db")
    try:
        own = [entry.fact.event for entry in await store.read("clerk")]
        runtime = [entry.fact.event for entry in await store.read(RUNTIME_STREAM)]
    finally:
        await store.close()
    decided = [each for each in own if isinstance(each, ActionResolved)]
    assert [(each.decision, each.resolver) for each in decided] == [
        ("answer", "channel:ntfy:phone"),
        ("approve", "channel:ntfy:phone"),
    ]
    assert [each.item.text for each in own if isinstance(each, ToolResult)] == ["Friday", "paid on Friday"]
    assert len((folder / "bank").read_text().splitlines()) == 1
    wanted = [each.input_id for each in runtime if isinstance(each, ChannelInputReceived)]
    settled = [each.input_id for each in runtime if isinstance(each, ChannelInputSettled)]
    assert len(set(wanted)) == len(wanted) and sorted(wanted) == sorted(settled)
    shown = [each["message"] for each in ntfy.shown((folder / "topic").read_text().rpartition("/")[2])]
    for words in ("ask_person: answered by channel:ntfy:phone", "pay: approved by channel:ntfy:phone"):
        assert any(words in text for text in shown), (words, shown)


async def test_a_runtime_that_is_killed_between_a_press_and_its_decision_decides_once(tmp_path: Path) -> None:
    with listening(NtfyServer()) as ntfy:
        whole = tmp_path / "whole"
        assert lived(whole, ntfy.url) == 0
        await check(whole, ntfy)
        points = [tuple(map(str, each)) for each in json.loads((whole / "points.json").read_text())]
        assert len(points) > 20
        chosen = random.Random(SEED).sample(points, min(POINTS, len(points))) if POINTS else points
        print(f"again: WAKEFUL_KILL_SEED={SEED} pytest tests/crash/test_phone_kills.py")  # noqa: T201
        killed = 0
        for number, point in enumerate(chosen):
            folder = tmp_path / str(number)
            status = lived(folder, ntfy.url, *point)
            assert status in (-9, 0), point  # a commit that another one was joined to is not reached
            killed += status == -9
            if status:
                assert lived(folder, ntfy.url) == 0, point
            await check(folder, ntfy)
        assert killed
        print(f"{killed} kills at {len(chosen)} of {len(points)} points")  # noqa: T201
