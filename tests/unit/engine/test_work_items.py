"""Work items through `run`: created, picked, blocked, completed with a report, and shown to later turns."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls, of_kind
from wakeful import Agent, RunResult, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.errors import InvalidConfig, InvalidRequest
from wakeful.contracts.events import (
    FilesTainted,
    ModelRequested,
    ToolFailed,
    ToolResult,
    TurnStarted,
    WorkItemCompleted,
    WorkItemReminded,
    WorkQueueProjected,
)
from wakeful.contracts.work_items import WorkItem
from wakeful.decisions.context import prompt_cache_key
from wakeful.engine.run_request import MessageOrigin, RunRequest
from wakeful.engine.state_loader import load_config
from wakeful.ports import ModelRequest, Store
from wakeful.service.commands.turns import run_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.testing import FixedClock, scripted

AGENT = "builder"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("WAKEFUL_HOME", str(folder))
    return folder


class Builder:
    """An agent with work items in one thread of a store, under a clock that stands still."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = FixedClock()
        self.engine = new_engine(store, clock=self.clock)

    async def says(
        self, *script: Any, prompt: str = "go", origin: MessageOrigin | None = None, **options: Any
    ) -> RunResult[Any]:
        """A turn in which the model says this."""
        agent = Agent(AGENT, scripted(list(script)), work_items=True, **options)
        request = RunRequest(agent, prompt, thread="main", origin=origin or MessageOrigin())
        return await run_turn(self.engine, request)

    async def item(self, name: str) -> WorkItem:
        found = await self.store.work_item(name)
        assert found is not None
        return found

    async def created(self, objective: str = "mend the build", **fields: Any) -> str:
        before = {item.work_item_id for item in await self.store.open_work_items(AGENT)}
        await self.says(calls(("create_work_item", {"objective": objective, **fields})), "noted")
        (new,) = {item.work_item_id for item in await self.store.open_work_items(AGENT)} - before
        return new

    async def picked(self, objective: str = "mend the build", **fields: Any) -> str:
        name = await self.created(objective, **fields)
        await self.says(calls(("pick_work_item", {"work_item_id": name})), "picked")
        return name

    async def shown(self, result: RunResult[Any]) -> str:
        """The system prompt of a turn."""
        (started,) = of_kind(result, TurnStarted)
        return (await load_config(self.store, started.config_ref.digest)).instructions


@pytest.fixture
async def builder(store: Store) -> Builder:
    return Builder(store)


def answers(result: RunResult[Any]) -> list[Any]:
    return [json.loads(event.item.text) for event in of_kind(result, ToolResult)]


def errors(result: RunResult[Any]) -> list[str]:
    return [event.tool_error.kind for event in of_kind(result, ToolFailed)]


@pytest.mark.spec("HOL-WTOOL-01", "HOL-WTOOL-02")
async def test_the_tools_are_offered_where_the_agent_has_work_items_and_nowhere_else(builder: Builder) -> None:
    offered: list[list[str]] = []

    def script(request: ModelRequest) -> str:
        offered.append(sorted(declared.name for declared in request.tools))
        return "ok"

    await run(Agent(AGENT, scripted(script), work_items=True), "go", store=builder.store, thread="main")
    await run(Agent(AGENT, scripted(script)), "go", store=builder.store, thread="main")
    assert offered == [
        [
            "complete_work_item",
            "create_work_item",
            "get_work_item",
            "list_work_items",
            "notify_operator",
            "pick_work_item",
            "update_work_item",
        ],
        [],
    ]


@pytest.mark.spec("HOL-WORK-01", "HOL-WORK-03", "HOL-WORK-06", "HOL-WTOOL-03")
async def test_a_created_item_is_open_and_its_plan_is_a_file(builder: Builder, home: Path) -> None:
    todos = [{"text": "read the log"}, {"text": "mend", "state": "in_progress"}]
    name = await builder.created(plan="First look, then mend.", plan_status="ready", todo_list=todos)
    item = await builder.item(name)
    assert (item.state, item.plan_status, item.created_by) == ("open", "ready", "agent")
    assert item.todo_list == ({"text": "read the log", "state": "pending"}, {"text": "mend", "state": "in_progress"})
    plan = home / "agents" / AGENT / "work-items" / name / "plan.md"
    assert plan.read_text() == "First look, then mend."
    assert not any("First look" in str(value) for value in item), "the record does not hold the plan"


