"""One path for every entrance: keys, threads, and who runs a turn."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kit.runs.engine_runs import Died, Dying, calls, kinds
from wakeful import Agent, KeyReused, RunContext, RunResult, resume_all, run, tool
from wakeful.contracts.errors import AgentBusy, InvalidValue, OwnerFenced, TurnNotFound
from wakeful.ports import Claim, ModelRequest
from wakeful.store.leases import elapsed
from wakeful.store.memory import Memory, MemoryStore
from wakeful.surfaces.library.runs import resume
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore


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
        await resume(MemoryStore(memory), (await MemoryStore(memory).turns())[0].turn_id, [agent])
    assert await resume_all(MemoryStore(memory), [agent]) == [], "another is at it"
    task.cancel()
    await asyncio.wait({task})


class _Owner:
    """A process of its own: a store, and a model that answers when it is told to."""

    def __init__(self, memory: Memory, name: str) -> None:
        self.store, self.begun, self.go_on = MemoryStore(memory), asyncio.Event(), asyncio.Event()
        self.heard: list[str] = []
        self.name = name

        async def answer(request: ModelRequest) -> str:
            self.heard.append([item.text for item in request.history if item.role == "user"][-1])
            self.begun.set()
            await self.go_on.wait()
            return f"{self.heard[-1]}, by {name}"

        self.agent = Agent("any", scripted(answer))

    def run(self, prompt: str, *, store: Any = None, **options: Any) -> "asyncio.Task[RunResult[str]]":
        return asyncio.create_task(run(self.agent, prompt, store=store or self.store, **options))


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_run_whose_key_another_process_runs_follows_it_and_gets_its_result() -> None:
    memory = Memory()
    one, two = _Owner(memory, "one"), _Owner(memory, "two")
    first = one.run("go", key="k")
    await one.begun.wait()
    second = two.run("go", key="k")
    await settled()
    assert not second.done()
    one.go_on.set()
    assert [(await each).output for each in (first, second)] == ["go, by one"] * 2
    assert two.heard == []


async def test_a_follower_whose_owner_is_gone_takes_over() -> None:
    memory = Memory()
    one, two = _Owner(memory, "one"), _Owner(memory, "two")
    first = one.run("go", key="k")
    await one.begun.wait()
    second = two.run("go", key="k")
    two.go_on.set()
    await settled()
    assert not second.done()
    await one.store.close()  # without letting go: as a process that ended
    assert (await second).output == "go, by two"
    first.cancel()
    await asyncio.wait({first})


class TakenUp(WrappedStore):
    """Somebody else goes on with the turn at rest in the moment before its wake is looked up."""

    def __init__(self, memory: Memory, taken_up: Callable[[], Awaitable[None]]) -> None:
        super().__init__(MemoryStore(memory))
        self._taken_up = taken_up

    async def wake(self, agent_id: str, thread_id: str, turn_id: str) -> Any:
        await self._taken_up()
        return await super().wake(agent_id, thread_id, turn_id)


async def test_of_two_who_wait_for_a_provider_both_get_the_answer() -> None:
    memory, asked, go, others = Memory(), asyncio.Event(), asyncio.Event(), []
    lost = iter([{"fail": [{"kind": "server_error", "status": 503}]}] * 3)

    async def answer(request: ModelRequest) -> Any:
        if (failure := next(lost, None)) is not None:
            return failure
        asked.set()
        await go.wait()
        return "done"

    agent = Agent("any", scripted(answer))

    async def taken_up() -> None:
        if not others:
            others.append(asyncio.create_task(run(agent, "go", store=MemoryStore(memory), key="k")))
            await asked.wait()
            asyncio.get_running_loop().call_soon(go.set)

    first = await run(agent, "go", store=TakenUp(memory, taken_up), key="k")
    other = await others[0]
    assert [(each.status, each.output, each.turn_id) for each in (first, other)] == [
        ("completed", "done", first.turn_id)
    ] * 2


async def test_messages_to_a_busy_thread_are_each_run_by_their_own_caller_in_the_order_they_came() -> None:
    memory = Memory()
    one, two = _Owner(memory, "one"), _Owner(memory, "two")
    runs = [one.run("a", thread="t")]
    await one.begun.wait()
    for owner, prompt in ((two, "b"), (one, "c"), (two, "d")):
        runs.append(owner.run(prompt, thread="t"))
        await settled()
    two.go_on.set()
    one.go_on.set()
    assert [(await each).output for each in runs] == ["a, by one", "b, by two", "c, by one", "d, by two"]
    rows = await one.store.turns_of_thread("any", "t")
    assert [(row.prompt_preview, row.turn_index) for row in rows] == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]


class _Unleased(WrappedStore):
    """A store that takes every lease for one that ran out."""

    async def claim(self, turn_id: str, *, reservation: str | None = None) -> Claim:
        try:
            return await super().claim(turn_id, reservation=reservation)
        except AgentBusy:
            inner = self.inner
            assert isinstance(inner, MemoryStore)
            late = MemoryStore(inner._memory, clock=lambda: elapsed() + 3600)
            self.inner = late
            return await late.claim(turn_id, reservation=reservation)


async def test_inversion_a_thread_whose_lease_nobody_minds_is_run_by_two_at_once() -> None:
    memory = Memory()
    one, two = _Owner(memory, "one"), _Owner(memory, "two")
    first = one.run("go", key="k")
    await one.begun.wait()
    two.go_on.set()
    second = two.run("go", key="k", store=_Unleased(two.store))
    assert (await second).output == "go, by two"
    assert (one.heard, two.heard) == (["go"], ["go"]), "asked twice"
    one.go_on.set()
    with pytest.raises(OwnerFenced):
        await first


async def test_a_message_whose_caller_is_gone_is_answered_by_the_next_one() -> None:
    memory = Memory()
    one, two, three = _Owner(memory, "one"), _Owner(memory, "two"), _Owner(memory, "three")
    first = one.run("a", thread="t")
    await one.begun.wait()
    gone, given_up = two.run("b", thread="t"), three.run("c", thread="t")
    await settled()
    last = three.run("d", thread="t")
    await settled()
    given_up.cancel()
    await asyncio.wait({given_up})
    await two.store.close()
    one.go_on.set()
    three.go_on.set()
    assert ((await first).output, (await last).output) == ("a, by one", "d, by three")
    assert three.heard == ["b", "c", "d"], "all that was acknowledged is answered"
    gone.cancel()
    await asyncio.wait({gone})


async def test_a_thread_that_runs_elsewhere_keeps_no_other_thread_waiting() -> None:
    memory = Memory()
    one, two = _Owner(memory, "one"), _Owner(memory, "two")
    first = one.run("a", thread="t")
    await one.begun.wait()
    two.go_on.set()
    assert (await two.run("b", thread="u")).output == "b, by two"
    assert not first.done()
    one.go_on.set()
    await first


async def test_a_message_that_supersedes_has_the_turn_elsewhere_stopped_and_is_answered_then() -> None:
    memory = Memory()
    one, two = _Owner(memory, "one"), _Owner(memory, "two")
    first = one.run("a", thread="t")
    await one.begun.wait()
    two.go_on.set()
    second = await two.run("b", thread="t", supersede=True)
    assert ((await first).status, second.output) == ("cancelled", "b, by two")


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
