"""A runtime is killed while deliveries come in, and their sender tries again: each is in the log once, and answered."""

from collections import Counter
from pathlib import Path

import pytest

from crash import trigger_process
from crash.forked import Ended, run_forked
from wakeful.contracts.events import MessageAdmitted, TriggerDelivered, WakeHintStored
from wakeful.store.sqlite import SqliteStore

DELIVERIES = 4


def started(home: Path, kind: str = "-", when: str = "-") -> Ended:
    return run_forked(trigger_process.main, home, kind, when)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["trigger.created", "trigger.delivered", "wake_hint.triggered", "message.admitted"])
async def test_every_accepted_delivery_is_in_the_log_once_over_kills(tmp_path: Path, kind: str, when: str) -> None:
    kills = 1 if kind == "trigger.created" or when == "before" else 3
    for _ in range(kills):
        killed = started(tmp_path, kind, when)
        assert killed.returncode == -9, killed.said
    done = started(tmp_path)
    assert (done.returncode, done.said) == (0, "at rest\n"), done.said
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
