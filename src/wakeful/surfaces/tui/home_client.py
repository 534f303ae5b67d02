"""What the terminal UI asks of the process that serves the home, and where. Every path it knows stands here."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, TypeAlias
from urllib.parse import quote

from pydantic import ValidationError

from wakeful.service.serving.daemon_client import ControlRefused
from wakeful.service.serving.socket_client import SocketClient, StreamEvent
from wakeful.views.presentation.feed_entries import FeedEntry

Record: TypeAlias = dict[str, Any]
MOST_AGENTS = 500
HISTORY = 200
"""Entries of the feed that are read when a conversation is opened."""


class HomeClient:
    """The process that serves a home."""

    def __init__(self, socket: SocketClient) -> None:
        self._socket = socket

    async def agents(self) -> list[Record]:
        """All agents, also those that other agents made."""
        return await self._list("/agents", private=True, limit=MOST_AGENTS)

    async def public_agents(self) -> list[Record]:
        return await self._list("/agents/list", limit=MOST_AGENTS)

    async def agent(self, name: str) -> Record:
        return await self._one(f"/agents/{quote(name)}/status")

    async def approvals(self) -> list[Record]:
        return await self._list("/approvals")

    async def approval(self, name: str) -> Record:
        """One with what stands round it: who was told, what its turn had read, what waits behind it."""
        return await self._one(f"/approvals/{quote(name)}")

    async def timers(self) -> list[Record]:
        return await self._list("/timers", limit=MOST_AGENTS)

    async def budgets(self) -> list[Record]:
        return await self._list("/budgets")

    async def cost_today(self, by: str = "agent") -> Record:
        return await self._one("/cost", by=by, today="true")

    async def cost_of(self, turn: str) -> Record:
        return await self._one("/cost", by="model", turn=turn)

    async def latency(self, turn: str) -> Record:
        return await self._one(f"/turns/{quote(turn)}/latency")

    async def limits(self, turn: str) -> Record:
        """What a turn may use, as it was when it began."""
        for event in await self._list(f"/turns/{quote(turn)}/events", limit=20):
            if event["type"] == "turn.started":
                found: Record = event["payload"]["limits"]
                return found
        return {}

    async def output(self, task: str) -> Record:
        return await self._one(f"/tasks/{quote(task)}/output")

    async def workspaces(self, name: str) -> Record:
        return await self._one(f"/agents/{quote(name)}/workspaces")

    async def tasks(self, name: str) -> list[Record]:
        return await self._list("/tasks", agent=name)

    async def work_items(self, name: str) -> list[Record]:
        return await self._list(f"/agents/{quote(name)}/work-items")

    async def transcript(self, name: str) -> list[Record]:
        return await self._list(f"/agents/{quote(name)}/transcript")

    async def newest_events(self, name: str, most: int) -> list[Record]:
        state = await self._one(f"/agents/{quote(name)}/state")
        after = max(0, state["event_seq"] - most)
        return await self._list(f"/agents/{quote(name)}/events", after=after, limit=most)

    async def why(self, name: str) -> Record:
        return await self._one(f"/agents/{quote(name)}/why")

    async def newest_turn(self, name: str) -> Record | None:
        found = await self._list("/turns", agent=name, limit=1)
        return found[0] if found else None

    async def prompt(self, turn: str) -> Record:
        return await self._one(f"/turns/{quote(turn)}/prompt")

    async def tree(self, turn: str) -> Record:
        return await self._one(f"/turns/{quote(turn)}/tree")

    async def tail(self, name: str | None = None) -> list[FeedEntry]:
        """The newest entries of the feed, of one agent or of all."""
        found = await self._list("/feed/tail", agent=name, limit=HISTORY, display="verbose")
        return [_entry(each) for each in found]

    async def feed(self, after: str | None) -> AsyncIterator[FeedEntry]:
        """Everything after a cursor, and all that follows."""
        async for event in self._socket.stream("/feed", after, display="verbose"):
            yield _entry(event.data)

    def chat(self, message: str, last: str | None) -> AsyncGenerator[StreamEvent, None]:
        """The chat of the turn that takes a message, after an event, until the turn is over."""
        return self._socket.stream(f"/messages/{quote(message)}", last)

    async def send(self, name: str, text: str, key: str, priority: str = "normal") -> Record:
        """The key: a message that is sent again, because the answer was lost, is taken once."""
        body = {"text": text, "key": key, "priority": priority}
        return await self._post(f"/agents/{quote(name)}/messages", body)

    async def control(self, name: str, what: str) -> Record:
        """`pause`, `resume` or `stop`."""
        return await self._post(f"/control/agents/{quote(name)}/{what}", {})

    async def decide(self, approval: str, how: str, **fields: Any) -> Record:
        """`decision`, `edit`, `answer` or `always`, with the fields of each."""
        return await self._post(f"/approvals/{quote(approval)}/{how}", fields)

    async def attach(self, name: str, path: str) -> Record:
        return await self._post(f"/agents/{quote(name)}/workspaces", {"path": path})

    async def use(self, name: str, **fields: Any) -> Record:
        found: Record = await self._socket.ask("PUT", f"/agents/{quote(name)}/workspace", fields)
        return found

    async def detach(self, name: str, workspace: str) -> Record:
        found: Record = await self._socket.ask("DELETE", f"/agents/{quote(name)}/workspaces/{quote(workspace)}")
        return found

    async def stop_task(self, task: str) -> Record:
        return await self._post(f"/tasks/{quote(task)}/stop", {})

    async def close(self) -> None:
        await self._socket.close()

    async def _list(self, where: str, **query: Any) -> list[Record]:
        found: list[Record] = await self._socket.ask("GET", where, **query)
        return found

    async def _one(self, where: str, **query: Any) -> Record:
        found: Record = await self._socket.ask("GET", where, **query)
        return found

    async def _post(self, where: str, body: Record) -> Record:
        found: Record = await self._socket.ask("POST", where, body)
        return found


def _entry(data: Any) -> FeedEntry:
    try:
        return FeedEntry.model_validate(data)
    except ValidationError:
        words = "the daemon is of another version"
        raise ControlRefused(505, "other_version", words, "wakeful daemon restart, then wakeful tui") from None
