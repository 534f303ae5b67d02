"""A runtime is killed while deliveries come in, and their sender tries again: each is in the log once, and answered."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from wakeful.contracts.events import MessageAdmitted, TriggerDelivered, WakeHintStored
from wakeful.store.sqlite import SqliteStore

PROGRAM = Path(__file__).with_name("trigger_process.py")
DELIVERIES = 4


def started(home: Path, kind: str = "-", when: str = "-") -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(PROGRAM), str(home), kind, when]
    return subprocess.run(line, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["trigger.created", "trigger.delivered", "wake_hint.triggered", "message.admitted"])
async def test_every_accepted_delivery_is_in_the_log_once_over_kills(tmp_path: Path, kind: str, when: str) -> None:
    kills = 1 if kind == "trigger.created" or when == "before" else 3
    for _ in range(kills):
        killed = started(tmp_path, kind, when)
        assert killed.returncode == -9, killed.stderr
    done = started(tmp_path)
    assert (done.returncode, done.stdout) == (0, "at rest\n"), done.stderr
    store = await SqliteStore.open(tmp_path / "runs.db")
    events = [entry.fact.event for entry in await store.read("ops")]
    delivered = Counter(event.delivery_id for event in events if isinstance(event, TriggerDelivered))
    assert set(delivered) == {f"key:build-{number}" for number in range(DELIVERIES)}
    assert sum(delivered.values()) == 2 * DELIVERIES, "once at each of the two triggers"
    brought = {event.hint_id for event in events if isinstance(event, WakeHintStored)} | {
        event.message_id
        for event in events
        if isinstance(event, MessageAdmitted) and event.message_kind == "callback_event"
    }
    acknowledged = set((tmp_path / "accepted").read_text().split())
    assert acknowledged == brought and len(brought) == 2 * DELIVERIES
    for event in events:
        if isinstance(event, MessageAdmitted):
            row = await store.message(event.message_id)
            assert row is not None and row.state == "processed"
    assert [(row.name, row.deliveries) for row in await store.triggers("ops")] == [("", 4), ("ci", 4)]
    await store.close()
