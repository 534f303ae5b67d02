"""Workers on one store, with the threads of one agent spread over them, killed at random and started again.

WAKEFUL_WORKER_KILLS=N kills N times among 200 users; the normal run is a small share of that.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from wakeful.contracts.events import MessageAdmitted, Terminal
from wakeful.store.sqlite import SqliteStore

PROGRAM = Path(__file__).with_name("worker.py")
WORKERS = 4
KILLS = int(os.environ.get("WAKEFUL_WORKER_KILLS", "4"))
USERS, MESSAGES = (200, 3) if KILLS > 4 else (12, 2)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


class Workers:
    """Four processes, each started again when it was killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes = [self._start(number) for number in range(WORKERS)]

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        given = [str(self._folder), *map(str, (number, WORKERS, USERS, MESSAGES))]
        with (self._folder / f"errors_{number}").open("ab") as errors:
            return subprocess.Popen([sys.executable, str(PROGRAM), *given], stderr=errors)

    def kill(self, number: int) -> bool:
        """Kill it, however far it is, and start it again. False when it had come to its end."""
        process = self._processes[number]
        process.send_signal(signal.SIGKILL)
        killed = process.wait() == -signal.SIGKILL
        self._processes[number] = self._start(number)
        return killed

    def wait(self) -> list[int]:
        return [process.wait() for process in self._processes]

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def said(self) -> str:
        return "".join((self._folder / f"errors_{number}").read_text() for number in range(WORKERS))


def come_to(workers: Workers, folder: Path, answers: int) -> None:
    while len(lines(folder / "answers")) < answers and not workers.said():
        time.sleep(0.005)


@pytest.mark.parametrize("seed", range(max(1, KILLS // 40)))
async def test_whichever_worker_is_killed_every_message_is_answered_once_and_nothing_is_done_twice(
    tmp_path: Path, seed: int
) -> None:
    chance, kills, killed = random.Random(seed), min(KILLS, 40), 0
    workers = Workers(tmp_path)
    try:
        for kill in range(kills):
            come_to(workers, tmp_path, (kill + 1) * USERS * MESSAGES // (kills + 2))
            killed += workers.kill(chance.randrange(WORKERS))
        assert (workers.wait(), workers.said()) == ([0] * WORKERS, "")
    finally:
        workers.end()
    assert killed

    keys = {f"user_{user}_message_{message}" for user in range(USERS) for message in range(MESSAGES)}
    answered: dict[str, set[str]] = {}
    for line in lines(tmp_path / "answers"):
        key, _, told = line.split(" ", 2)
        answered.setdefault(key, set()).add(told)
    assert answered.keys() == keys and all(len(told) == 1 for told in answered.values()), "all hear the same"
    unknown = {key for key, (told,) in answered.items() if told == f"completed 1 {key} is done"}
    assert {told for key, (told,) in answered.items() if key not in unknown} == {
        f"completed 0 {key} is done" for key in keys - unknown
    }
    done = Counter(lines(tmp_path / "world"))
    assert set(done.values()) == {1}, "no effect twice"
    assert keys - unknown <= done.keys(), "what is known to have happened did"

    store = await SqliteStore.open(tmp_path / "runs.db")
    facts = [entry.fact for entry in await store.read("shop")]
    admitted = [fact.event.key for fact in facts if isinstance(fact.event, MessageAdmitted)]
    assert Counter(admitted) == Counter(keys)
    assert Counter(fact.turn_id for fact in facts if isinstance(fact.event, Terminal)).most_common(1)[0][1] == 1
    for user in range(USERS):
        rows = await store.turns_of_thread("shop", f"user_{user}")
        assert [row.turn_index for row in rows] == list(range(1, MESSAGES + 1)), "in the order they were admitted"
        ended = [row.ended_at for row in rows if row.ended_at is not None]
        assert len(ended) == MESSAGES and ended == sorted(ended)
    assert await store.verify() == []
    await store.close()


# --- two owners of one agent, and a key that is followed --------------------------------------------------------------

PAIR = Path(__file__).with_name("two_owners.py")
EVERY = 1 if KILLS > 4 else 20
"""The normal run takes a few of the moments."""
MOMENTS = 60
"""More than the owner has, which is looked at."""


def started(folder: Path, who: str, deadly: int = 0) -> "subprocess.Popen[str]":
    around = {**os.environ, "PYTHONPATH": str(PAIR.parent.parent)}
    command = [sys.executable, str(PAIR), str(folder), who, str(deadly)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=around)


def until_begun(folder: Path, owner: "subprocess.Popen[str]") -> None:
    while owner.poll() is None and not (folder / "begun").exists():
        time.sleep(0.005)


@pytest.mark.parametrize("deadly", range(1, MOMENTS, EVERY))
async def test_an_owner_killed_at_any_moment_is_taken_over_by_the_run_that_follows_its_key(
    tmp_path: Path, deadly: int
) -> None:
    follower, owner = started(tmp_path, "follower"), started(tmp_path, "owner", deadly)
    until_begun(tmp_path, owner)
    assert follower.communicate("go\n")[1] == "", "no error"
    counted, said = owner.communicate()
    assert (said, owner.returncode) in (("", 0), ("", -signal.SIGKILL))
    if owner.returncode == 0:
        assert int(counted) < deadly, "it had come to its end before that moment"
    assert started(tmp_path, "owner").communicate()[1] == ""  # the same program, run again

    answered: dict[str, set[str]] = {}
    for line in lines(tmp_path / "answers"):
        answered.setdefault(line.split()[0], set()).add(line)
    done, unknown = Counter(lines(tmp_path / "world")), set()
    assert answered.keys() == {"shared", "second", "side"}
    for key, told in answered.items():
        (line,) = told
        assert line in (f"{key} completed 0 {key} is done", f"{key} completed 1 {key} is done")
        if " 1 " in line:
            unknown.add(key)
        assert done[key] == 1 or (key in unknown and done[key] == 0)
    assert len(unknown) <= 2, "only what the owner was at when it died: its two threads"
    store = await SqliteStore.open(tmp_path / "runs.db")
    assert [row.is_open for row in await store.turns()] == [False] * 3
    assert await store.verify() == []
    await store.close()