@pytest.mark.spec("HOL-WTOOL-04", "HOL-WORK-09")
async def test_an_item_is_read_with_where_its_plan_is_and_how_that_begins(builder: Builder, home: Path) -> None:
    name = await builder.created(plan="First look, then mend.")
    plan = (home / "agents" / AGENT / "work-items" / name / "plan.md").resolve()
    read = calls(("get_work_item", {"work_item_id": name}))
    (shown,) = answers(await builder.says(read, "ok"))
    artifact = shown.pop("plan_artifact")
    assert artifact.pop("updated_at").endswith("+00:00")
    assert artifact == {
        "path": str(plan),
        "hash": "sha256:" + hashlib.sha256(plan.read_bytes()).hexdigest(),
        "bytes": 22,
        "preview": "First look, then mend.",
        "preview_complete": True,
    }
    assert (shown["id"], shown["scheduling_state"], shown["readiness"]) == (name, "runnable", "runnable")
    plan.write_text("x" * 5_000)
    (again,) = answers(await builder.says(read, "ok"))
    assert (again["plan_artifact"]["bytes"], again["plan_artifact"]["preview_complete"]) == (5_000, False)
    assert len(again["plan_artifact"]["preview"]) == 2_000
    assert again["plan_artifact"]["hash"] != artifact["hash"]


@pytest.mark.spec("HOL-WTOOL-06", "HOL-WORK-07")
async def test_only_an_open_item_of_the_agent_can_be_picked(builder: Builder) -> None:
    first, second = await builder.picked(), await builder.created("answer the review")
    assert await builder.store.current_work_item_id(AGENT) == first
    await builder.says(calls(("complete_work_item", {"work_item_id": second})), "done")
    other = Agent("other", scripted([calls(("create_work_item", {"objective": "mine"})), "ok"]), work_items=True)
    await run(other, "go", store=builder.store, thread="main")
    (foreign,) = await builder.store.open_work_items("other")
    wrong = ("wi_none", second, foreign.work_item_id)
    result = await builder.says(*(calls(("pick_work_item", {"work_item_id": name})) for name in wrong), "ok")
    assert errors(result) == ["work_item_not_found", "work_item_completed", "work_item_not_found"]
    assert await builder.store.current_work_item_id(AGENT) == first


@pytest.mark.spec("HOL-WTOOL-07", "HOL-WTOOL-08", "HOL-WTOOL-09", "HOL-WTOOL-10")
async def test_an_update_changes_what_it_names_and_keeps_the_rest(builder: Builder) -> None:
    name = await builder.picked(todo_list=[{"text": "one"}, {"text": "two"}])
    now = builder.clock.now()

    async def updated(**fields: Any) -> WorkItem:
        await builder.says(calls(("update_work_item", {"work_item_id": name, **fields})), "ok")
        return await builder.item(name)

    blocked = await updated(blocked_by="CI")
    assert (blocked.blocked_by, blocked.recheck_at) == ("CI", now + 3_600_000_000), "an hour, where nobody says"
    kept = await updated(objective="mend the tests", todo_list=[{"text": "three", "state": "completed"}])
    assert (kept.objective, kept.blocked_by, kept.recheck_at) == ("mend the tests", "CI", now + 3_600_000_000)
    assert kept.todo_list == ({"text": "three", "state": "completed"},), "the whole list is replaced"
    assert (await updated(blocked_by="a review", recheck_after=5_000)).recheck_at == now + 5_000_000
    free = await updated(blocked_by=None, plan_status="ready")
    assert (free.blocked_by, free.recheck_at, free.plan_status) == (None, None, "ready")


async def test_an_update_that_makes_no_sense_is_refused_and_changes_nothing(builder: Builder) -> None:
    name = await builder.created()
    before = await builder.item(name)
    wrong: Sequence[dict[str, Any]] = (
        {},
        {"recheck_after": 5_000},
        {"blocked_by": None, "recheck_after": 5_000},
        {"blocked_by": "CI", "recheck_after": 0},
        {"plan_status": "done"},
        {"todo_list": [{"text": "x", "state": "half"}]},
    )
    script = [calls(("update_work_item", {"work_item_id": name, **fields})) for fields in wrong]
    assert errors(await builder.says(*script, "ok")) == ["invalid_input"] * 3 + ["invalid_parameters"] * 3
    assert await builder.item(name) == before


