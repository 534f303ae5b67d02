"""A daemon that is killed while it carries out a request with a key: the same request again has no second effect.

The kill comes while another process holds the lock for writing, at a moment that the stored rows show: the request has
begun, and its effect is there or is not.
"""

import itertools
import sqlite3
import threading
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any

from kit.surfaces.served_home import HomeClient, ServedHome

QUEUE = "/control/agents/keeper/work-items"
PAUSE = "/control/agents/keeper/pause"


def count(database: sqlite3.Connection, sql: str, *values: object) -> int:
    (found,) = database.execute(sql, values).fetchone()
    return int(found)


class Killing:
    """Sends requests with keys of their own until one of them can be killed at the right moment."""

    def __init__(self, home: ServedHome) -> None:
        self.home = home
        self.database = sqlite3.connect(home.folder / "wakeful.db", isolation_level=None, timeout=30)
        self._numbers = itertools.count(1)

    def kill_within(self, path: str, body: Any, effect: Callable[[], int], *, has_effect: bool) -> str:
        """The key of the request that was under way."""
        for _ in range(200):
            key = f"key-{next(self._numbers)}"
            before = effect()
            asked = threading.Thread(target=self._ask, args=(path, body, key))
            asked.start()
            while asked.is_alive():
                self.database.execute("BEGIN IMMEDIATE")
                sql = "SELECT count(*) FROM keyed_requests WHERE request_key = ? AND status IS NULL"
                if count(self.database, sql, key) and (effect() > before) == has_effect:
                    self.home.kill()
                    self.database.execute("ROLLBACK")
                    asked.join()
                    return key
                self.database.execute("ROLLBACK")
            self.reset()
        raise AssertionError("no request could be caught at that moment")

    def reset(self) -> None:
        self.home.client.post("/control/agents/keeper/resume")

    def _ask(self, path: str, body: Any, key: str) -> None:
        try:
            again(self.home.client, path, body, key)
        except (OSError, HTTPException):
            pass


def again(client: HomeClient, path: str, body: Any, key: str) -> Any:
    return client.ask("POST", path, body, headers={"Idempotency-Key": key})


def test_a_request_that_was_cut_off_is_never_done_twice_by_itself(tmp_path: Path) -> None:
    home = ServedHome(tmp_path / "home").start()
    try:
        killing = Killing(home)
        items = "SELECT count(*) FROM work_items"

        def done() -> int:
            return count(killing.database, items)

        for has_effect in (True, False):
            key = killing.kill_within(QUEUE, {"objective": "Count me."}, done, has_effect=has_effect)
            before = done()
            home.start()
            for _ in range(2):
                told = again(home.client, QUEUE, {"objective": "Count me."}, key)
                assert (told.status, told.code) == (409, "outcome_unknown")
                assert "GET /agents/keeper/work-items" in told.body["error"]["hint"]
                assert told.body["error"]["retryable"] is False
            assert done() == before, "nothing was done again unasked"
            assert again(home.client, QUEUE, {"objective": "Count me."}, key + "-new").status == 200
            assert done() == before + 1
    finally:
        home.end()


def test_a_request_that_may_be_done_twice_is_done_when_it_is_sent_again(tmp_path: Path) -> None:
    home = ServedHome(tmp_path / "home").start()
    try:
        killing = Killing(home)
        paused = "SELECT count(*) FROM runtime_agents WHERE control = 'paused'"
        key = killing.kill_within(PAUSE, {"reason": "r"}, lambda: count(killing.database, paused), has_effect=True)
        home.start()
        first, second = (again(home.client, PAUSE, {"reason": "r"}, key) for _ in range(2))
        assert (first.status, first.body["control"]) == (200, "paused")
        assert (second.body, second.headers["idempotency-replayed"]) == (first.body, "true")
    finally:
        home.end()
