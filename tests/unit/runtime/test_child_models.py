"""Which model the children of an agent are run with: that of their parent, also the one that its operator gave it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kit.runs.child_agents import calls, family, heard, name_of, of_kind, only_task, spawning
from wakeful import Agent, Runtime
from wakeful.contracts.events import TurnStarted
from wakeful.ports import ModelRequest
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted


def script(folder: Path, words: str) -> str:
    path = folder / f"{words}.yaml"
    path.write_text(f"- text: {words}\n")
    return f"scripted:{path}"


async def models_of(store: MemoryStore, agent: str) -> list[str]:
    return [event.model_ref for event in await of_kind(store, agent, TurnStarted)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"initial_message": "Dig a hole."},
        {"preset": "public_named", "agent_id": "digger", "initial_message": "Dig a hole."},
    ],
    ids=["private", "public"],
)
async def test_an_override_of_the_parent_is_the_model_of_agents_that_it_makes(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    store, cheap = MemoryStore(), script(tmp_path, "cheap")

    async def parent(request: ModelRequest) -> Any:
        if request.answered:
            return "It digs."
        await rt.set_model("ops", cheap)  # by the operator, while the turn runs
        return calls("spawn_agent", **arguments)

    agent = family(parent, spawn="public_named")
    async with Runtime(store=store, agents=[agent]) as rt:
        assert (await rt.answer(await rt.send("ops", "Have a hole dug."))).output == "It digs.", "the turn began before"
        await rt.settled()
        child = name_of(await only_task(store))
        assert await models_of(store, child) == [cheap]
        state = (await rt.agent(child)).model
        assert (state.source, state.effective_model, state.runtime_default_model) == ("runtime_default", cheap, cheap)
        assert (await rt.agent("ops")).model.source == "agent_override"


async def test_inversion_an_agent_that_nobody_made_keeps_the_model_that_was_taken_from_another(tmp_path: Path) -> None:
    store, cheap = MemoryStore(), script(tmp_path, "cheap")
    other = Agent("digger", scripted(lambda request: "A hole."))
    async with Runtime(store=store, agents=[family(spawning("It digs.")), other]) as rt:
        await rt.set_model("ops", cheap)
        assert (await rt.answer(await rt.send("digger", "Dig."))).output == "A hole."
        assert await models_of(store, "digger") == ["scripted:inline"]


@pytest.mark.spec("HOL-MSEL-03", "HOL-MSEL-04")
async def test_a_child_at_work_ends_its_turn_with_its_model_and_may_have_one_of_its_own(tmp_path: Path) -> None:
    store, begun, go = MemoryStore(), asyncio.Event(), asyncio.Event()
    cheap, own = script(tmp_path, "cheap"), script(tmp_path, "own")

    async def child(request: ModelRequest) -> Any:
        begun.set()
        await go.wait()
        return calls("wait_for", reason="How deep?", wake="operator_input")

    def parent(request: ModelRequest) -> Any:
        return "told" if "Task task_" in heard(request)[-1] else spawning("It digs.")(request)

    async with Runtime(store=store, agents=[family(parent, child)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await begun.wait()
        name = name_of(row := await only_task(store))
        await rt.set_model("ops", cheap)
        go.set()
        await rt.settled()
        assert await models_of(store, name) == ["scripted:inline"], "the turn was not stopped"
        await rt.set_model(name, own)
        board = rt._here.tasks.children
        await board.say(row.task_id, "Three feet.", behind="operator_instruction", key="one")
        await rt.settled()
        assert await models_of(store, name) == ["scripted:inline", own]
        state = (await rt.agent(name)).model
        assert (state.source, state.override_model, state.runtime_default_model) == ("agent_override", own, cheap)
