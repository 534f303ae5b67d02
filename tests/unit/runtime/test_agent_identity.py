"""What an agent of a runtime is and how it stands, through `Runtime`: identity, home, status."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kit.runs.child_agents import heard
from wakeful import Agent, Runtime, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import AgentCreated
from wakeful.errors import AgentNotFound
from wakeful.ports import ModelRequest
from wakeful.testing import FixedClock, scripted


def clerk(*replies: object, name: str = "clerk") -> Agent[None, str]:
    return Agent(name, scripted(list(replies) or ["done"] * 9))


def calls(name: str, **arguments: object) -> dict[str, object]:
    return {"calls": [{"name": name, "arguments": arguments}]}


@pytest.mark.spec("HOL-AGENT-01", "HOL-INIT-01")
async def test_an_agent_has_an_identity_and_a_home_below_the_home_of_its_runtime(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk()]) as rt:
        record = await rt.agent("clerk")
        assert record.agent == "clerk"
        assert record.agent_home == str(tmp_path / "agents" / "clerk")
        assert (record.kind, record.visibility, record.ownership) == ("named", "public", "self_owned")
        assert (record.profile_preset, record.lineage_parent_agent_id) == ("public_named", None)
        (listed,) = await rt.agents()
        assert listed.model_dump().items() <= record.model_dump().items()


@pytest.mark.spec("HOL-AGENT-02", "HOL-AGENT-06", "HOL-AGENT-07")
async def test_the_default_agent_is_meant_where_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAKEFUL_AGENT_ID", raising=False)
    async with Runtime(tmp_path / "one", agents=[clerk(name="main"), clerk(name="desk")]) as rt:
        assert (await rt.agent()).agent == "main"
        assert [each.kind for each in await rt.agents()] == ["default", "named"]
    monkeypatch.setenv("WAKEFUL_AGENT_ID", "desk")
    async with Runtime(tmp_path / "two", agents=[clerk(name="main"), clerk(name="desk")]) as rt:
        assert (await rt.agent()).agent == "desk"
        assert [each.kind for each in await rt.agents()] == ["named", "default"]


async def child_of(rt_home: Path, parent: str, name: str) -> None:
    """A private child, as whoever makes one writes it down."""
    created = AgentCreated(
        agent_name=name,
        agent_kind="child",
        visibility="private",
        ownership="parent_supervised",
        profile_preset="private_child",
        lineage_parent_agent_id=parent,
    )
    async with opened_store(rt_home / "wakeful.db") as store:
        await store.admit(name, [Fact(created, new_engine(store).clock.now())])


@pytest.mark.spec("HOL-AGENT-03", "HOL-AGENT-04", "HOL-AGENT-05", "HOL-AGENT-14")
async def test_a_private_child_is_in_no_listing_and_can_be_looked_at_by_name(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk()]) as rt:
        await child_of(tmp_path, "clerk", "helper")
        assert [each.agent for each in await rt.agents()] == ["clerk"]
        assert [each.agent for each in await rt.agents(private=True)] == ["clerk", "helper"]
        child = await rt.agent("helper")
        assert child.visibility == "private"
        assert child.ownership == "parent_supervised"
        assert child.profile_preset == "private_child"
        assert child.lineage_parent_agent_id == "clerk"
        with pytest.raises(AgentNotFound) as missing:
            await rt.send("nobody", "Hello?")
        assert missing.value.hint == "It has: clerk.", "nor in what a mistake is told"


@pytest.mark.spec("HOL-AGENT-08", "HOL-AGENT-09")
async def test_to_name_an_agent_does_not_make_it_and_to_create_it_does(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk()]) as rt:
        for attempt in (rt.send("desk", "Hello?"), rt.wake("desk"), rt.agent("desk"), rt.pause("desk")):
            with pytest.raises(AgentNotFound):
                await attempt
        assert [each.agent for each in await rt.agents()] == ["clerk"]
        made = await rt.create({"name": "desk", "model": "scripted:demo"})
        assert (made.kind, made.visibility, made.ownership) == ("named", "public", "self_owned")
        assert [each.agent for each in await rt.agents()] == ["clerk", "desk"]


@pytest.mark.spec("HOL-STATE-02", "HOL-STATE-03")
async def test_the_status_follows_from_rows_from_booting_to_running_and_back(tmp_path: Path) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @tool(effect="pure")
    async def look() -> str:
        """Look it up."""
        begun.set()
        await go_on.wait()
        return "found"

    agent = Agent("clerk", scripted([calls("look"), "done"]), tools=[look])
    async with Runtime(tmp_path, agents=[agent]) as rt:
        assert (await rt.agent("clerk")).status == "awake_idle"
        await child_of(tmp_path, "clerk", "helper")
        assert (await rt.agent("helper")).status == "booting", "nothing says yet what it is"
        sent = await rt.send("clerk", "Look it up.")
        await begun.wait()
        assert (await rt.agent("clerk")).status == "awake_running"
        assert [each.status for each in await rt.agents()] == ["awake_running"]
        go_on.set()
        await rt.answer(sent)
        await rt.settled()
        assert (await rt.agent("clerk")).status == "awake_idle"


async def test_a_turn_that_nobody_runs_any_more_does_not_look_as_if_it_ran(tmp_path: Path) -> None:
    begun = asyncio.Event()

    @tool(effect="pure")
    async def look() -> str:
        """Look it up."""
        begun.set()
        await asyncio.Event().wait()
        return "never"

    agent = Agent("clerk", scripted([calls("look")]), tools=[look])
    async with Runtime(tmp_path, agents=[agent], grace=0) as rt:
        await rt.send("clerk", "Look it up.")
        await begun.wait()
    async with Runtime(tmp_path, agents=[clerk(name="other")]) as rt:
        assert (await rt.agent("clerk")).status != "awake_running"


@pytest.mark.spec("HOL-STATE-04", "HOL-STATE-05", "HOL-STATE-06")
async def test_an_agent_that_waits_is_asleep_or_waits_for_a_task_and_its_operator_can_hold_it(tmp_path: Path) -> None:
    clock, sleep = FixedClock(), calls("sleep", reason="rest", duration_ms=60_000)
    builds = calls("wait_for", reason="the compiler", wake="external")
    steps = [calls("spawn_agent", initial_message="Build it."), calls("wait_for", reason="it", wake="task_result")]

    def reply(request: ModelRequest) -> Any:
        return builds if "Build it." in heard(request)[0] else steps[request.answered]

    waiting = Agent("clerk", scripted(reply), spawn=True)
    async with Runtime(tmp_path, agents=[waiting], clock=clock) as rt:
        await rt.answer(await rt.send("clerk", "Wait for the build."))
        assert (await rt.agent("clerk")).status == "awaiting_task"
        assert [each.status for each in await rt.agents() if each.agent == "clerk"] == ["awaiting_task"]
    async with Runtime(tmp_path / "other", agents=[clerk(sleep)], clock=clock) as rt:
        await rt.answer(await rt.send("clerk", "Sleep."))
        assert (await rt.agent("clerk")).status == "asleep"
        closure = await rt.closure("clerk")
        assert (await rt.pause("clerk")).status == "paused"
        assert (await rt.stop("clerk")).status == "stopped"
        assert await rt.closure("clerk") == closure, "what its operator says of it does not change what it waits for"
    async with Runtime(tmp_path / "other", agents=[clerk()], clock=clock) as rt:
        assert (await rt.agent("clerk")).status == "stopped", "a restart changes nothing about it"
        assert (await rt.resume("clerk")).status == "asleep"


async def test_guidance_in_an_agents_home_is_read_whether_or_not_it_has_a_workspace(tmp_path: Path) -> None:
    (tmp_path / "agents" / "clerk").mkdir(parents=True)
    (tmp_path / "agents" / "clerk" / "AGENTS.md").write_text("Always say please.\n")
    seen: list[str] = []

    def answer(request: object) -> str:
        seen.append(getattr(request, "instructions", ""))
        return "done"

    agent = Agent("clerk", scripted(answer), instructions="Look after the desk.")
    async with Runtime(tmp_path, agents=[agent]) as rt:
        await rt.answer(await rt.send("clerk", "Hello."))
    assert "Always say please." in seen[0]
    await run(agent, "Hello.", store=tmp_path / "runs.db", thread="main")
    assert "Always say please." not in seen[1], "the agents of another store live elsewhere"