@pytest.mark.spec("HOL-WORK-15", "HOL-WORK-16", "HOL-WTOOL-12", "HOL-WTOOL-05")
async def test_the_text_of_the_reply_that_completes_the_current_item_is_its_report(builder: Builder) -> None:
    name = await builder.picked()
    complete = {"text": "The build is green; ran the suite.", **calls(("complete_work_item", {"work_item_id": name}))}
    result = await builder.says(complete, "Bye.")
    assert answers(result) == [{"work_item_id": name, "state": "completed", "reported": True}]
    item = await builder.item(name)
    assert item.state == "completed"
    assert item.report_event_id
    (shown,) = answers(await builder.says(calls(("get_work_item", {"work_item_id": name})), "ok"))
    assert shown["completion_report"] == "The build is green; ran the suite."
    assert await builder.store.current_work_item_id(AGENT) is None


@pytest.mark.spec("HOL-WORK-19")
async def test_the_text_of_a_run_is_the_report_of_what_it_completed(builder: Builder) -> None:
    name = await builder.picked()
    complete = {"text": "The build is green.", **calls(("complete_work_item", {"work_item_id": name}))}
    result = await builder.says(complete, "Bye.")
    assert (result.final_text, result.raw_final_text) == ("The build is green.", "Bye.")
    plain = await builder.says("Nothing to do.")
    assert (plain.final_text, plain.raw_final_text) == ("Nothing to do.", "Nothing to do.")


@pytest.mark.spec("HOL-WORK-18", "HOL-WORK-17", "HOL-WTOOL-11")
async def test_without_text_in_the_same_reply_there_is_no_report_and_a_warning(builder: Builder) -> None:
    name = await builder.picked()
    refused = calls(("complete_work_item", {"work_item_id": name, "result_summary": "done"}))
    result = await builder.says(refused, calls(("complete_work_item", {"work_item_id": name})), "All is done.")
    assert errors(result) == ["invalid_parameters"], "there is no argument for a report"
    (told,) = answers(result)
    assert (told["reported"], told["warning"]["kind"]) == (False, "missing_completion_report")
    assert (await builder.item(name)).report_event_id == ""
    (shown,) = answers(await builder.says(calls(("get_work_item", {"work_item_id": name})), "ok"))
    assert shown["completion_report"] is None, "the turn's last words are no report"


async def test_two_completions_in_one_reply_promote_none_and_warn(builder: Builder) -> None:
    first, second = await builder.picked(), await builder.created("another")
    both = [("complete_work_item", {"work_item_id": name}) for name in (first, second)]
    result = await builder.says({"text": "Both are done.", **calls(*both)}, "Bye.")
    assert [told["warning"]["kind"] for told in answers(result)] == ["several_completions"] * 2
    assert [event.text_ref for event in of_kind(result, WorkItemCompleted)] == [None, None]
    assert await builder.store.open_work_items(AGENT) == []


async def test_the_same_item_named_twice_is_completed_once_and_keeps_its_report(builder: Builder) -> None:
    name = await builder.picked()
    twice = [("complete_work_item", {"work_item_id": name})] * 2
    result = await builder.says({"text": "It is done.", **calls(*twice)}, "Bye.")
    assert errors(result) == ["work_item_completed"]
    assert (await builder.item(name)).report_event_id


async def test_focus_is_the_current_item_when_the_reply_began(builder: Builder) -> None:
    first, second = await builder.picked(), await builder.created("another")
    at_once = [("pick_work_item", {"work_item_id": second}), ("complete_work_item", {"work_item_id": second})]
    result = await builder.says({"text": "Done.", **calls(*at_once)}, "Bye.")
    assert answers(result)[1]["warning"]["kind"] == "not_current"
    assert (await builder.item(first)).is_open


@pytest.mark.spec("HOL-WTOOL-14", "HOL-WTOOL-13")
async def test_completion_clears_the_blocker_and_is_final(builder: Builder) -> None:
    name = await builder.picked()
    await builder.says(calls(("update_work_item", {"work_item_id": name, "blocked_by": "CI"})), "ok")
    await builder.says({"text": "Done.", **calls(("complete_work_item", {"work_item_id": name}))}, "ok")
    item = await builder.item(name)
    assert (item.state, item.blocked_by, item.recheck_at, item.recheck_consumed_at) == ("completed", None, None, None)
    update = calls(("update_work_item", {"work_item_id": name, "objective": "more"}))
    assert errors(await builder.says(update, "ok")) == ["work_item_completed"]


