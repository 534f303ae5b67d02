"""A planner that looks before the executor does: what it may do, what is left of it, and what the executor sees."""

import inspect
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from kit.runs.engine_runs import calls
from kit.runs.long_runs import PLAN, Asked, Seen, events_of, look
from wakeful import Agent, Approve, Budget, run, tool
from wakeful import stream as streamed
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.envelope import published
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import (
    ContextResolved,
    ModelRequested,
    PlanArtifact,
    PlanningCompleted,
    PlanningFailed,
    PlanningStarted,
)
from wakeful.decisions.planner import INSTRUCTIONS, MAX_PLAN_BYTES, read_plan
from wakeful.ports import ModelRequest, Store
from wakeful.service.queries.replay import replay_turn
from wakeful.surfaces.library.run_options import RunOptions
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore

LIST = "Here it is:\n1. look at A\n2. tell the user"


def planning(looks: int = 0, plan: str = LIST, rounds: int = 1) -> Any:
    """Looks so many times and gives the plan; the executor then looks `rounds` times and answers."""

    def answer(request: ModelRequest) -> Any:
        if request.level == PLAN:
            if request.answered < looks:
                return calls(("look", {"x": f"planner {request.answered}"}))
            return {"text": plan, "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}}
        if request.answered < rounds:
            return calls(("look", {"x": "executor"}))
        return {"text": "done", "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}

    return answer


def planner(asked: Asked, answer: Any = None, **options: Any) -> Agent[Any, str]:
    model = asked.model(answer or planning(), window=None)
    return Agent("clerk", model, "Serve the shop.", tools=[look], **{"planning_enabled": True, **options})


def unnamed(seen: Seen) -> list[str]:
    """The messages of a request; the names of calls are unique in a turn, so the executor's are not its first ones."""
    names = [part.call_id for item in seen.items if isinstance(item, AssistantItem) for part in item.calls]
    dumped = [item.model_dump_json() for item in seen.items]
    for place, name in enumerate(names):
        dumped = [text.replace(f'"{name}"', f'"call {place}"') for text in dumped]
    return dumped


async def identical(store: Store, turn_id: str) -> bool:
    row = await store.turn(turn_id)
    assert row is not None
    report = await replay_turn(store, row)
    assert report.identical, report.divergence
    return True


@pytest.mark.spec("CTL-PLAN-01", "CTL-CFG-02")
@pytest.mark.parametrize("how", ["run", "stream", "unstreamed"])
async def test_the_planner_runs_before_the_first_executor_call(store: Store, how: str) -> None:
    asked = Asked()
    agent = planner(asked, planning(2), settings={"stream": False} if how == "unstreamed" else {})
    if how == "stream":
        async with streamed(agent, "go", store=store) as events:
            async for _ in events:
                pass
            result = await events.result()
    else:
        result = await run(agent, "go", store=store)
    assert result.output == "done"
    assert [seen.level for seen in asked] == [PLAN, PLAN, PLAN, None, None]
    assert await identical(store, result.turn_id)

    without = Asked()
    await run(planner(without, planning_enabled=False), "go", store=store)
    assert [seen.level for seen in without] == [None, None]
    assert Agent("any", asked.model(planning())).planning_enabled is False


@pytest.mark.spec("CTL-PLAN-03", "CTL-PLAN-04")
async def test_nothing_of_the_planner_enters_the_executors_messages(store: Store) -> None:
    asked, without = Asked(), Asked()
    await run(planner(asked, planning(3)), "go", store=store)
    await run(planner(without, planning_enabled=False), "go", store=store)
    assert [unnamed(seen) for seen in asked.of(None)] == [unnamed(seen) for seen in without.of(None)]
    assert asked.of(PLAN)[-1].text.count("saw planner") == 3, "the planner did see them"
    assert asked.of(PLAN)[0].tools == asked.of(None)[0].tools == ["look"]


@pytest.mark.spec("CTL-PLAN-02")
async def test_the_planner_leaves_no_conversation_behind(store: Store) -> None:
    asked = Asked()
    result = await run(planner(asked, planning(2)), "go", store=store, thread="t")
    assert "planner" not in "".join(item.text for item in result.history())
    assert [item.role for item in result.history()] == ["user", "assistant", "tool", "assistant"]
    assert [row.thread_id for row in await store.turns()] == ["t"]
    later = Asked()
    await run(planner(later, planning_enabled=False), "more", store=store, thread="t")
    assert "planner" not in later[0].text and later[0].items[:4] == result.history()


@pytest.mark.spec("CTL-PLAN-05", "CTL-PLAN-09")
async def test_the_planners_output_is_one_artifact(store: Store) -> None:
    result = await run(planner(Asked(), planning(2)), "go", store=store)
    (completed,) = events_of(result, PlanningCompleted)
    plan = completed.plan
    assert plan.model_dump() == {
        "run_id": result.turn_id,
        "model_ref": "scripted:inline",
        "steps": ({"number": 1, "text": "look at A"}, {"number": 2, "text": "tell the user"}),
        "text": LIST,
        "created_at": plan.created_at,
        "tool_call_count": 2,
    }
    assert set(PlanArtifact.model_fields) == {"run_id", "model_ref", "steps", "text", "created_at", "tool_call_count"}
    assert isinstance(plan.created_at, float) and plan.created_at > 0


def test_an_answer_without_a_list_is_one_step_and_a_long_one_is_cut() -> None:
    plan = read_plan("just do it", run_id="r", model_ref="m", at=1.0, tool_calls=0)
    assert plan is not None and [(step.number, step.text) for step in plan.steps] == [(1, "just do it")]
    assert read_plan("  \n", run_id="r", model_ref="m", at=1.0, tool_calls=0) is None
    for letter in ("x", "\u4e00", "\x00"):
        long = read_plan(letter * 100_000, run_id="r", model_ref="m", at=1.0, tool_calls=0)
        assert long is not None and len(long.model_dump_json().encode()) < 2 * MAX_PLAN_BYTES + 1_000


@pytest.mark.spec("CTL-PLAN-06", "CTL-CFG-03")
async def test_a_planning_model_is_asked_in_the_planner_phase_alone(store: Store, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("- 1. look\n")
    ref = f"scripted:{tmp_path / 'plan.yaml'}"
    asked = Asked()
    agent = planner(asked, planning_model=ref)
    before = agent.model
    result = await run(agent, "go", store=store)
    asked_by_level = [
        (entry.fact.level, entry.fact.event.model_ref)
        for entry in result.facts()
        if isinstance(entry.fact.event, ModelRequested)
    ]
    assert asked_by_level == [(PLAN, ref), (None, "scripted:inline"), (None, "scripted:inline")]
    assert agent.model is before and {seen.level for seen in asked} == {None}
    assert events_of(result, PlanningCompleted)[0].plan.model_ref == ref

    own = await run(planner(asked), "go", store=store)
    assert events_of(own, PlanningStarted)[0].model_ref == "scripted:inline"
    for right in ("openai:gpt-4o", "openai/gpt-4o"):
        assert planner(Asked(), planning_model=right).planning_model == right
    for wrong in ("gpt-4o", "", ":gpt", "openai:", 5):
        with pytest.raises(InvalidConfig, match="planning_model"):
            planner(Asked(), planning_model=wrong)


@pytest.mark.spec("CTL-PLAN-07", "CTL-CFG-04")
async def test_planning_instructions_are_the_planners_alone(store: Store) -> None:
    asked = Asked()
    await run(planner(asked, planning_instructions="Plan like a sailor."), "go", store=store)
    assert [seen.instructions for seen in asked.of(PLAN)] == ["Plan like a sailor."]
    assert all("sailor" not in seen.instructions + seen.text for seen in asked.of(None))
    builtin = Asked()
    await run(planner(builtin), "go", store=store)
    assert builtin.of(PLAN)[0].instructions == INSTRUCTIONS
    assert "Serve the shop" not in builtin.of(PLAN)[0].instructions
    assert planner(Asked()).planning_instructions == ""
    assert planner(Asked(), planning_instructions=" \x00 anything ").planning_instructions == " \x00 anything "


@pytest.mark.spec("CTL-CFG-17")
async def test_without_planning_its_fields_are_kept_and_ignored(store: Store) -> None:
    asked = Asked()
    agent = planner(asked, planning_enabled=False, planning_model="nobody:nothing", planning_instructions="Sail.")
    result = await run(agent, "go", store=store)
    assert result.output == "done" and {seen.level for seen in asked} == {None}
    assert (agent.planning_model, agent.planning_instructions) == ("nobody:nothing", "Sail.")
    assert all("Sail" not in seen.instructions for seen in asked)


class Asking(WrappedStore):
    """Notes what is asked of the store beside the log."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.used: set[str] = set()

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if inspect.ismethod(found):
            object.__getattribute__(self, "used").add(name)
        return found


def kept(place: Path) -> dict[str, list[Any]]:
    """Every table of a store, whatever it is for."""
    with closing(apsw.Connection(str(place))) as opened:  # another library here would drop the store's own locks
        names = [name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: opened.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


@pytest.mark.spec("CTL-PLAN-08")
async def test_a_planner_reads_and_writes_no_plan_that_somebody_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever plans people keep: files in the workspace and the home, records of an agent, settings."""
    home, work, place = tmp_path / "home", tmp_path / "work", tmp_path / "runs.db"
    monkeypatch.setenv("WAKEFUL_HOME", str(home))
    mine = [folder / "plan.md" for folder in (work, work / ".wakeful", home / "agents" / "clerk")]
    for path in mine:
        path.parent.mkdir(parents=True)
        path.write_text("the owner's own plan")
    plans_opened: list[str] = []

    def on_audit(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and str(args[0]).endswith("plan.md"):
            plans_opened.append(str(args[0]))

    sys.addaudithook(on_audit)
    used, grown, asked = [], [], Asked()
    async with opened_store(place) as store:
        await run(planner(Asked(), planning_enabled=False), "earlier", store=store, thread="t")  # what there was before
        for plans in (False, True):
            noting, before = Asking(store), kept(place)
            agent = planner(asked, planning(looks=1), workspace=work, planning_enabled=plans)
            result = await run(agent, "go", store=noting, thread="t")
            assert len(events_of(result, PlanningCompleted)) == plans
            after = kept(place)
            used.append(noting.used)
            grown.append({name for name, rows in after.items() if rows != before[name]})
            others = [row for row in before["events"] if row not in after["events"]]
            assert others == [], "the log only grew"
    assert plans_opened == [], "nobody opened one"
    assert used[1] <= used[0] and grown[1] <= grown[0], (
        "with a planner nothing more is asked for, and nothing more kept"
    )
    assert [path.read_text() for path in mine] == ["the owner's own plan"] * 3
    assert asked and all("owner's own plan" not in seen.text + seen.instructions for seen in asked)
    assert sorted(path.name for path in work.rglob("*")) == [".wakeful", "plan.md", "plan.md"]
    settings = set(inspect.signature(Agent).parameters) | set(RunOptions.__annotations__)
    assert not [name for name in settings if "autonomy" in name] and {"planning_enabled"} <= settings


@pytest.mark.spec("CTL-PLAN-10")
async def test_the_executor_sees_the_plan_as_a_section_of_this_run_alone(store: Store) -> None:
    first, second = Asked(), Asked()
    await run(planner(first, planning(0, "1. the first plan")), "go", store=store, thread="t")
    await run(planner(second, planning(0, "1. another one")), "on", store=store, thread="t")
    for seen in first.of(None):
        assert seen.instructions.startswith("Serve the shop.") and seen.instructions.count("the first plan") == 1
        assert "the first plan" not in seen.text
    assert len({seen.instructions for seen in first.of(None)}) == 1
    for seen in second:
        assert "the first plan" not in seen.instructions + seen.text


@pytest.mark.spec("CTL-PLAN-11")
async def test_planner_calls_pass_the_same_gate_and_budget(store: Store) -> None:
    ran: list[str] = []

    @tool(effect="irreversible")
    def act(who: str) -> str:
        """Act."""
        ran.append(who)
        return "acted"

    def answer(request: ModelRequest) -> Any:
        who = "planner" if request.level == PLAN else "executor"
        return "1. act" if request.answered else calls(("act", {"who": who}))

    agent = Agent("clerk", scripted(answer), tools=[act], planning_enabled=True, hitl_tools=["act"])
    waiting = await run(agent, "go", store=store, key="k")
    assert (waiting.status, ran) == ("approval_required", [])
    assert waiting.approvals[0].arguments == {"who": "planner"}
    done = await run(agent, "go", store=store, key="k", approver=_yes)
    assert (done.status, ran) == ("completed", ["planner", "executor"])
    assert await identical(store, done.turn_id)

    free = agent.changed(hitl_tools=[], budget=Budget(tool_calls=1))
    stopped = await run(free, "go", store=store)
    assert (stopped.status, stopped.stop_reason, ran[2:]) == ("incomplete", "tool_calls", ["planner"])


async def _yes(approval: Any) -> Approve:
    return Approve()


@pytest.mark.spec("CTL-PLAN-12")
async def test_planner_calls_are_bounded_counted_and_marked(store: Store) -> None:
    asked = Asked()
    agent = planner(asked, planning(99, rounds=2), max_steps=3)
    result = await run(agent, "go", store=store)
    assert len(asked.of(PLAN)) == 3, "rounds of its own"
    assert [seen.step for seen in asked.of(None)] == [1, 2, 3], "the executor has its own three, from 1"
    assert result.model_calls == 6
    assert events_of(result, PlanningFailed)[0].error == "iteration_limit"

    counted = await run(planner(Asked()), "go", store=store)
    assert counted.usage.total_tokens == 112, "110 of the planner's, 2 of the executor's"
    capped = await run(planner(Asked(), budget=Budget(model_calls=1)), "go", store=store)
    assert capped.model_calls <= 1

    phases = {
        (event.type, event.phase)
        for event in (published(entry, "rt") for entry in result.facts())
        if event.type in ("model.requested", "model.completed", "tool.started", "tool.result")
    }
    assert phases == {
        (kind, phase)
        for kind in ("model.requested", "model.completed", "tool.started", "tool.result")
        for phase in ("planner", None)
    }
    for entry in result.facts():
        assert (published(entry, "rt").phase == "planner") == (entry.fact.level == PLAN)


@pytest.mark.spec("CTL-PLAN-13")
@pytest.mark.parametrize("ref", ["nobody:nothing", "openai:gpt-4o"])
async def test_a_planning_model_that_cannot_be_asked_fails_the_run_before_any_call(
    store: Store, ref: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    asked = Asked()
    with pytest.raises(InvalidConfig, match=f"planning_model='{ref}'"):
        await run(planner(asked, planning_model=ref), "go", store=store)
    assert asked == [] and await store.turns() == [], "not even the message was taken"


@pytest.mark.parametrize("how", ["fails", "says nothing"])
async def test_planning_that_fails_is_visible_and_the_run_goes_on_unplanned(store: Store, how: str) -> None:
    def answer(request: ModelRequest) -> Any:
        if request.level == PLAN:
            return (
                "  "
                if how == "says nothing"
                else {"text": "", "fail": {"kind": "contract_error", "message": "no such field"}}
            )
        return "done"

    asked = Asked()
    result = await run(planner(asked, answer), "go", store=store)
    (failed,) = events_of(result, PlanningFailed)
    assert failed.error == ("no_plan" if how == "says nothing" else "subtask_failed")
    assert (result.status, result.output) == ("completed", "done")
    assert asked.of(None)[0].instructions == "Serve the shop."
    assert await identical(store, result.turn_id)


async def test_what_requests_rest_on_is_written_down_again_with_the_plan(store: Store) -> None:
    result = await run(planner(Asked()), "go", store=store)
    first, second = events_of(result, ContextResolved)
    assert (first.revision, first.reason, second.revision, second.reason) == (1, "", 2, "plan")
    assert [item.kind for item in first.instruction_refs] == ["instruction"]
    assert [item.kind for item in second.instruction_refs] == ["instruction", "plan"]
    assert second.context_id == first.context_id and second.tokens_used > first.tokens_used
