"""Clients of a daemon that is killed under them: each does again what was not acknowledged, and goes on where it was.

What they were told is kept, and `complaints` compares it with the log.
"""

import http.client
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kit.surfaces.served_home import Answer, Frame, Frames, HomeClient, ServedHome

Problem = (OSError, http.client.HTTPException, ValueError, KeyError)
"""What a client sees of a process that dies while it is asked."""


class Follower:
    """Follows a stream over kills, and comes back with the last id it saw."""

    def __init__(self, load: "Load", path: str, client: Callable[[], HomeClient], *, has_cursor: bool = True) -> None:
        self.load, self.path, self.client, self.has_cursor = load, path, client, has_cursor
        self.seen: list[str] = []
        self.times = 0
        """How often it connected."""

    def __call__(self) -> None:
        while not self.load.is_over:
            try:
                last = self.seen[-1] if self.seen and self.has_cursor else None
                with self.client().stream(self.path, last=last) as frames:
                    self.times += 1
                    self._take(frames)
            except AssertionError as refused:
                self.load.refused.append(f"a follower of {self.path} was refused: {refused}")
                return
            except Problem:
                time.sleep(0.02)

    def _take(self, frames: Frames) -> None:
        for frame in frames:
            if isinstance(frame, Frame):
                self.seen.append(frame.id)
            if self.load.is_over:
                return


class Load:
    """Everything that is done to a home at once."""

    def __init__(self, home: ServedHome, *, has_keys: bool = True, has_cursors: bool = True, most: int = 25) -> None:
        self.home, self.has_keys, self.most = home, has_keys, most
        self.is_over = self.is_sending_over = False
        self.messages: dict[str, str] = {}
        """By key: the message that was acknowledged."""
        self.decided: Counter[str] = Counter()
        """Approvals whose decision was acknowledged."""
        self.wrong: list[Answer] = []
        """Answers that no client should have had."""
        self.refused: list[str] = []
        """Followers whose cursor was not taken."""
        self.followers = [
            Follower(self, "/agents/clerk/events", lambda: home.client, has_cursor=has_cursors),
            Follower(self, "/agents/builder/events", lambda: home.client, has_cursor=has_cursors),
            Follower(self, "/feed", lambda: home.client, has_cursor=has_cursors),
        ]
        self._builds = itertools.count()
        self._threads = [threading.Thread(target=each) for each in self.followers]
        self._threads += [threading.Thread(target=self._decide)]
        self._senders = [
            threading.Thread(target=self._send, args=(f"hello-{name}", "hello")) for name in ("one", "two", "three")
        ]
        self._senders.append(threading.Thread(target=self._send, args=("refund", "refund {}")))

    @property
    def acknowledged(self) -> int:
        return len(self.messages) + sum(self.decided.values())

    @property
    def is_all_sent(self) -> bool:
        return not any(each.is_alive() for each in self._senders)

    @contextmanager
    def running(self) -> "Iterator[Load]":
        """Until the end of the block, which is the end of the daemon too: streams end with it."""
        for each in (*self._threads, *self._senders):
            each.start()
        try:
            yield self
        finally:
            self.is_sending_over = self.is_over = True
            self.home.end()
            for each in (*self._threads, *self._senders):
                each.join(60)

    def stop_sending(self) -> None:
        self.is_sending_over = True
        for each in self._senders:
            each.join(60)

    def build(self) -> str:
        """A task that runs until there is a file of its name."""
        name = str(next(self._builds))
        self._admit("builder", f"build-{name}", f"build {name}")
        return name

    def _send(self, name: str, words: str) -> None:
        for number in range(1, self.most + 1):
            if self.is_sending_over:
                return
            self._admit("clerk", f"{name}-{number}", words.format(number))

    def _admit(self, agent: str, key: str, text: str) -> None:
        body = {"text": text, "thread": key} | ({"key": key} if self.has_keys else {})
        answer = self._until_told(lambda: self.home.client.post(f"/agents/{agent}/messages", body))
        if answer is not None and answer.status == 200:
            self.messages[key] = answer.body["message_id"]
        elif answer is not None:
            self.wrong.append(answer)

    def _decide(self) -> None:
        while not self.is_over:
            found = self._until_told(lambda: self.home.client.get("/approvals?status=pending"))
            for each in found.body if found is not None else ():
                where = f"/approvals/{each['approval_id']}/decision"
                answer = self._until_told(lambda: self.home.client.post(where, {"decision": "approved"}))  # noqa: B023
                if answer is not None and answer.status == 200:
                    self.decided[each["approval_id"]] += 1
                elif answer is not None:
                    self.wrong.append(answer)
            time.sleep(0.02)

    def _until_told(self, ask: Callable[[], Answer]) -> Answer | None:
        while not self.is_over:
            try:
                return ask()
            except Problem:
                time.sleep(0.02)
        return None


