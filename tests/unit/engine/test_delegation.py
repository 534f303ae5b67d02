"""Handing work to a child: what it is given, how it ends, what its parent is told, what is refused beforehand.

On memory and on a file: the loop is the same.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls, of_kind
from kit.runs.level_scripts import SCHEMA, LevelModel, Shown, child_ends, children, ends, finish, note, subtask, told
from wakeful import Agent, Budget, RunContext, RunResult, run, tool
from wakeful.contracts.budgets import MAX_DEPTH, MAX_SCHEMA_RETRIES
from wakeful.contracts.events import LimitChanged, ScratchWritten, SubagentFailed, ToolFailed
from wakeful.decisions.runtime_answers import ANSWERED_HERE
from wakeful.decisions.waking.wait_tools import WAIT_TOOLS
from wakeful.tools.runtime_tools import AnsweredHere, runtime_tools


@tool(effect="pure")
def look(what: str = "") -> str:
    """Look at something."""
    return f"saw {what}"


@tool(effect="pure")
def fetch() -> str:
    """Fetch something."""
    return "fetched"


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return tmp_path / "runs.db" if request.param == "file" else None


async def played(
    model: LevelModel, *, tools: Any = (look, fetch), prompt: str = "go", **options: Any
) -> RunResult[str]:
    agent_options = {name: options.pop(name) for name in ("max_steps", "instructions", "fallbacks") if name in options}
    agent = Agent("boss", model, tools=list(tools), subtasks=True, **agent_options)
    async with asyncio.timeout(60):
        return await run(agent, prompt, **options)


# --- one child -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("LOOP-STEP-09", "LOOP-STEP-15", "LOOP-SUB-03", "LOOP-MEM-03")
async def test_a_child_runs_the_loop_on_its_task_and_its_text_is_the_result(place: Any) -> None:
    def read(shown: Shown) -> Any:
        keys = json.loads(shown.texts[-1])["keys"]
        return calls(("scratch_read", {"key": keys[0]}))

    script = {
        "go": [calls(subtask("dig")), calls("scratch_list"), read, lambda shown: f"it says {shown.texts[-1]}"],
        "dig": [calls(("look", {"what": "down"})), "gold", "never asked for"],
    }
    model = LevelModel(script)
    result = await played(model, store=place)
    assert result.output == "it says gold"
    (child,) = children(result)
    assert [event.item.text for event in ends(result, "run_subtask")] == ["gold"]
    assert json.loads(ends(result, "scratch_list")[0].item.text) == {"keys": [f"task:{child.level_id}"]}
    # The parent was asked again only when its child was over.
    assert [shown.task for shown in model.seen] == ["go", "dig", "dig", "go", "go", "go"]
    assert len(model.of("dig")) == 2, "its first reply without calls ended it"


@pytest.mark.spec("LOOP-STEP-08", "LOOP-SUB-02", "LOOP-ACC-10")
async def test_a_child_sees_its_instructions_alone_and_has_the_tools_it_was_given(place: Any) -> None:
    script = {"go": [calls(subtask("dig", tools=["look"])), "done"], "dig": [calls("fetch", "look"), "gold"]}
    model = LevelModel(script)
    result = await played(model, store=place, instructions="Be the boss.")
    first = model.of("dig")[0]
    assert first.texts == ["dig"] and "Be the boss" not in first.instructions
    assert set(first.tools) == {"look", "scratch_list", "scratch_read", "scratch_write"}
    assert first.depth == 1 and first.level == children(result)[0].level_id
    fetched, looked = (ends(result, name)[0] for name in ("fetch", "look"))
    assert isinstance(fetched, ToolFailed) and fetched.tool_error.kind == "tool_not_found"
    assert not isinstance(looked, ToolFailed)
    (call_id,) = [entry.fact.call_id for entry in result.facts() if entry.fact.event.kind == "subagent.started"]
    nested = [entry.fact for entry in result.facts() if entry.fact.level is not None]
    assert len(nested) > 8 and {(fact.parent_call_id, fact.depth) for fact in nested} == {(call_id, 1)}
    assert ends(result, "run_subtask")[0].item.text == "gold"
    invalid = await played(LevelModel({"go": [calls(("run_subtask", {"title": "t"})), "done"]}), store=place)
    assert children(invalid) == [] and told(invalid)[0]["error"] == "invalid_input"
    assert any(event.level_id == children(result)[0].level_id for event in child_ends(result))


async def test_a_child_without_a_list_has_what_its_parent_has() -> None:
    """The inversion of the list: without it, `fetch` is there and runs."""
    model = LevelModel({"go": [calls(subtask("dig")), "done"], "dig": [calls("fetch"), "gold"]})
    result = await played(model)
    assert {"look", "fetch", "run_subtask"} <= set(model.of("dig")[0].tools)
    assert ends(result, "fetch")[0].item.text == "fetched"


@pytest.mark.spec("LOOP-MEM-01")
async def test_the_history_of_a_thread_is_the_roots_and_no_child_sees_it(place: Any, tmp_path: Path) -> None:
    store = place or tmp_path / "other.db"
    script = {"one": [calls(subtask("dig")), "first answer"], "two": ["second answer"], "dig": ["gold"]}

    def by_newest(shown: Shown) -> Any:
        return "second answer" if "two" in shown.texts else calls(subtask("dig")) if len(shown.texts) == 1 else "first"

    model = LevelModel({**script, "one": [by_newest]})
    first = await played(model, prompt="one", store=store, thread="t")
    second = await played(model, prompt="two", store=store, thread="t")
    assert model.of("dig")[0].texts == ["dig"]
    assert [item.role for item in first.history()] == ["user", "assistant", "tool", "assistant"]
    assert [item.text for item in second.history()] == ["one", "", "gold", "first", "two", "second answer"]
    later = LevelModel(
        {"one": [lambda shown: calls(subtask("dig")) if shown.texts[-1] == "three" else "ok"], "dig": ["x"]}
    )
    await played(later, prompt="three", store=store, thread="t")
    assert later.of("dig")[0].texts == ["dig"] and len(later.of("one")[0].texts) == 7


# --- depth -----------------------------------------------------------------------------------------------------------


DEEP = {
    "go": [calls(subtask("1")), "done"],
    **{str(depth): [calls(subtask(str(depth + 1))), f"back in {depth}"] for depth in range(1, 6)},
    "6": ["at the bottom"],
}


@pytest.mark.spec("LOOP-STEP-10", "LOOP-BUD-02", "LOOP-ERR-03", "LOOP-ACC-05")
async def test_children_exist_down_to_depth_three_and_the_next_is_refused_before_a_loop_is_entered(place: Any) -> None:
    model = LevelModel(DEEP)
    result = await played(model, store=place)
    assert result.output == "done"
    assert [child.depth for child in children(result)] == [1, 2, 3] and MAX_DEPTH == 3
    assert max(shown.depth for shown in model.seen) == 3 and not model.of("4")
    refusal, *others = ends(result, "run_subtask")
    assert isinstance(refusal, ToolFailed) and refusal.item.is_error
    said = json.loads(refusal.item.text)
    assert (said["error"], said["depth"], said["max_depth"]) == ("max_depth_reached", 3, 3) and said["message"]
    assert [event.item.text for event in others] == ["back in 3", "back in 2", "back in 1"]
    none_left = await played(LevelModel({"go": [calls(subtask("1")), "done"]}), budget=Budget(subtasks=0), store=place)
    assert told(none_left)[0]["error"] == "budget_exceeded" and children(none_left) == []


async def test_with_another_limit_the_depth_is_another() -> None:
    """The inversion: the limit decides, and nothing else."""
    assert [child.depth for child in children(await played(LevelModel(DEEP), budget=Budget(depth=5)))] == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert children(await played(LevelModel(DEEP), budget=Budget(depth=0))) == []


@pytest.mark.spec("LOOP-PROMPT-07", "LOOP-PROMPT-08", "LOOP-PROMPT-09")
async def test_what_a_child_is_told_about_itself_fits_what_it_has() -> None:
    script = {
        "go": [calls(subtask("1"), subtask("narrow", tools=["look"]), subtask("fit", output_schema=SCHEMA)), "done"],
        "1": [calls(subtask("2")), "one"],
        "2": [calls(subtask("3")), "two"],
        "3": ["three"],
        "narrow": ["n"],
        "fit": [calls(finish(n=1))],
    }
    model = LevelModel(script)
    await played(model)
    one, deepest, narrow, fit = (model.of(task)[0] for task in ("1", "3", "narrow", "fit"))
    assert "scratch_read" in one.instructions and "run_subtask" in one.instructions
    assert "run_subtask" not in deepest.instructions
    assert "must end by calling finish_subtask" in fit.instructions
    assert "finish_subtask" not in one.instructions and "exactly that structure" in one.instructions
    every = ANSWERED_HERE | {"look", "fetch"}
    for shown in model.seen:
        named = {name for name in every if name in shown.instructions}
        assert named <= set(shown.tools), f"{shown.task}: {named - set(shown.tools)}"
    assert "run_subtask" not in narrow.tools and "finish_subtask" not in one.tools


# --- results that fit a schema ---------------------------------------------------------------------------------------


def fitting(*steps: Any) -> LevelModel:
    return LevelModel({"go": [calls(subtask("fit", output_schema=SCHEMA)), "done"], "fit": list(steps)})


@pytest.mark.spec("LOOP-STEP-11", "LOOP-SUB-04", "LOOP-SUB-05", "LOOP-SUB-06")
async def test_a_child_with_a_schema_ends_through_finish_subtask_and_in_no_other_way(place: Any) -> None:
    model = fitting("here you are: 7", calls(finish(n="seven")), calls(finish(n=7)))
    result = await played(model, store=place)
    assert result.output == "done"
    assert ends(result, "run_subtask")[0].item.text == '{"n":7}'
    assert "finish_subtask" in model.of("fit")[0].tools and "finish_subtask" not in model.of("go")[0].tools
    assert len(model.of("fit")) == 3, "a text did not end it"
    wrong, right = ends(result, "finish_subtask")
    assert isinstance(wrong, ToolFailed) and wrong.item.is_error and "n" in wrong.item.text
    assert not isinstance(right, ToolFailed)
    assert child_ends(result)[0].output == {"n": 7}  # type: ignore[union-attr]
    assert model.schemas["finish_subtask"] == SCHEMA


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array", "items": {"type": "integer"}}, [1, 2]),
        ({"type": "integer"}, 7),
        ({"anyOf": [SCHEMA, {"type": "null"}]}, {"n": 7}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}),
    ],
)
async def test_a_child_may_be_asked_for_a_result_that_is_no_object(schema: dict[str, Any], said: Any) -> None:
    """A tool takes an object: the value is its `result`, and the parent is told the value alone."""
    steps = [calls(finish(result="x")), calls(finish(result=said))]
    model = LevelModel({"go": [calls(subtask("fit", output_schema=schema)), "done"], "fit": steps})
    result = await played(model)
    assert model.schemas["finish_subtask"]["properties"].keys() == {"result"}
    wrong, right = ends(result, "finish_subtask")
    assert isinstance(wrong, ToolFailed) and not isinstance(right, ToolFailed)
    assert child_ends(result)[0].output == said  # type: ignore[union-attr]
    assert json.loads(ends(result, "run_subtask")[0].item.text) == said


@pytest.mark.spec("LOOP-SUB-13")
async def test_each_plain_reply_is_answered_with_one_reminder_and_counts_as_a_round() -> None:
    model = fitting("one", "two", calls(finish(n=7)))
    result = await played(model)
    texts = [shown.texts for shown in model.of("fit")]
    assert [sum("finish_subtask" in text for text in each) for each in texts] == [0, 1, 2]
    assert child_ends(result)[0].steps == 3
    short = await played(fitting("one", "two", calls(finish(n=7))), max_steps=2)
    assert told(short)[0]["error"] == "schema_not_satisfied"


@pytest.mark.spec("LOOP-SUB-07", "LOOP-ERR-07", "LOOP-ACC-08")
async def test_three_corrections_are_allowed_and_no_fourth(place: Any) -> None:
    wrong = calls(finish(n="x"))
    assert MAX_SCHEMA_RETRIES == 3
    good = await played(fitting(wrong, wrong, wrong, calls(finish(n=7))), store=place)
    assert ends(good, "run_subtask")[0].item.text == '{"n":7}'
    model = fitting(wrong, wrong, wrong, wrong, calls(finish(n=7)))
    result = await played(model, store=place)
    assert result.output == "done", "the parent goes on"
    (said,) = told(result)
    assert (said["error"], said["attempts"], len(said["last_errors"])) == ("schema_not_satisfied", 4, 3)
    assert said["message"] and len(model.of("fit")) == 4
    assert isinstance(child_ends(result)[0], SubagentFailed)


@pytest.mark.spec("LOOP-SUB-08", "LOOP-SUB-09", "LOOP-ERR-02")
async def test_a_child_that_uses_up_its_rounds_fails_and_its_parent_goes_on(place: Any) -> None:
    never = calls(("look", {"what": "again"}))
    result = await played(fitting(never), max_steps=3, store=place)
    (said,) = told(result)
    assert said["error"] == "schema_not_satisfied" and said["attempts"] == 0 and result.output == "done"
    plain = LevelModel({"go": [calls(subtask("dig")), "done"], "dig": [never]})
    result = await played(plain, max_steps=3, store=place)
    (said,) = told(result)
    assert (said["error"], said["limit"]) == ("iteration_limit", 3) and said["message"]
    assert len(plain.of("dig")) == 3 and (result.status, result.output) == ("completed", "done")


@pytest.mark.spec("LOOP-STEP-21")
async def test_what_is_called_beside_finish_is_settled_first_and_a_second_finish_is_an_error() -> None:
    order: list[str] = []

    @tool(effect="pure")
    async def slow() -> str:
        for _ in range(20):
            await asyncio.sleep(0)
        order.append("slow is over")
        return "slow"

    model = fitting(calls(finish(n=1), "slow", finish(n=2)), "never asked for")
    result = await played(model, tools=[look, slow])
    assert order == ["slow is over"] and len(model.of("fit")) == 1
    assert ends(result, "run_subtask")[0].item.text == '{"n":1}'
    first, second = ends(result, "finish_subtask")
    assert not isinstance(first, ToolFailed) and isinstance(second, ToolFailed)
    kinds = [(entry.fact.event.kind, getattr(entry.fact.event, "tool_name", "")) for entry in result.facts()]
    assert kinds.index(("tool.result", "slow")) < kinds.index(("subagent.completed", ""))


# --- refusals --------------------------------------------------------------------------------------------------------

REFUSED = [
    ({"title": "t"}, "invalid_input"),
    ({"instructions": "i"}, "invalid_input"),
    ({"title": "", "instructions": "i"}, "invalid_input"),
    ({"title": "t", "instructions": "  "}, "invalid_input"),
    ({"title": "t", "instructions": "i", "tools": "look"}, "invalid_input"),
    ({"title": "t", "instructions": "i", "more": 1}, "invalid_input"),
    ({"title": "t", "instructions": "i", "output_schema": {"type": "nonsense"}}, "invalid_input"),
    ({"title": "t", "instructions": "i", "output_schema": {"type": 7}}, "invalid_input"),
    ({"title": "t", "instructions": "i", "tools": ["look", "nowhere"]}, "unknown_tools"),
    ({"title": "t", "instructions": "i", "tools": ["finish_subtask"]}, "unknown_tools"),
]


@pytest.mark.spec("LOOP-SUB-01", "LOOP-SUB-10")
@pytest.mark.parametrize(("given", "error"), REFUSED)
async def test_a_call_that_asks_for_what_cannot_be_starts_no_child(given: dict[str, Any], error: str) -> None:
    result = await played(LevelModel({"go": [calls(("run_subtask", given)), "done"], "i": ["x"]}))
    (end,) = ends(result, "run_subtask")
    assert isinstance(end, ToolFailed) and end.item.is_error
    said = json.loads(end.item.text)
    assert said["error"] == error and said["message"]
    assert children(result) == [] and result.output == "done"
    good = {"title": "t", "instructions": "i", "tools": ["look"], "output_schema": SCHEMA}
    fine = LevelModel({"go": [calls(("run_subtask", good)), "done"], "i": [calls(finish(n=3))]})
    result = await played(fine)
    assert ends(result, "run_subtask")[0].item.text == '{"n":3}'
    assert (children(result)[0].title, children(result)[0].task.text) == ("t", "i")


@pytest.mark.spec("LOOP-STEP-16")
async def test_what_the_runtime_answers_itself_is_never_run() -> None:
    declared = {
        each.name: each for each in runtime_tools(subtasks=True, parallel=3, work_items=False, spawn="private_child")
    }
    assert {*declared, *WAIT_TOOLS, "finish_subtask"} == ANSWERED_HERE
    for each in declared.values():
        with pytest.raises(AssertionError, match="never run"):
            AnsweredHere(each.declaration).start(None, {})  # type: ignore[arg-type]
    script = {
        "go": [calls(subtask("fit", output_schema=SCHEMA), note("a", 1), "scratch_list"), "done"],
        "fit": [calls(finish(n=1))],
    }
    result = await played(LevelModel(script))
    for name in ("run_subtask", "finish_subtask", "scratch_write", "scratch_list"):
        assert not isinstance(ends(result, name)[0], ToolFailed), name


# --- side by side ----------------------------------------------------------------------------------------------------


class Crowd:
    """How many were in at once."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def come_and_go(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(60):
            await asyncio.sleep(0)
        self.now -= 1