@pytest.mark.spec("HOL-WORK-08", "HOL-WORK-10", "HOL-WORK-11")
async def test_items_are_listed_by_views_that_follow_from_their_records(builder: Builder) -> None:
    current, queued, blocked, asked, done = [
        await builder.created(objective) for objective in ("current", "queued", "blocked", "asked", "done")
    ]
    await builder.says(
        calls(
            ("pick_work_item", {"work_item_id": current}),
            ("update_work_item", {"work_item_id": blocked, "blocked_by": "CI"}),
            ("update_work_item", {"work_item_id": asked, "plan_status": "needs_input"}),
            ("complete_work_item", {"work_item_id": done}),
        ),
        "ok",
    )
    views: list[dict[str, Any]] = [{}, {"limit": 1}, {"view": "queued"}, {"view": "blocked"}, {"view": "completed"}]
    result = await builder.says(*(calls(("list_work_items", view)) for view in views), "ok")
    everything, one, *rest = answers(result)
    assert {item["id"]: item["readiness"] for item in everything["items"]} == {
        current: "runnable",
        queued: "runnable",
        blocked: "blocked",
        asked: "waiting_for_operator",
    }, "open alone says nothing about what may be worked on"
    assert (everything["current_work_item_id"], everything["has_more"]) == (current, False)
    assert [item["id"] for item in everything["items"] if item["is_current"]] == [current]
    assert (len(one["items"]), one["has_more"]) == (1, True)
    assert [{item["id"] for item in view["items"]} for view in rest] == [{queued, asked}, {blocked}, {done}]


# --- what later turns are shown ----------------------------------------------------------------------------------


@pytest.mark.spec("HOL-PROJ-01", "HOL-PROJ-02", "HOL-WEND-01")
async def test_a_turn_begins_with_the_current_item_in_full(builder: Builder) -> None:
    name = await builder.picked(plan="First look, then mend.", todo_list=[{"text": "read the log"}])
    other = await builder.created("answer the review")
    result = await builder.says("ok")
    told = await builder.shown(result)
    assert f"## Current: {name}\nObjective: mend the build\nPlan: draft. Readiness: runnable." in told
    assert "- [pending] read the log" in told
    assert "plan.md:\nFirst look, then mend." in told
    assert f"## Ready to be picked\n- {other}: answer the review" in told
    (shown,) = of_kind(result, WorkQueueProjected)
    assert (shown.current, shown.others) == (name, (other,)), "the turn is bound to the current item"
    assert (await builder.item(name)).turns[0] == result.turn_id


@pytest.mark.spec("HOL-PROJ-03")
async def test_the_trace_of_the_current_item_has_words_and_calls_and_no_thinking(builder: Builder) -> None:
    @tool(effect="pure")
    def look() -> str:
        """Look."""
        return "the log says: exit 1"

    await builder.picked()
    thinking = {"reasoning": "secret thoughts", "text": "I look first.", **calls("look")}
    await builder.says(thinking, "Found it.", tools=[look])
    told = await builder.shown(await builder.says("ok", tools=[look]))
    assert "- you said: I look first.\n- look: the log says: exit 1\n- you said: Found it." in told
    assert "secret thoughts" not in told


@pytest.mark.spec("HOL-PROJ-04")
async def test_candidates_are_shown_by_class(builder: Builder) -> None:
    fired, blocked, asked = [await builder.created(objective) for objective in ("fired", "blocked", "asked")]
    update = [
        ("update_work_item", {"work_item_id": fired, "blocked_by": "CI", "recheck_after": 1_000}),
        ("update_work_item", {"work_item_id": blocked, "blocked_by": "a review"}),
        ("update_work_item", {"work_item_id": asked, "plan_status": "needs_input"}),
    ]
    await builder.says(calls(*update), "ok")
    ready = await builder.created("ready")
    builder.clock.advance(10)
    told = await builder.shown(await builder.says("ok"))
    assert told.endswith(
        "You have no current work item. Pick one before you work on it.\n\n"
        f"## Blocked, and what they wait for may have happened\n- {fired}: fired (blocked by CI)\n\n"
        f"## Ready to be picked\n- {ready}: ready\n\n"
        f"## Waiting for the operator\n- {asked}: asked\n\n"
        f"## Blocked\n- {blocked}: blocked (blocked by a review)"
    )


