"""In a tool a `Runtime` and its handles read and send; whatever else they can do is refused, as by `open_store`."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Approve, Runtime, open_store, tool
from wakeful.errors import NotEntitled
from wakeful.surfaces.library.channels_handle import ChannelsHandle
from wakeful.surfaces.library.memory_handle import MemoryHandle
from wakeful.testing import scripted

HANDLES: dict[type, Callable[[Runtime], Any]] = {
    Runtime: lambda rt: rt,
    MemoryHandle: lambda rt: rt.memory("other"),
    ChannelsHandle: lambda rt: rt.channels,
}
READS = "it changes nothing"
SENDS = "a tool may tell an agent something: the agent's own gate decides what comes of it"
OPEN: dict[str, str] = {
    **dict.fromkeys(
        [
            *("Runtime.agents", "Runtime.agent", "Runtime.children", "Runtime.definition", "Runtime.revisions"),
            *("Runtime.diff", "Runtime.problems", "Runtime.check", "Runtime.tasks", "Runtime.task"),
            *("Runtime.task_output", "Runtime.message", "Runtime.answer", "Runtime.notices", "Runtime.timers"),
            *("Runtime.work_items", "Runtime.briefs", "Runtime.closure", "Runtime.why", "Runtime.settled"),
            *("Runtime.follow", "Runtime.feed", "Runtime.tail", "Runtime.replayed", "Runtime.transcript"),
            *("Runtime.triggers", "Runtime.workflows", "Runtime.workflow_run", "Runtime.workflow_runs"),
            *("Runtime.workspaces", "MemoryHandle.list", "MemoryHandle.show", "MemoryHandle.working"),
            *("ChannelsHandle.list", "Runtime.memory"),
        ],
        READS,
    ),
    **dict.fromkeys(("Runtime.send", "Runtime.receive", "Runtime.wake", "Runtime.deliver"), SENDS),
}
"""What a tool may call, and why. What is new is refused, or stands here with its reason."""
WAITS = ("Runtime.settled", "Runtime.answer")
"""They would wait for the tool itself."""


def methods(handle: type) -> dict[str, Any]:
    found = inspect.getmembers(handle, inspect.isfunction)
    return {f"{handle.__name__}.{name}": method for name, method in found if not name.startswith("_")}


ALL = {name: (handle, method) for handle in HANDLES for name, method in methods(handle).items()}


async def called(rt: Runtime, name: str) -> Exception | None:
    """What a method raises when it is called with something for each argument that it must have."""
    handle, method = ALL[name]
    parameters = list(inspect.signature(method).parameters.values())[1:]
    needed = [each for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    given = {each.name: _something(each.annotation) for each in needed}
    try:
        answer = getattr(HANDLES[handle](rt), name.partition(".")[2])(**given)
        if isinstance(answer, Awaitable):
            await answer
        elif isinstance(answer, AsyncIterator):
            await anext(answer, None)
    except Exception as error:
        return error
    return None


def _something(annotation: Any) -> Any:
    if "Mapping" in str(annotation):
        return {"name": "made", "model": "scripted:demo"}
    return datetime.max if annotation is datetime else "other"


async def in_a_tool(folder: Path, attempt: Callable[[Runtime], Awaitable[Any]]) -> list[Any]:
    """What comes of this in the code of a tool of an agent of the runtime."""
    seen: list[Any] = []

    @tool(effect="pure")
    async def tries() -> str:
        """Try it."""
        seen.append(await attempt(rt))
        return "tried"

    ops = Agent("ops", scripted([{"calls": [{"name": "tries"}]}, "Done."]), tools=[tries])
    other = Agent("other", scripted(["Hello."], leftover="ignore"))
    async with Runtime(folder / "home", agents=[ops, other]) as rt:
        await rt.answer(await rt.send("other", "hello", thread="old"))
        assert (await rt.answer(await rt.send("ops", "go"))).status == "completed"
    return seen


async def test_every_method_of_a_runtime_and_its_handles_is_refused_in_a_tool_or_stands_in_the_list(
    tmp_path: Path,
) -> None:
    async def attempt(rt: Runtime) -> dict[str, Exception | None]:
        return {name: await called(rt, name) for name in ALL if name not in WAITS}

    (found,) = await in_a_tool(tmp_path, attempt)
    refused = {name for name, error in found.items() if isinstance(error, NotEntitled)}
    assert refused == set(ALL) - set(OPEN)
    assert set(OPEN) <= set(ALL)
    assert all(name.partition(".")[2] + "()" in str(found[name]) for name in refused)


def test_no_handle_of_a_runtime_is_left_out() -> None:
    members = [*vars(Runtime).values(), *(each for base in Runtime.__mro__ for each in vars(base).values())]
    getters = [each.fget if isinstance(each, property) else each for each in members]
    returned = {str(inspect.signature(each).return_annotation) for each in getters if inspect.isfunction(each)}
    assert {each for each in returned if each.endswith("Handle")} == {each.__name__ for each in HANDLES} - {"Runtime"}


CHANGES: dict[str, Callable[[Runtime], Awaitable[Any]]] = {
    "a thread is deleted": lambda rt: rt.delete_thread("old", "other"),
    "a trigger is made": lambda rt: rt.create_trigger("other"),
    "an agent is paused": lambda rt: rt.pause("other"),
    "a phone is added": lambda rt: rt.channels.add("ntfy", server="http://127.0.0.1:1", allow_private=True),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_tool_may_not_and_the_same_line_outside_one_may(change: str, tmp_path: Path) -> None:
    async def attempt(rt: Runtime) -> Any:
        with pytest.raises(NotEntitled, match="a tool of an agent may not"):
            await CHANGES[change](rt)
        # Nor in what the tool starts.
        with pytest.raises(NotEntitled):
            await asyncio.create_task(_of(CHANGES[change], rt))
        return await rt.agents()

    (agents,) = await in_a_tool(tmp_path, attempt)
    assert [each.agent for each in agents] == ["ops", "other"]
    async with Runtime(
        tmp_path / "home", agents=[Agent("other", scripted(["Hello."], leftover="ignore"))]
    ) as rt:  # the inversion
        await CHANGES[change](rt)


async def _of(change: Callable[[Runtime], Awaitable[Any]], rt: Runtime) -> Any:
    return await change(rt)


async def test_open_store_refuses_a_tool_the_same(tmp_path: Path) -> None:
    async def attempt(rt: Runtime) -> list[str]:
        told = []
        async with open_store(tmp_path / "home/wakeful.db") as store:
            for change in (
                store.delete_thread("old", "other"),
                store.create_trigger("other"),
                store.forget_memory("other", "brief:x"),
                store.compact(),
                store.decide("appr_1", Approve(), by="ann"),
            ):
                with pytest.raises(NotEntitled) as refused:
                    await change
                told.append(str(refused.value))
        return told

    (told,) = await in_a_tool(tmp_path, attempt)
    assert len(told) == 5
