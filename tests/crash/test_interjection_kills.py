"""A runtime is killed around an interjection: the message is in the log once, and a model has read it."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from wakeful.contracts.events import MessageAdmitted
from wakeful.store.sqlite import SqliteStore

PROGRAM = Path(__file__).with_name("interjecting_process.py")


def started(home: Path, kind: str = "-", when: str = "-") -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(PROGRAM), str(home), kind, when]
    return subprocess.run(line, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_interjection_is_neither_lost_nor_doubled_over_a_kill(tmp_path: Path, when: str) -> None:
    killed = started(tmp_path, "turn.interjected", when)
    assert killed.returncode == -9, killed.stderr
    done = started(tmp_path)
    assert (done.returncode, done.stdout) == (0, "at rest\n"), done.stderr
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