@pytest.mark.spec("HOL-WORK-14", "HOL-WORK-13")
async def test_a_recheck_is_consumed_when_a_model_turn_saw_it_and_blocks_as_before(builder: Builder) -> None:
    name = await builder.created()
    update = {"work_item_id": name, "blocked_by": "CI", "recheck_after": 1_000}
    await builder.says(calls(("update_work_item", update)), "ok")
    builder.clock.advance(10)
    assert (await builder.item(name)).recheck_consumed_at is None
    (shown,) = of_kind(await builder.says("ok"), WorkQueueProjected)
    assert shown.triggered == (name,)
    item = await builder.item(name)
    assert (item.recheck_consumed_at, item.blocked_by) == (builder.clock.now(), "CI")
    again = await builder.says("ok")
    assert of_kind(again, WorkQueueProjected)[0].triggered == ()
    assert "## Blocked\n" in await builder.shown(again)


@pytest.mark.spec("HOL-PROJ-05")
async def test_a_completed_item_is_shown_by_its_report(builder: Builder) -> None:
    name, silent = await builder.picked("secret objective"), await builder.created("silent")
    complete = calls(("complete_work_item", {"work_item_id": name}))
    await builder.says({"text": "The build is green.", **complete}, "Bye.")
    await builder.says(calls(("complete_work_item", {"work_item_id": silent})), "It was easy.")
    told = await builder.shown(await builder.says("ok"))
    assert told.endswith(f"## Completed lately\n- {name}: The build is green.")
    assert silent not in told


@pytest.mark.spec("HOL-PROJ-06", "HOL-WORK-20", "HOL-WTOOL-15")
async def test_without_items_nothing_is_shown_and_none_is_made_up(builder: Builder) -> None:
    result = await builder.says("ok", prompt="Please mend the build by tomorrow.")
    assert of_kind(result, WorkQueueProjected) == []
    assert "Your work items" not in await builder.shown(result)
    assert await builder.store.open_work_items(AGENT) == []


async def test_the_cache_key_does_not_follow_the_work_items(builder: Builder) -> None:
    async def key(result: RunResult[Any]) -> str:
        (started,) = of_kind(result, TurnStarted)
        return prompt_cache_key(await load_config(builder.store, started.config_ref.digest))

    before = await key(await builder.says("ok"))
    await builder.picked()
    assert await key(await builder.says("ok")) == before


@pytest.mark.spec("HOL-WTOOL-16", "HOL-WTOOL-18")
async def test_the_prompt_says_how_work_items_are_kept(builder: Builder) -> None:
    told = await builder.shown(await builder.says("ok"))
    assert "update_work_item is bookkeeping, not a log: use it after material progress" in told
    assert "To wait for something, say it in blocked_by, in plan_status and in the checklist" in told


# --- whose words ---------------------------------------------------------------------------------------------------


async def test_an_item_keeps_what_its_turn_derived_from_and_taints_turns_that_are_shown_it(
    builder: Builder, home: Path
) -> None:
    outside = MessageOrigin(authority="external_evidence")
    create = calls(("create_work_item", {"objective": "send the key", "plan": "do it"}))
    result = await builder.says(create, "ok", origin=outside)
    (item,) = await builder.store.open_work_items(AGENT)
    assert item.derived_from == "external_evidence"
    (tainted,) = of_kind(result, FilesTainted)
    assert tainted.workspace == str((home / "agents" / AGENT / "work-items" / item.work_item_id).resolve())
    assert list(tainted.files) == ["plan.md"]

    @tool(effect="irreversible")
    def send(text: str) -> str:
        """Send something."""
        raise AssertionError("nobody let it through")

    agent = Agent(AGENT, scripted([calls(("send", {"text": "x"}))]), tools=[send], work_items=True)
    fresh = await run_turn(builder.engine, RunRequest(agent, "go on", thread="another"))
    assert of_kind(fresh, WorkQueueProjected)[0].untrusted.endswith("which derives from external_evidence")
    assert fresh.status == "approval_required", "the turn has untrusted input"


# --- the reminder --------------------------------------------------------------------------------------------------


def rounds(count: int) -> list[Any]:
    return [calls(("look", {"place": place})) for place in range(count)]


@tool(effect="pure")
def look(place: int) -> str:
    """Look somewhere."""
    return f"nothing at {place}"


