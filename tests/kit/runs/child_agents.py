"""An agent that spawns others, with one script for both, and what their logs say."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from wakeful import Agent
from wakeful.contracts.conversation import ToolItem, UserItem
from wakeful.contracts.events import ToolFailed, ToolResult
from wakeful.ports import ModelRequest, Store
from wakeful.ports.tasks import TaskRow
from wakeful.testing import scripted

Reply = Callable[[ModelRequest], Any]


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def heard(request: ModelRequest) -> list[str]:
    return [item.text for item in request.history if isinstance(item, UserItem)]


def results(request: ModelRequest) -> list[dict[str, Any]]:
    return [json.loads(item.text) for item in request.history if isinstance(item, ToolItem)]


def family(parent: Reply, child: Reply = lambda request: "A hole.", **options: Any) -> Agent[None, str]:
    """An agent whose model answers in two ways: as the parent, and as any child of it, which was told to dig."""

    def reply(request: ModelRequest) -> Any:
        return child(request) if "Dig" in heard(request)[0] else parent(request)

    return Agent("ops", scripted(reply), **{"spawn": True, **options})


def spawning(*replies: Any, **arguments: Any) -> Reply:
    """Spawns a child and gives these replies; a turn that something of a task woke answers `told`."""

    def reply(request: ModelRequest) -> Any:
        if "Task task_" in heard(request)[-1]:
            return "told"
        steps = [calls("spawn_agent", initial_message="Dig a hole.\nIn the garden.", **arguments), *replies]
        step = steps[min(request.answered, len(steps) - 1)]
        return step(request) if callable(step) else step

    return reply


def on_task(name: str, **arguments: Any) -> Reply:
    """A call on the task that the first call of the conversation made."""
    return lambda request: calls(name, task_id=results(request)[0]["supervision_task_id"], **arguments)


async def of_kind(store: Store, agent: str, kind: type[Any]) -> list[Any]:
    return [entry.fact.event for entry in await store.read(agent) if isinstance(entry.fact.event, kind)]


async def only_task(store: Store, agent: str = "ops") -> TaskRow:
    (row,) = await store.tasks_of(agent)
    return row


def name_of(row: TaskRow) -> str:
    assert row.child is not None
    return row.child.agent_id


async def tool_results(store: Store, agent: str = "ops") -> list[dict[str, Any]]:
    return [json.loads(event.item.text) for event in await of_kind(store, agent, ToolResult)]


async def refusals(store: Store, agent: str = "ops") -> list[dict[str, Any]]:
    return [json.loads(event.item.text) for event in await of_kind(store, agent, ToolFailed)]


async def until_over(store: Store, agent: str = "ops") -> TaskRow:
    """The only task of an agent, once it is over."""
    while True:
        row = await only_task(store, agent)
        if row.is_over:
            return row
        await asyncio.sleep(0.01)
