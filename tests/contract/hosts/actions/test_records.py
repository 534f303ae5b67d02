"""Pending actions and approvals are one thing: deciding about the action lets the turn go on."""

from pathlib import Path
from typing import Any

import pytest

from contract.waiting.test_pending_action_stores import action
from kit.runs.engine_runs import calls
from wakeful import Agent, resume, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.envelope import iso
from wakeful.engine.run_request import RunRequest
from wakeful.hosts import Abilities, Ability, OwnPendingActionStore
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.commands.approvals import approvals
from wakeful.service.commands.turns import run_turn
from wakeful.service.hooks import HookRegistry
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock

ran: list[str] = []


@tool(approval=True)
def publish(post: int, password: str = "") -> str:
    ran.append(f"post {post}")
    return "published"


def agent() -> Agent[None, str]:
    model = ScriptedModel([calls(("publish", {"post": 7, "password": "hunter2"})), "done"])
    return Agent("support", model, tools=[publish])


@pytest.mark.parametrize(("status", "times"), [("accepted", 1), ("rejected", 0), ("deleted", 0)])
async def test_a_decision_about_the_action_is_the_decision_about_the_call(
    tmp_path: Path, status: str, times: int
) -> None:
    place = str(tmp_path / "store.db")
    waiting = await run(agent(), "go", store=place)
    async with opened_store(place) as store:
        actions = OwnPendingActionStore(new_engine(store))
        (action,) = await actions.list({"status": "pending"})
        assert (action.action_id, action.kind, action.agent) == (waiting.approvals[0].id, "tool_call", "support")
        assert action.preview == {"tool_name": "publish", "parameters": {"post": 7, "password": "[redacted]"}}
        end = action.model_copy(update={"status": status, "resolved_at": action.created_at, "resolver": "anna"})
        assert await actions.record_resolution(end) is True
        assert await actions.record_resolution(end) is False
        seen = await actions.get(action.action_id)
        assert seen is not None and seen.resolver == "anna"
        assert seen.status == ("accepted" if times else "rejected")
    ran.clear()
    result = await resume(place, waiting.turn_id, [agent()])
    assert (result.output, ran) == ("done", ["post 7"] * times)


@pytest.mark.spec("API-ABL-05")
async def test_a_decision_stages_the_action_in_wakefuls_own_store_and_the_ability_does_not_run(tmp_path: Path) -> None:
    hooks, published = HookRegistry(find=list), []
    decision = {
        "action_id": "pa_1",
        "kind": "publish",
        "summary": "Publish post 7?",
        "preview": {"post": 7},
        "apply_input": {"post": 7},
        "created_at": "2026-01-01T00:00:00Z",
        "instruction": "Ask the editor.",
    }
    hooks.register("ability_pre_execute_decision", lambda before, name, given, ability: decision)
    place = str(tmp_path / "store.db")

    async def call() -> Any:
        async with opened_store(place) as store:
            abilities = Abilities.on(new_engine(store), hooks)
            abilities.register(Ability("posts/publish", published.append, lambda given: True))
            return await abilities.call("posts/publish", {"post": 7})

    envelope = await call()
    assert (envelope["type"], envelope["payload"]["action_id"]) == ("approval_required", "pa_1")
    assert envelope["metadata"] == {"ability_name": "posts/publish", "staged": True}
    assert (envelope["payload"]["instruction"], published) == ("Ask the editor.", [])
    async with opened_store(place) as store:  # another process finds it
        kept = await OwnPendingActionStore(new_engine(store)).get("pa_1")
        assert kept is not None and (kept.status, kept.apply_input) == ("pending", {"post": 7})
    mine: list[Any] = []
    theirs = type("Theirs", (), {"store": lambda self, action: mine.append(action)})()
    hooks.register("pending_action_store", lambda *_: theirs)
    decision["action_id"] = "pa_2"
    await call()
    assert [action.action_id for action in mine] == ["pa_2"]  # the hook's store comes before the default


async def test_what_hosts_keep_is_no_approval_of_a_turn(tmp_path: Path) -> None:
    async with opened_store(str(tmp_path / "store.db")) as store:
        system = new_engine(store)
        actions = OwnPendingActionStore(system)
        await actions.store(action())
        assert await approvals(system, pending_only=False) == []
        assert await store.verify() == []
        before = await store.actions()
        await store.rebuild_views()
        assert await store.actions() == before


@pytest.mark.spec("API-PND-06")
@pytest.mark.parametrize("end", ["accepted", "rejected", "expired"])
async def test_what_was_stored_is_executed_or_nothing_and_the_run_goes_on_with_a_paired_transcript(end: str) -> None:
    done: list[tuple[int, str]] = []

    @tool(approval=True)
    def publish(post: int, password: str = "") -> str:
        done.append((post, password))
        return "published"

    model = ScriptedModel([calls(("publish", {"post": 7, "password": "hunter2"})), "done"])
    who = Agent("support", model, tools=[publish], approval_expiry=60.0)
    clock = FixedClock()
    around = new_engine(MemoryStore(), clock=clock)
    await run_turn(around, RunRequest(who, "go", key="k"))
    actions = OwnPendingActionStore(around)
    (action,) = await actions.list({"status": "pending"})
    assert done == []
    if end == "expired":
        clock.advance(61)
        assert await actions.expire(iso(clock.now())) == 1
    else:
        # Whoever decides cannot put anything in the place of what is stored.
        changed = {"tool_name": "publish", "parameters": {"post": 8, "password": "other"}}
        decided = {"status": end, "resolved_at": action.created_at, "resolver": "anna", "apply_input": changed}
        assert await actions.record_resolution(action.model_copy(update=decided)) is True
    result = await run_turn(around, RunRequest(who, "go", key="k"))
    assert (result.status, result.output) == ("completed", "done")
    assert done == ([(7, "hunter2")] if end == "accepted" else [])
    (call,) = result.calls()
    assert call.status == {"accepted": "success", "rejected": "rejected", "expired": "timed_out"}[end]
    ids = {
        kind: [message.tool_call_id for message in result.messages if message.type == kind]
        for kind in ("tool_call", "tool_result")
    }
    assert ids["tool_call"] == ids["tool_result"] == [call.call_id]