@pytest.mark.spec("LOOP-STEP-19")
@pytest.mark.parametrize("locked", [True, False])
async def test_two_calls_with_one_lock_never_overlap_whatever_level_they_are_of(locked: bool) -> None:
    crowd = Crowd()

    @tool(effect="pure", locks=["till"] if locked else [])
    async def count() -> str:
        await crowd.come_and_go()
        return "counted"

    script = {
        "go": [calls(subtask("a"), subtask("b"), "count"), "done"],
        "a": [calls("count", subtask("below")), "a"],
        "b": [calls("count"), "b"],
        "below": [calls("count"), "below"],
    }
    result = await played(LevelModel(script), tools=[count])
    assert result.output == "done" and len(ends(result, "count")) == 4
    assert (crowd.most == 1) is locked, crowd.most


@pytest.mark.spec("LOOP-STEP-20", "LOOP-BUD-04")
@pytest.mark.parametrize("width", [1, 2, 8])
async def test_the_whole_tree_shares_one_number_of_slots_and_waiting_for_a_child_takes_none(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = Crowd()

    @tool(effect="pure")
    async def work() -> str:
        await crowd.come_and_go()
        return "worked"

    several = calls(*["work"] * 5)
    script = {
        "go": [calls(*(subtask(f"c{number}") for number in range(4))), "done"],
        **{f"c{number}": [calls("work", "work", subtask(f"d{number}"), "work"), "c"] for number in range(4)},
        **{f"d{number}": [several, "d"] for number in range(4)},
    }
    if width != 8:
        monkeypatch.setenv("WAKEFUL_MAX_PARALLEL_PER_TURN", str(width))
    result = await played(LevelModel(script), tools=[work])
    assert result.output == "done", "with one slot, and three levels that wait, it still goes on"
    assert len(children(result)) == 8 and len(ends(result, "work")) == 32
    assert crowd.most <= width
    assert crowd.most > 4 or width != 8, "what the limit is taken from does come side by side"


@pytest.mark.spec("LOOP-ACC-04")
async def test_children_of_one_reply_are_so_many_loops_and_one_answer_each(place: Any) -> None:
    names = [f"c{number}" for number in range(5)]
    script: dict[str, Any] = {name: [calls("look"), f"result {name}"] for name in names}
    script["go"] = [calls(*map(subtask, names)), lambda shown: " ".join(shown.texts[-5:])]
    result = await played(LevelModel(script), store=place)
    assert result.output == " ".join(f"result {name}" for name in names)
    assert [child.task.text for child in children(result)] == names and len(child_ends(result)) == 5
    stored = {entry.fact.level for entry in result.facts()} - {None}
    assert stored == {child.level_id for child in children(result)}


# --- notes of the turn -----------------------------------------------------------------------------------------------


@pytest.mark.spec("LOOP-MEM-04", "LOOP-MEM-06")
async def test_siblings_do_not_read_each_other_and_the_later_call_wins_whoever_was_faster() -> None:
    fast_is_over = asyncio.Event()

    def keys(shown: Shown) -> Any:
        return json.loads(shown.texts[-1])["keys"]

    async def wait(shown: Shown) -> Any:
        await fast_is_over.wait()
        return calls("scratch_list")

    def over(shown: Shown) -> Any:
        fast_is_over.set()
        return "fast"

    script = {
        "go": [
            calls(note("before", 1)),
            calls(subtask("slow"), subtask("fast"), note("both", "root")),
            calls("scratch_list", ("scratch_read", {"key": "both"}), ("scratch_read", {"key": "first"})),
            lambda shown: " ".join(shown.texts[-2:]),
        ],
        "slow": [
            calls(note("both", "slow"), note("first", "slow"), subtask("below")),
            wait,
            lambda shown: ",".join(keys(shown)),
        ],
        "below": [calls(note("deep", 1)), "b"],
        "fast": [calls(note("both", "fast"), note("first", "fast")), over],
    }
    result = await played(LevelModel(script))
    seen = json.loads(ends(result, "scratch_list")[0].item.text)["keys"]
    below = next(child.level_id for child in children(result) if child.task.text == "below")
    assert seen == sorted(["before", "both", "deep", "first", f"task:{below}"]), "its own tree's, and nothing of fast"
    # In model order: slow, fast, then the root's own note, although fast was over before slow.
    assert result.output == "root fast"
    after = set(json.loads(ends(result, "scratch_list")[1].item.text)["keys"])
    assert after >= {"before", "both", "deep", "first", *(f"task:{child.level_id}" for child in children(result))}


@pytest.mark.spec("LOOP-MEM-02")
async def test_notes_are_fresh_in_each_turn_and_shared_by_its_tree(tmp_path: Path) -> None:
    script = {
        "one": [
            lambda shown: calls("scratch_list") if shown.texts[-1] == "two" else calls(note("a", 5)),
            lambda shown: calls(subtask("dig")),
            "done",
        ],
        "dig": [calls(("scratch_read", {"key": "a"})), lambda shown: shown.texts[-1]],
    }
    store = tmp_path / "runs.db"
    first = await played(LevelModel(script), prompt="one", store=store, thread="t")
    assert json.loads(ends(first, "run_subtask")[0].item.text) == {"key": "a", "value": 5}
    second = await played(LevelModel(script), prompt="two", store=store, thread="t")
    assert json.loads(ends(second, "scratch_list")[0].item.text) == {"keys": []}
    missing = json.loads(ends(second, "scratch_read")[0].item.text)
    assert missing["error"] == "not_found"


@pytest.mark.spec("LOOP-MEM-07")
async def test_only_the_runtime_writes_results_and_no_note_is_endless() -> None:
    """`memory_list`, `memory_read` and `memory_write` of the rules are `scratch_*` here."""
    script = {
        "go": [
            calls(note("task:x", 1), note("long", "x" * 20_000), note("fine", {"a": [1]}), subtask("dig")),
            lambda shown: calls("scratch_list", ("scratch_read", {"key": "fine"}), ("scratch_read", {"key": "task:x"})),
            "done",
        ],
        "dig": ["gold"],
    }
    result = await played(LevelModel(script))
    kept, long, fine = ends(result, "scratch_write")
    assert isinstance(kept, ToolFailed) and "only the runtime" in kept.message
    assert isinstance(long, ToolFailed) and "16000" in long.message
    assert not isinstance(fine, ToolFailed)
    assert [(event.key, event.value) for event in of_kind(result, ScratchWritten)] == [("fine", {"a": [1]})]
    (listed,) = ends(result, "scratch_list")
    assert json.loads(listed.item.text) == {"keys": ["fine", f"task:{children(result)[0].level_id}"]}
    read, missing = ends(result, "scratch_read")
    assert json.loads(read.item.text)["value"] == {"a": [1]} and isinstance(missing, ToolFailed)


@pytest.mark.spec("LOOP-SUB-11")
async def test_a_list_of_tools_is_the_whole_belt_beside_finish_and_the_notes() -> None:
    """The notes are kept whatever is listed; splitting further is there only if it is."""
    notes = {"scratch_list", "scratch_read", "scratch_write"}
    script = {
        "go": [
            calls(
                subtask("none", tools=[]),
                subtask("one", tools=["look"]),
                subtask("fit", tools=["look"], output_schema=SCHEMA),
                subtask("deep", tools=["run_subtask"]),
            ),
            "done",
        ],
        "none": [calls("look"), "n"],
        "one": ["o"],
        "fit": [calls(finish(n=1))],
        "deep": ["d"],
    }
    model = LevelModel(script)
    await played(model)
    belts = {task: set(model.of(task)[0].tools) - notes for task in ("none", "one", "fit", "deep")}
    assert belts == {"none": set(), "one": {"look"}, "fit": {"look", "finish_subtask"}, "deep": {"run_subtask"}}
    assert all(notes <= set(shown.tools) for shown in model.seen)


# --- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.spec("LOOP-ERR-08")
async def test_a_provider_that_fails_a_child_fails_that_child_and_one_that_is_away_fails_none() -> None:
    gone = {"fail": [{"kind": "invalid_response", "message": "gone"}]}
    script = {"go": [calls(subtask("a"), subtask("b")), "done"], "a": [gone], "b": [calls("look"), "b is fine"]}
    model = LevelModel(script)
    result = await played(model)
    assert result.output == "done" and len(model.of("a")) == 2, "after one more try"
    failed, fine = (event.item for event in sorted(ends(result, "run_subtask"), key=lambda event: event.item.call_id))
    said = json.loads(failed.text)
    assert said["error"] == "subtask_failed" and "gone" in said["message"] and failed.is_error
    assert fine.text == "b is fine"
    for kind, status in (("auth_error", 401), ("quota_exhausted", 402)):
        shut = {"fail": [{"kind": kind, "message": "no more", "status": status}]}
        over = await played(LevelModel({**script, "a": [shut]}))
        assert (over.status, over.retryable) == ("failed", True) and "no more" in over.message, "it has no store"
        assert "b is fine" in [event.item.text for event in ends(over, "run_subtask")], "its sibling went on"


@pytest.mark.spec("LOOP-SUB-12")
async def test_every_way_in_which_a_subtask_fails_has_its_word() -> None:
    """invalid_input, unknown_tools, iteration_limit and schema_not_satisfied are shown above with the rest."""
    look_again = calls("look")
    gone = {"fail": [{"kind": "content_filtered", "message": "no", "status": 400}]}
    script = {
        "go": [calls(subtask("dig")), "done"],
        "dig": [look_again],
        "fit": [calls(finish(n="x"))],
        "bad": [gone],
    }
    words: dict[str, dict[str, Any]] = {}

    async def turned_down(call: tuple[str, dict[str, Any]], **options: Any) -> None:
        result = await played(LevelModel({**script, "go": [calls(call), "done"]}), **options)
        said = told(result)[0]
        words[said["error"]] = said

    await turned_down(("run_subtask", {}))
    await turned_down(subtask("dig", tools=["nowhere"]))
    await turned_down(subtask("dig"), budget=Budget(depth=0))
    await turned_down(subtask("dig"), budget=Budget(subtasks=0))
    await turned_down(subtask("dig"), max_steps=2)
    await turned_down(subtask("fit", output_schema=SCHEMA))
    await turned_down(subtask("bad"))
    await turned_down(subtask("dig"), budget=Budget(tool_calls=2))
    assert set(words) == {
        *("invalid_input", "unknown_tools", "max_depth_reached", "budget_exceeded", "iteration_limit"),
        *("schema_not_satisfied", "subtask_failed"),
    }
    assert all(said["message"] for said in words.values())
    assert (words["max_depth_reached"]["depth"], words["max_depth_reached"]["max_depth"]) == (0, 0)
    assert words["budget_exceeded"]["reason"] in ("subtasks", "tool_calls")
    assert words["schema_not_satisfied"]["attempts"] == 4 and words["schema_not_satisfied"]["last_errors"]
    stopping = await _cancelled()
    assert told(stopping)[0]["error"] == "cancelled"


async def _cancelled() -> RunResult[str]:
    from wakeful import cancel
    from wakeful.store.memory import MemoryStore

    store = MemoryStore()

    @tool(effect="pure")
    async def stop(ctx: RunContext[None]) -> str:
        await cancel(store, ctx.turn_id)
        await asyncio.sleep(600)
        return "never"

    script = {"go": [calls(subtask("dig")), "done"], "dig": [calls(subtask("deeper"))], "deeper": [calls("stop")]}
    return await played(LevelModel(script), tools=[stop], store=store)


@pytest.mark.spec("LOOP-ACC-09", "CTL-INV-08")
async def test_a_cancel_reaches_every_depth() -> None:
    result = await _cancelled()
    assert (result.status, result.stop_reason) == ("cancelled", "cancelled")
    assert [end.error for end in child_ends(result)] == ["cancelled", "cancelled"]  # type: ignore[union-attr]
    (stopped,) = ends(result, "stop")
    assert isinstance(stopped, ToolFailed) and stopped.status == "cancelled"
    assert stopped.error_category == "canceled" and stopped.message
    assert of_kind(result, LimitChanged) == []
