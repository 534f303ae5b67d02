"""One path for every entrance: keys, threads, and who runs a turn."""

import asyncio
from typing import Any

import pytest

from engine_runs import Died, Dying, calls, kinds
from wakeful import Agent, KeyReused, RunContext, resume_all, run, tool
from wakeful.contracts.errors import AgentBusy, InvalidValue, TurnNotFound
from wakeful.ports import ModelRequest
from wakeful.store.memory import Memory, MemoryStore
from wakeful.surfaces.library.runs import resume
from wakeful.testing import scripted


def counting(asked: list[str], *steps: Any) -> Agent[None, str]:
    def answer(request: ModelRequest) -> Any:
        asked.append(request.turn_id)
        return steps[min(request.answered, len(steps) - 1)]

    return Agent("any", scripted(answer))


# --- keys ------------------------------------------------------------------------------------------------------------


async def test_without_a_key_each_run_is_a_new_one() -> None:
    asked: list[str] = []
    store, agent = MemoryStore(), counting(asked, "done")
    first, second = await run(agent, "go", store=store), await run(agent, "go", store=store)
    assert first.turn_id != second.turn_id and len(asked) == 2


async def test_a_key_that_is_finished_gives_the_stored_result_for_free() -> None:
    asked: list[str] = []
    store, agent = MemoryStore(), counting(asked, "done")
    first = await run(agent, "go", store=store, key="k")
    again = await run(agent, "go", store=store, key="k")
    assert (again.turn_id, again.output, len(asked)) == (first.turn_id, "done", 1)
    ours = {name: value for name, value in again.to_dict().items() if name != "duration_ms"}
    assert ours == {name: value for name, value in first.to_dict().items() if name != "duration_ms"}


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("append", [1, 2, 3, 4])
async def test_a_key_that_is_unfinished_is_resumed_where_it_was(append: int, moment: str) -> None:
    memory, ran = Memory(), []

    @tool(effect="keyed")
    async def act(ctx: RunContext[None]) -> str:
        ran.append(ctx.idempotency_key)
        return "ok"

    agent = Agent("any", scripted([calls("act"), "done"], leftover="ignore"), tools=[act])
    dying = Dying(memory, before=append) if moment == "before" else Dying(memory, after=append)
    with pytest.raises(Died):
        await run(agent, "go", store=dying, key="k")
    await dying.close()
    store = MemoryStore(memory)
    result = await run(agent, "go", store=store, key="k")
    assert result.output == "done" and len(await store.turns()) == 1 and len(set(ran)) == 1
    assert kinds(result.facts()).count("turn.started") == 1


@pytest.mark.parametrize(("agent_name", "prompt"), [("any", "something else"), ("other", "go")])
async def test_a_key_of_another_run_is_refused_and_both_are_shown(agent_name: str, prompt: str) -> None:
    store = MemoryStore()
    await run(Agent("any", scripted(["done"])), "go", store=store, key="k")
    other: Agent[None, str] = Agent(agent_name, scripted(["no"], leftover="ignore"))
    with pytest.raises(KeyReused) as refused:
        await run(other, prompt, store=store, key="k")
    assert "agent 'any', prompt 'go'" in refused.value.message
    assert f"agent {agent_name!r}, prompt {prompt!r}" in refused.value.message
    assert len(await store.turns()) == 1


async def test_two_runs_of_one_key_at_once_are_one_run() -> None:
    asked: list[str] = []
    store = MemoryStore()

    async def answer(request: ModelRequest) -> str:
        asked.append(request.turn_id)
        await asyncio.sleep(0.01)
        return "done"

    agent = Agent("any", scripted(answer))
    results = await asyncio.gather(*(run(agent, "go", store=store, key="k") for _ in range(5)))
    assert [result.output for result in results] == ["done"] * 5
    assert len(asked) == 1 and len({result.turn_id for result in results}) == 1


async def test_a_run_whose_twin_goes_away_takes_over() -> None:
    store, begun = MemoryStore(), asyncio.Event()
    release = asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        begun.set()
        await release.wait()
        return "done"

    agent = Agent("any", scripted(answer))
    first = asyncio.create_task(run(agent, "go", store=store, key="k"))
    await begun.wait()
    second = asyncio.create_task(run(agent, "go", store=store, key="k"))
    await asyncio.sleep(0)
    first.cancel()
    release.set()
    assert (await second).output == "done"
    await asyncio.wait({first})