class LogOfLoad:
    """The log that a load left, counted. It is read on, never again."""

    def __init__(self, home: ServedHome) -> None:
        self.home = home
        self.logs: dict[str, list[dict[str, Any]]] = {"clerk": [], "builder": []}
        self.feed: list[str] = []

    def read(self) -> "LogOfLoad":
        client = self.home.client
        for agent, log in self.logs.items():
            while page := client.get(f"/agents/{agent}/events?limit=1000&after={len(log)}").body:
                log += page
        while page := client.get("/feed?limit=1000" + (f"&after={self.feed[-1]}" if self.feed else "")).body:
            self.feed += [entry["cursor"] for entry in page]
        self._count([event for log in self.logs.values() for event in log])
        return self

    def _count(self, events: list[dict[str, Any]]) -> None:
        self.admitted = [each["payload"] for each in events if each["envelope"]["kind"] == "message.admitted"]
        self.started = Counter(
            message for each in _of(events, "turn.started") for message in each["payload"].get("message_ids", ())
        )
        self.ended = Counter(each["envelope"]["turn_id"] for each in _of(events, "turn.completed"))
        self.turns = {each["envelope"]["turn_id"] for each in _of(events, "turn.started")}
        self.asked = Counter(each["payload"]["action_id"] for each in _of(events, "action.required"))
        self.resolved = Counter(each["payload"]["action_id"] for each in _of(events, "action.resolved"))
        self.results = Counter(
            (each["envelope"]["turn_id"], each["payload"]["item"]["call_id"]) for each in _of(events, "tool.result")
        )
        self.tasks = Counter(each["payload"]["task_id"] for each in _of(events, "task.ended"))

    @property
    def is_at_rest(self) -> bool:
        if any(task["status"] == "running" for task in self.home.client.get("/tasks").body):
            return False
        told = {each["message_id"] for each in self.admitted}
        return told == set(self.started) and self.turns == set(self.ended) and set(self.asked) == set(self.resolved)

    def complaints(self, load: Load) -> list[str]:
        """What clients were told and the log does not hold, and what it holds twice."""
        found = [f"answered {each.status}: {each.body}" for each in load.wrong] + load.refused
        from_clients = [each["message_id"] for each in self.admitted if not each.get("task_id")]
        lost = set(load.messages.values()) - set(from_clients)
        found += [f"{len(lost)} acknowledged messages are not in the log"] if lost else []
        if len(from_clients) > len(load.messages):
            found.append(f"{len(from_clients)} messages are in the log, and clients sent {len(load.messages)}")
        lost = set(load.decided) - set(self.resolved)
        found += [f"{len(lost)} acknowledged decisions are not in the log"] if lost else []
        told = Counter(each["task_id"] for each in self.admitted if each.get("task_id"))
        if told != self.tasks:
            found.append(f"tasks ended {dict(self.tasks)}, and were told {dict(told)}")
        for what, counted in (
            ("message begun", self.started),
            ("turn ended", self.ended),
            ("approval asked", self.asked),
            ("approval decided", self.resolved),
            ("call answered", self.results),
            ("task ended", self.tasks),
        ):
            found += [f"{what} {times} times: {name}" for name, times in counted.items() if times != 1]
        return found + self._complaints_of_followers(load)

    def streams(self) -> dict[str, list[str]]:
        """By path: the ids that a follower sees, in order."""
        found = {f"/agents/{name}/events": [str(n + 1) for n in range(len(log))] for name, log in self.logs.items()}
        return {**found, "/feed": self.feed}

    def _complaints_of_followers(self, load: Load) -> list[str]:
        found, whole = [], self.streams()
        for follower in load.followers:
            twice = len(follower.seen) - len(set(follower.seen))
            missed = set(whole[follower.path]) - set(follower.seen)
            if follower.seen != whole[follower.path]:
                found.append(f"a follower of {follower.path} missed {len(missed)} and saw {twice} twice")
        return found


def _of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in events if each["envelope"]["kind"] == kind]
