"""A runtime is killed around an interjection: the message is in the log once, and a model has read it."""

from collections import Counter
from pathlib import Path

import pytest

from crash import interjecting_process
from crash.forked import Ended, run_forked
from wakeful.contracts.events import MessageAdmitted
from wakeful.store.sqlite import SqliteStore


def started(home: Path, kind: str = "-", when: str = "-") -> Ended:
    return run_forked(interjecting_process.main, home, kind, when)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_interjection_is_neither_lost_nor_doubled_over_a_kill(tmp_path: Path, when: str) -> None:
    killed = started(tmp_path, "turn.interjected", when)
    assert killed.returncode == -9, killed.said
    done = started(tmp_path)
    assert (done.returncode, done.said) == (0, "at rest\n"), done.said
    store = await SqliteStore.open(tmp_path / "runs.db")
    entries = await store.read("ops")
    messages = [entry.fact.event for entry in entries if isinstance(entry.fact.event, MessageAdmitted)]
    said = Counter(message.prompt_preview for message in messages)
    assert said == {"Work.": 1, "Leave the mail out.": 1}
    for message in messages:
        row = await store.message(message.message_id)
        assert row is not None and row.state == "processed"
    assert await store.busy_threads() == []
    await store.close()
