"""What an operator does with agents of a runtime: another model, revisions, archive, delete; and what models see."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Budget, Runtime, open_store, tool
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import AgentCreated, AgentDeleted, MessageAdmitted, ToolResult, TurnStarted
from wakeful.errors import (
    AgentNameTaken,
    AgentNotFound,
    AgentStopped,
    InvalidConfig,
    InvalidRequest,
    UnknownProvider,
)
from wakeful.ports import AdmissionAnswer, ModelRequest
from wakeful.service.commands.interruption import cancel_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock, scripted
from wakeful.testing.wrapped_store import WrappedStore


def script(folder: Path, name: str, *words: str) -> str:
    """A model that says these words."""
    path = folder / f"{name}.yaml"
    path.write_text("".join(f"- text: {each}\n" for each in words))
    return f"scripted:{path}"


def calls(name: str, **arguments: object) -> dict[str, object]:
    return {"calls": [{"name": name, "arguments": arguments}]}


async def said(rt: Runtime, agent: str, **more: Any) -> str:
    return str((await rt.answer(await rt.send(agent, "Hello?", **more))).output)


# --- the model -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("HOL-MSEL-01", "HOL-MSEL-02", "HOL-MSEL-03", "HOL-STATE-09")
async def test_an_override_is_for_one_agent_survives_restarts_and_is_told(tmp_path: Path) -> None:
    one, two = script(tmp_path, "one", *["one"] * 9), script(tmp_path, "two", *["two"] * 9)
    definition = {"name": "ops", "model": one, "fallbacks": ["scripted:demo", two]}
    async with Runtime(tmp_path / "rt") as rt:
        await rt.create(definition)
        await rt.create({**definition, "name": "desk"})
        assert (await rt.agent("ops")).model.model_dump() == {
            "source": "runtime_default",
            "runtime_default_model": one,
            "effective_model": one,
            "effective_fallback_models": ("scripted:demo", two),
            "override_model": None,
        }
        state = await rt.set_model("ops", two, by="ada")
        assert (state.source, state.runtime_default_model, state.effective_model) == ("agent_override", one, two)
        assert (state.override_model, state.effective_fallback_models) == (two, ("scripted:demo",))
        assert [await said(rt, "ops"), await said(rt, "desk")] == ["two", "one"]
    async with Runtime(tmp_path / "rt") as rt:
        assert await said(rt, "ops") == "two"
        details = await rt.agent("ops")
        assert details.state.model_override == two
        assert (await rt.definition("ops"))["model"] == one, "its definition says what it said"


@pytest.mark.spec("HOL-MSEL-05", "HOL-MSEL-06")
async def test_to_clear_an_override_brings_back_the_model_of_the_definition(tmp_path: Path) -> None:
    one, two = script(tmp_path, "one", *["one"] * 9), script(tmp_path, "two", *["two"] * 9)
    async with Runtime(tmp_path / "rt") as rt:
        await rt.create({"name": "ops", "model": one, "fallbacks": [two]})
        assert (await rt.set_model("ops", "scripted:demo")).source == "agent_override"
        cleared = await rt.set_model("ops", None)
        assert (cleared.source, cleared.effective_model) == ("runtime_default", one)
        assert (cleared.effective_fallback_models, cleared.override_model) == ((two,), None)
        assert await said(rt, "ops") == "one"


@pytest.mark.spec("HOL-MSEL-04")
async def test_a_turn_that_is_under_way_ends_with_the_model_it_began_with_also_after_a_restart(tmp_path: Path) -> None:
    begun = asyncio.Event()

    @tool(effect="pure")
    async def look() -> str:
        """Look it up."""
        begun.set()
        if not (tmp_path / "go").exists():
            await asyncio.Event().wait()
        return "found"

    first = tmp_path / "first.yaml"
    first.write_text("- calls: [{name: look, arguments: {}}]\n- text: first\n")
    second = script(tmp_path, "second", "second")
    agent = Agent("ops", f"scripted:{first}", tools=[look])
    async with Runtime(tmp_path / "rt", agents=[agent], grace=0) as rt:
        sent = await rt.send("ops", "Look it up.")
        await begun.wait()
        await rt.set_model("ops", second)
        assert (await rt.agent("ops")).status == "awake_running", "nothing was stopped"
    (tmp_path / "go").touch()
    async with Runtime(tmp_path / "rt", agents=[agent]) as rt:
        assert (await rt.answer(sent)).output == "first"
        assert await said(rt, "ops") == "second"


async def test_a_model_that_nobody_knows_or_the_owner_excludes_is_refused_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf.toml").write_text('[models]\ndeny = ["scripted:*"]\n')
    async with Runtime(tmp_path / "rt") as rt:
        await rt.create({"name": "ops", "model": "scripted:demo"})
        with pytest.raises(UnknownProvider):
            await rt.set_model("ops", "nobody:knows-it")
        with pytest.raises(AgentNotFound):
            await rt.set_model("desk", "scripted:demo")
        assert (await rt.agent("ops")).model.source == "runtime_default"
    monkeypatch.setenv("WAKEFUL_CONFIG", str(tmp_path / "conf.toml"))
    async with Runtime(tmp_path / "rt") as rt:
        with pytest.raises(InvalidConfig, match="is ruled out"):
            await rt.set_model("ops", "scripted:demo")


# --- revisions -------------------------------------------------------------------------------------------------------


async def test_every_revision_is_kept_counted_compared_and_named_by_its_turns(tmp_path: Path) -> None:
    clock = FixedClock()
    async with Runtime(tmp_path / "rt", clock=clock) as rt:
        await rt.create({"name": "ops", "model": "scripted:demo", "instructions": "Be kind.\nBe brief."})
        await said(rt, "ops", thread="a")
        clock.advance(7_200)
        await rt.update("ops", instructions="Be kind.\nBe thorough.")
        await said(rt, "ops", thread="b")
        await said(rt, "ops", thread="c")
        new, old = await rt.revisions("ops")
        assert (new.in_force, old.in_force) == (True, False)
        assert (new.turns, old.turns, new.source) == (2, 1, "api")
        assert new.at - old.at == 7_200
        assert (await rt.agent("ops")).turns_since_revision == 2
        change = await rt.diff("ops")
        assert change.splitlines()[2:] == [
            "@@ -1,5 +1,5 @@",
            " instructions:",
            "   Be kind.",
            "-  Be brief.",
            "+  Be thorough.",
            ' model: "scripted:demo"',
            ' name: "ops"',
        ]
        assert await rt.diff("ops", new.revision[7:15], old.revision) != change
        with pytest.raises(InvalidRequest, match="has no revision 'ffff'"):
            await rt.diff("ops", "ffff")
    async with opened_store(tmp_path / "rt" / "wakeful.db") as store:
        started = [e.fact.event for e in await store.read("ops") if isinstance(e.fact.event, TurnStarted)]
    assert [each.revision for each in started] == [old.revision, new.revision, new.revision]


async def test_of_an_agent_in_code_what_can_be_said_of_it_is_kept_and_compared(tmp_path: Path) -> None:
    async with Runtime(tmp_path / "rt", agents=[Agent("ops", "scripted:demo", "Be brief.")]) as rt:
        with pytest.raises(InvalidRequest, match="was never changed"):
            await rt.diff("ops")
    async with Runtime(tmp_path / "rt", agents=[Agent("ops", "scripted:demo", "Be thorough.")]) as rt:
        assert {'-instructions: "Be brief."', '+instructions: "Be thorough."'} <= set(
            (await rt.diff("ops")).splitlines()
        )


# --- archive and delete ----------------------------------------------------------------------------------------------


async def test_an_archived_agent_is_in_no_listing_and_comes_back_when_it_is_resumed(tmp_path: Path) -> None:
    async with Runtime(tmp_path / "rt") as rt:
        await rt.create({"name": "ops", "model": "scripted:demo"})
        away = await rt.archive("ops", by="ada", reason="summer")
        assert (away.status, away.changed_by, away.reason) == ("stopped", "ada", "summer")
        assert away.hint == "It was archived, and does nothing. To let it run: wakeful agent resume ops"
        assert await rt.agents() == []
        assert [each.agent for each in await rt.agents(archived=True)] == ["ops"]
        with pytest.raises(AgentStopped, match="agent ops was archived by ada"):
            await rt.send("ops", "Hello?")
    async with Runtime(tmp_path / "rt") as rt:
        assert await rt.agents() == [], "a restart changes nothing about it"
        assert (await rt.resume("ops")).archived_at is None
        assert [each.agent for each in await rt.agents()] == ["ops"]
        assert await said(rt, "ops")


def maker() -> Agent[None, str]:
    """Makes a private child, or one that is for everybody."""

    def reply(request: ModelRequest) -> Any:
        said = request.history[0].text
        if len(request.history) > 1 or "Make" not in said:
            return "done"
        public = {"preset": "public_named", "agent_id": "digger"}
        private = {"initial_message": "Dig.", "budget": {"model_calls": 5}}
        return {"calls": [{"name": "spawn_agent", "arguments": public if "digger" in said else private}]}

    return Agent("ops", scripted(reply), spawn="public_named", budget=Budget(model_calls=20))


async def test_private_children_that_are_over_keep_nobody_from_archiving_their_maker(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[maker()], clock=FixedClock()) as rt:
        await rt.answer(await rt.send("ops", "Make a child."))
        await rt.settled()
        assert [each.status for each in await rt.tasks("ops", over=True)] == ["completed"]
        assert (await rt.archive("ops")).archived_at is not None
        await rt.resume("ops")
        await rt.answer(await rt.send("ops", "Make digger.", thread="other"))
        with pytest.raises(InvalidRequest, match="child agents: digger"):
            await rt.archive("ops")


async def test_an_agent_that_another_one_made_runs_again_once_its_maker_is_back(tmp_path: Path) -> None:
    clock = FixedClock()
    async with Runtime(tmp_path, agents=[maker()], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Make digger."))
    async with Runtime(tmp_path, clock=clock) as rt:
        waiting = await rt.send("digger", "Hello?")
        await rt.settled()
        assert [each.control for each in await rt.agents() if each.agent == "digger"] == ["paused"]
    async with Runtime(tmp_path, agents=[maker()], clock=clock) as rt:
        assert (await rt.answer(waiting)).output == "done"
        assert [each.control for each in await rt.agents() if each.agent == "digger"] == ["running"]


async def test_while_something_is_open_an_agent_is_neither_archived_nor_deleted_and_is_told_what(
    tmp_path: Path,
) -> None:
    async with Runtime(tmp_path / "rt") as rt:
        await rt.create({"name": "ops", "model": "scripted:demo", "work_items": True})
        await rt.pause("ops")
        await rt.send("ops", "Hello?")
        item = await rt.enqueue("ops", "Clean up.")
        for attempt, done in ((rt.archive("ops"), "archived"), (rt.delete("ops"), "deleted")):
            with pytest.raises(InvalidRequest) as refused:
                await attempt
            assert refused.value.message == (
                f"agent 'ops' cannot be {done} now: 1 queued messages; work items: {item.id}"
            )
            assert "wakeful agent resume ops, whose turns take them; wakeful send ops" in refused.value.hint
        assert (await rt.agent("ops")).status == "paused"


def waiting_agent() -> Agent[None, str]:
    """Waits for rain, or asks."""

    @tool(effect="pure", approval=True)
    def pay() -> str:
        return "paid"

    def reply(request: ModelRequest) -> Any:
        said = request.history[-1].text
        if "Wait" in said:
            return calls("wait_for", reason="rain", wake="external")
        return calls("pay") if "Pay" in said else "noted"

    return Agent("ops", scripted(reply), tools=[pay])


async def test_a_stopped_agent_that_waits_is_put_away_and_its_wait_ends_when_it_is_back(tmp_path: Path) -> None:
    clock = FixedClock()
    async with Runtime(tmp_path, agents=[waiting_agent()], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Wait."))
        await rt.stop("ops")
        assert (await rt.archive("ops")).archived_at is not None
        clock.advance(2 * 86_400)
        await rt.settled()
        before = len(await rt._here.engine.store.turns_of_thread("ops", "main"))
        await rt.resume("ops")
        await rt.settled()
        assert len(await rt._here.engine.store.turns_of_thread("ops", "main")) == before + 1
        assert await rt._here.engine.store.open_waits("ops") == []


async def test_a_turn_that_rests_keeps_its_agent_from_being_put_away_and_the_hint_ends_it(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[waiting_agent()], clock=FixedClock()) as rt:
        turn = (await rt.answer(await rt.send("ops", "Pay."))).turn_id
        await rt.stop("ops")
        with pytest.raises(InvalidRequest, match=f"open turns: {turn}") as refused:
            await rt.archive("ops")
        assert refused.value.hint == "Let it finish, or end it first: wakeful cancel TURN"
        await cancel_turn(rt._here.engine, turn)
        assert (await rt.archive("ops")).archived_at is not None


class Late(WrappedStore):
    """Somebody is heard in the moment in which an agent is deleted."""

    says: list[MessageAdmitted]

    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> AdmissionAnswer | None:
        if isinstance(facts[-1].event, AgentDeleted) and self.says:
            await self.inner.admit(agent_id, [Fact(self.says.pop(), facts[-1].at, "main")])
        return await self.inner.admit(agent_id, facts, **options)


async def test_what_is_accepted_in_the_moment_of_a_deletion_keeps_the_agent(tmp_path: Path) -> None:
    store = Late(MemoryStore())
    store.says = []
    async with Runtime(store=store) as rt:
        await rt.create({"name": "ops", "model": "scripted:demo"})
        await rt.pause("ops")
        await rt.send("ops", "Hello?")
        (admitted,) = [e.fact.event for e in await store.read("ops") if isinstance(e.fact.event, MessageAdmitted)]
        await rt.resume("ops")
        await rt.settled()
        store.says = [admitted.model_copy(update={"message_id": "msg_late"})]
        with pytest.raises(InvalidRequest, match="1 queued messages"):
            await rt.delete("ops")
        assert (await rt.answer("msg_late")).output
        await rt.settled()
        await rt.delete("ops")


async def test_a_deleted_agent_is_gone_its_home_is_moved_aside_and_its_name_is_taken(tmp_path: Path) -> None:
    async with Runtime(tmp_path / "rt") as rt:
        made = await rt.create({"name": "ops", "model": "scripted:demo", "wake": [{"cron": "0 7 * * *", "say": "Up."}]})
        await said(rt, "ops")
        await rt.settled()
        Path(made.agent_home).mkdir(parents=True, exist_ok=True)
        (Path(made.agent_home) / "mine.md").write_text("kept")
        await rt.delete("ops", by="ada")
        assert await rt.agents(private=True, archived=True) == []
        for attempt in (rt.agent("ops"), rt.send("ops", "Hello?"), rt.resume("ops"), rt.delete("ops")):
            with pytest.raises(AgentNotFound):
                await attempt
        assert await rt.timers() == []
        (aside,) = (tmp_path / "rt" / "agents" / ".deleted").iterdir()
        assert (aside / "mine.md").read_text() == "kept"
        with pytest.raises(AgentNameTaken, match="cannot be used again"):
            await rt.create({"name": "ops", "model": "scripted:demo"})
    async with open_store(tmp_path / "rt" / "wakeful.db") as store:
        assert len(await store.turns()) == 1, "what it did can still be read"


async def test_agents_of_programs_and_files_and_the_default_agent_are_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "rt" / "agents").mkdir(parents=True)
    file = tmp_path / "rt" / "agents" / "desk.yaml"
    file.write_text(json.dumps({"name": "desk", "model": "scripted:demo"}))
    async with Runtime(tmp_path / "rt", agents=[Agent("ops", "scripted:demo")], model="scripted:demo") as rt:
        await rt.answer(await rt.send(None, "Hello."))
        await rt.settled()
        for name, where in (
            ("ops", "is defined in the program"),
            ("desk", str(file)),
            ("main", "is the default agent"),
        ):
            with pytest.raises(InvalidRequest, match=where):
                await rt.delete(name)


# --- the state, and what models see of it ----------------------------------------------------------------------------


@pytest.mark.spec("HOL-STATE-01", "HOL-STATE-10", "HOL-STATE-11", "HOL-STATE-15")
async def test_the_state_of_an_agent_counts_what_it_did_and_names_what_it_is_at(tmp_path: Path) -> None:
    @tool(effect="pure")
    async def look() -> str:
        """Look it up."""
        return "found"

    model = scripted([calls("look"), calls("look"), "done"], usage="auto")
    agent = Agent("ops", model, tools=[look], work_items=True)
    async with Runtime(tmp_path / "rt", agents=[agent]) as rt:
        await said(rt, "ops", thread="chat")
        state = (await rt.agent("ops")).state
        assert (state.id, state.status, state.pending) == ("ops", "awake_idle", 0)
        assert (state.total_message_count, state.compacted_message_count, state.total_model_rounds) == (1, 0, 3)
        assert state.total_input_tokens > state.total_output_tokens > 0
        (latency,) = state.tool_latency
        assert (latency.tool_name, latency.total_calls) == ("look", 2)
        assert latency.total_duration_ms >= 0
        assert (state.current_work_item_id, state.current_run_id) == (None, None)
        await rt.pause("ops")
        await rt.send("ops", "Hello?", thread="chat")
        assert (await rt.agent("ops")).state.pending == 1


async def test_the_current_work_item_is_named_by_the_state(tmp_path: Path) -> None:
    def answer(request: Any) -> object:
        text = str(request.history[-1])
        if request.answered == 0:
            return calls("create_work_item", objective="Clean up.")
        if request.answered == 1:
            found = text[text.index("wi_") :][:19]
            return calls("pick_work_item", work_item_id=found)
        if request.answered == 2:
            return calls("wait_for", reason="the operator", wake="operator_input")
        return "done"

    agent = Agent("ops", scripted(answer), work_items=True)
    async with Runtime(tmp_path / "rt", agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Take it on."))
        (item,) = await rt.work_items("ops")
        details = await rt.agent("ops")
        assert details.state.current_work_item_id == item.id
        assert (details.status, details.closure.outcome) == ("asleep", details.closure.outcome)


async def child_of(rt_home: Path, parent: str, name: str) -> None:
    created = AgentCreated(
        agent_name=name,
        agent_kind="child",
        visibility="private",
        ownership="parent_supervised",
        profile_preset="private_child",
        lineage_parent_agent_id=parent,
    )
    async with opened_store(rt_home / "wakeful.db") as store:
        await store.admit(name, [Fact(created, 1_800_000_000_000_000)])


async def looked_at(home: Path, *arguments: dict[str, object], agent: str = "ops") -> list[dict[str, Any]]:
    """What calls of `agent_get` gave a model."""
    steps = [calls("agent_get", **each) for each in arguments]
    async with Runtime(home, agents=[Agent(agent, scripted([*steps, "done"]))]) as rt:
        await child_of(home, "ops", "helper")
        result = await rt.answer(await rt.send(agent, "Look."))
        return [
            json.loads(call.result) if call.status == "success" else {"error": call.error} for call in result.calls()
        ]


@pytest.mark.spec("HOL-AGET-01", "HOL-AGET-02", "HOL-AGET-03", "HOL-AGET-05")
async def test_a_model_looks_at_its_own_agent(tmp_path: Path) -> None:
    (found,) = await looked_at(tmp_path, {})
    assert found["identity"] == {
        "agent_id": "ops",
        "kind": "named",
        "visibility": "public",
        "ownership": "self_owned",
        "profile_preset": "public_named",
    }
    assert set(found) == {"identity", "agent_home", "state", "model", "closure", "children", "active_children"}
    assert found["state"]["status"] == "awake_running", "it looks while it runs"
    assert {"outcome", "runtime_posture"} <= set(found["closure"]), "what it waits for"
    assert "Look." not in json.dumps(found), "nothing that anybody said"


@pytest.mark.spec("HOL-AGET-04", "HOL-AGET-06", "HOL-AGENT-15")
async def test_a_parent_sees_its_private_child_and_nobody_else_does(tmp_path: Path) -> None:
    own, child, stranger = await looked_at(tmp_path, {}, {"agent_id": "helper"}, {"agent_id": "nobody"})
    (summary,) = own["children"]
    assert summary["identity"] == child["identity"]
    assert child["identity"]["lineage_parent_agent_id"] == "ops"
    assert (summary["status"], summary["pending"], summary["turns"]) == ("booting", 0, 0)
    assert "you made no agent 'nobody'" in stranger["error"]
    async with Runtime(
        tmp_path, agents=[Agent("other", scripted([calls("agent_get", agent_id="helper"), "done"]))]
    ) as rt:
        result = await rt.answer(await rt.send("other", "Look."))
        (call,) = result.calls()
        assert call.status == "error", "it made no such agent"
        assert [each.identity.agent_id for each in (await rt.agent("ops")).children] == ["helper"]


async def test_an_agents_own_tool_of_that_name_is_its_own(tmp_path: Path) -> None:
    @tool(effect="pure")
    async def agent_get() -> str:
        """Mine."""
        return "mine"

    agent = Agent("ops", scripted([calls("agent_get"), "done"]), tools=[agent_get])
    async with Runtime(tmp_path, agents=[agent]) as rt:
        result = await rt.answer(await rt.send("ops", "Look."))
        (call,) = result.calls()
        assert call.result == "mine"
    async with opened_store(tmp_path / "wakeful.db") as store:
        results = [e.fact.event for e in await store.read("ops") if isinstance(e.fact.event, ToolResult)]
    assert len(results) == 1