async def test_a_turn_that_another_owner_runs_is_busy_and_names_the_holder() -> None:
    memory, begun = Memory(), asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        begun.set()
        await asyncio.sleep(60)
        return "never"

    agent = Agent("any", scripted(answer))
    task = asyncio.create_task(run(agent, "go", store=MemoryStore(memory), key="k"))
    await begun.wait()
    with pytest.raises(AgentBusy, match="process"):
        await run(agent, "go", store=MemoryStore(memory), key="k")
    assert await resume_all(MemoryStore(memory), [agent]) == [], "another is at it"
    task.cancel()
    await asyncio.wait({task})


async def test_a_turn_that_is_not_there_is_named() -> None:
    with pytest.raises(TurnNotFound, match="turn_x"):
        await resume(MemoryStore(), "turn_x", [])


@pytest.mark.parametrize(
    "context", [{"a": object()}, {"a": "\ud800"}, {"a": "x" * 100_000}], ids=["an object", "no text", "too much"]
)
async def test_a_context_that_cannot_be_stored_is_refused_before_anything_is_acknowledged(context: Any) -> None:
    store = MemoryStore()
    with pytest.raises(InvalidValue, match="context"):
        await run(Agent("any", scripted(["no"], leftover="ignore")), "go", store=store, context=context)
    assert await store.turns() == []


# --- threads ---------------------------------------------------------------------------------------------------------


async def test_a_thread_goes_on_where_it_was() -> None:
    store = MemoryStore()
    seen: list[list[str]] = []

    def answer(request: ModelRequest) -> Any:
        seen.append([item.text for item in request.history])
        return f"answer {len(seen)}"

    agent = Agent("any", scripted(answer))
    for number in (1, 2, 3):
        await run(agent, f"question {number}", store=store, thread="t")
    await run(agent, "elsewhere", store=store, thread="u")
    await run(agent, "alone", store=store)
    assert seen == [
        ["question 1"],
        ["question 1", "answer 1", "question 2"],
        ["question 1", "answer 1", "question 2", "answer 2", "question 3"],
        ["elsewhere"],
        ["alone"],
    ]


async def test_a_message_that_came_while_a_turn_ran_is_answered_after_it_and_stands_after_it() -> None:
    store, asked, go_on = MemoryStore(), asyncio.Event(), asyncio.Event()
    seen: list[list[str]] = []

    async def answer(request: ModelRequest) -> Any:
        asked.set()
        await go_on.wait()
        seen.append([item.text for item in request.history])
        return f"answer {len(seen)}"

    agent = Agent("any", scripted(answer))
    first = asyncio.create_task(run(agent, "question 1", store=store, thread="t", key="k1"))
    await asked.wait()
    second = asyncio.create_task(run(agent, "question 2", store=store, thread="t", key="k2"))
    await asyncio.sleep(0.01)
    go_on.set()
    assert [(await first).output, (await second).output] == ["answer 1", "answer 2"]
    assert seen == [["question 1"], ["question 1", "answer 1", "question 2"]]


async def test_a_turn_that_was_left_open_is_finished_before_the_next_one_of_its_thread() -> None:
    memory = Memory()
    seen: list[str] = []

    def answer(request: ModelRequest) -> Any:
        seen.append(list(request.history)[-1].text)
        return f"to {seen[-1]}"

    agent = Agent("any", scripted(answer))
    dying = Dying(memory, after=1)
    with pytest.raises(Died):
        await run(agent, "first", store=dying, thread="t", key="k1")
    await dying.close()
    store = MemoryStore(memory)
    result = await run(agent, "second", store=store, thread="t", key="k2")
    assert result.output == "to second"
    assert [item.text for item in result.history()] == ["first", "to first", "second", "to second"]
    assert (await run(agent, "first", store=store, thread="t", key="k1")).output == "to first"


async def test_history_comes_before_the_message_it_is_given_with() -> None:
    seen: list[list[str]] = []

    def answer(request: ModelRequest) -> Any:
        seen.append([item.text for item in request.history])
        return "done"

    earlier = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "x" * 100_000}]
    result = await run(Agent("any", scripted(answer)), "now", history=earlier)
    assert seen == [["before", "x" * 100_000, "now"]]
    assert result.history()[2].text == "now"
