"""A runtime is killed between the delivery of a notice and its fact: it is delivered again, with the same id."""

import json
from pathlib import Path

import pytest

from crash import notice_process
from crash.forked import Ended, run_forked
from wakeful.store.sqlite import SqliteStore


def started(home: Path, minutes: int, kind: str = "-", when: str = "-") -> Ended:
    return run_forked(notice_process.main, home, minutes, kind, when)


@pytest.mark.parametrize(("when", "deliveries"), [("before", 2), ("after", 1)])
async def test_a_notice_is_delivered_at_least_once_with_one_id_over_a_kill(
    tmp_path: Path, when: str, deliveries: int
) -> None:
    killed = started(tmp_path, 0, "notice.attempted", when)
    assert killed.returncode == -9, killed.said
    for minutes in (5, 10):
        done = started(tmp_path, minutes)
        assert (done.returncode, done.said) == (0, "at rest\n"), done.said
    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    assert len(told) == deliveries
    store = await SqliteStore.open(tmp_path / "runs.db")
    (notice,) = await store.notices()
    assert {each["notice_id"] for each in told} == {notice.notice_id}
    assert (notice.state, notice.attempts) == ("delivered", 1)
    assert await store.next_wake() is None
    await store.close()