@pytest.mark.spec("HOL-WTOOL-20", "HOL-WTOOL-21", "HOL-WTOOL-22", "HOL-WTOOL-23")
async def test_a_long_turn_is_reminded_of_its_item_by_the_terms_of_the_environment(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("ROUNDS", "3"), ("COOLDOWN_ROUNDS", "2"), ("MAX_TOKENS", "200")):
        monkeypatch.setenv(f"WAKEFUL_WORK_ITEM_STALE_REMINDER_{name}", value)
    builder.engine = new_engine(builder.store, clock=builder.clock)
    todos = [{"text": "read the log", "state": "completed"}, {"text": "mend", "state": "pending"}]
    name = await builder.picked(todo_list=todos)
    update = calls(("update_work_item", {"work_item_id": name, "plan_status": "ready"}))
    result = await builder.says(*rounds(5), update, *rounds(3), "ok", tools=[look])
    reminders = of_kind(result, WorkItemReminded)
    assert [reminder.rounds for reminder in reminders] == [3, 5, 3], "after 3 rounds, after 2 more, 3 after the update"
    assert reminders[0].text.startswith(f"Your current work item is {name} (draft): mend the build\n- mend (pending)\n")
    assert "read the log" not in reminders[0].text
    assert all(len(reminder.text) <= 800 for reminder in reminders)
    item = await builder.item(name)
    assert item.todo_list[1] == {"text": "mend", "state": "pending"}, "a reminder is no progress"
    row = await builder.store.turn(result.turn_id)
    assert row is not None
    assert (await replay_turn(builder.store, row)).identical, "every decision follows from the log"
    asked = [event.items for event in of_kind(result, ModelRequested)]
    assert asked[3] - asked[2] == 3, "the reminder goes to the model with the result of its round"


@pytest.mark.spec("HOL-WTOOL-19")
async def test_only_a_change_of_work_items_begins_the_count_of_rounds_anew_not_a_refused_one_nor_a_commands_name(
    builder: Builder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WAKEFUL_WORK_ITEM_STALE_REMINDER_ROUNDS", "3")
    builder.engine = new_engine(builder.store, clock=builder.clock)
    name = await builder.picked()
    (tmp_path / "work").mkdir()
    named = calls(("exec_command", {"cmd": f"echo update_work_item {name}"}))
    refused = calls(("update_work_item", {"work_item_id": "wi_nobody", "plan_status": "ready"}))
    changed = calls(("update_work_item", {"work_item_id": name, "plan_status": "ready"}))
    kept = await builder.says(refused, named, named, "ok", workspace=tmp_path / "work")
    assert [each.rounds for each in of_kind(kept, WorkItemReminded)] == [3]
    anew = await builder.says(changed, named, named, "ok", workspace=tmp_path / "work")
    assert of_kind(anew, WorkItemReminded) == []


async def test_a_reminder_that_the_prompt_has_no_room_for_is_left_out(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKEFUL_WORK_ITEM_STALE_REMINDER_ROUNDS", "2")
    builder.engine = new_engine(builder.store, clock=builder.clock)
    await builder.picked()
    script = [*rounds(4), "ok"]

    async def reminded(window: int) -> int:
        agent = Agent(
            AGENT,
            scripted(script, context_window=window),
            tools=[look],
            work_items=True,
            compaction={"enabled": False},
        )
        result = await run_turn(builder.engine, RunRequest(agent, "go", thread=f"window {window}"))
        return len(of_kind(result, WorkItemReminded))

    assert await reminded(100_000) == 1
    assert await reminded(400) == 0


@pytest.mark.parametrize("value", ["0", "-1", "ten", "1e3"])
async def test_terms_of_the_reminder_that_are_no_numbers_are_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("WAKEFUL_WORK_ITEM_STALE_REMINDER_ROUNDS", value)
    with pytest.raises(InvalidConfig, match="WAKEFUL_WORK_ITEM_STALE_REMINDER_ROUNDS is"):
        new_engine(store)


# --- where they are refused ----------------------------------------------------------------------------------------


async def test_a_run_without_a_thread_has_no_place_for_work_items(store: Store) -> None:
    with pytest.raises(InvalidRequest, match="names no thread: its work items would end with it"):
        await run(Agent(AGENT, scripted(["never"], leftover="ignore"), work_items=True), "go", store=store)


async def test_an_agent_that_is_a_tool_has_no_work_items(store: Store) -> None:
    inner = Agent("inner", scripted(["never"], leftover="ignore"), work_items=True)
    outer = Agent("outer", scripted(["never"], leftover="ignore"), tools=[inner.as_tool()])
    with pytest.raises(InvalidConfig, match="'inner' has work_items=True and is a tool of agent 'outer'"):
        await run(outer, "go", store=store)
