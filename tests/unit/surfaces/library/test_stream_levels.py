"""`stream()` shows every level of a run, the answer as far as it has come, and what tools show."""

from typing import Any, get_args

import pytest
from pydantic import BaseModel

from kit.runs.engine_runs import calls
from kit.runs.level_scripts import LevelModel, subtask
from wakeful import Agent, HookInput, RunContext, hook, run, stream, tool
from wakeful import events as public
from wakeful.contracts.models import TextDelta
from wakeful.errors import InvalidRequest
from wakeful.events import OutputEvent, StatusEvent, StreamEvent, SubtaskEvent, TextEvent, ToolCallEvent
from wakeful.testing import scripted
from wakeful.views.partial_answer import PartialAnswer
from wakeful.views.run_stream_events import ErrorEvent, StepEvent
from wakeful.views.tree_stream import TreeStream


@tool(effect="pure")
def look(ctx: RunContext[None], what: str = "") -> str:
    """Look at something."""
    ctx.show(f"looking at {what}\n")
    ctx.progress("half", done=1, total=2)
    return f"saw {what}"


def boss(**options: Any) -> Agent[None, str]:
    script = {
        "go": [calls(subtask("dig")), "done"],
        "dig": [calls(("look", {"what": "down"}), subtask("deeper")), "gold"],
        "deeper": [calls(("look", {"what": "deep"})), "iron"],
    }
    return Agent("boss", LevelModel(script), tools=[look], subtasks=True, **options)


async def watched(agent: Agent[None, Any], **options: Any) -> list[StreamEvent]:
    async with stream(agent, "go", **options) as s:
        return [event async for event in s]


async def test_every_level_is_shown_with_its_path_and_the_root_has_none() -> None:
    seen = await watched(boss())
    subtasks = [event for event in seen if isinstance(event, SubtaskEvent)]
    assert [(event.status, event.title, len(event.path), event.tool) for event in subtasks] == [
        ("started", "do dig", 1, "run_subtask"),
        ("started", "do deeper", 2, "run_subtask"),
        ("completed", "do deeper", 2, "run_subtask"),
        ("completed", "do dig", 1, "run_subtask"),
    ]
    dig, deeper = subtasks[0].path, subtasks[1].path
    assert deeper[:1] == dig
    words: dict[tuple[str, ...], str] = {}
    for event in seen:
        if isinstance(event, TextEvent):
            words[event.path] = words.get(event.path, "") + event.text
    assert words == {(): "done", dig: "gold", deeper: "iron"}
    called = [(event.path, event.tool) for event in seen if isinstance(event, ToolCallEvent)]
    assert sorted(called) == sorted([((), "run_subtask"), (dig, "look"), (dig, "run_subtask"), (deeper, "look")])
    between = seen[seen.index(subtasks[0]) + 1 : seen.index(subtasks[3])]
    assert {event.path for event in between if event.path} == {dig, deeper}
    assert isinstance(seen[-1], StatusEvent) and seen[-1].status == "completed"


async def test_a_run_that_is_over_is_shown_from_the_log_with_the_same_levels(tmp_path: Any) -> None:
    store = tmp_path / "runs.db"
    live = await watched(boss(), store=store, key="k")
    again = await watched(boss(), store=store, key="k")
    stored = [event for event in live if not isinstance(event, TextEvent | OutputEvent)]
    assert [event for event in again if not isinstance(event, TextEvent)] == stored


async def test_what_a_tool_shows_comes_with_the_level_of_its_call() -> None:
    seen = await watched(boss())
    dig, deeper = (event.path for event in seen if isinstance(event, SubtaskEvent) and event.status == "started")
    shown = {event.path: (event.tool, event.text) for event in seen if isinstance(event, OutputEvent)}
    assert shown == {dig: ("look", "looking at down\n"), deeper: ("look", "looking at deep\n")}


async def test_the_words_of_subtasks_are_not_taken_for_the_answer() -> None:
    async with stream(boss(), "go") as s:
        assert "".join([piece async for piece in s.text()]) == "done"


async def test_a_hook_is_told_which_level_makes_the_call() -> None:
    told: list[tuple[str, int, tuple[str, ...]]] = []

    @hook("post_tool_use", read_only=True)
    def after(call: HookInput) -> None:
        told.append((call.tool, call.depth, call.path))

    @hook
    def before(call: HookInput) -> None:
        told.append((call.tool, call.depth, call.path))
        assert (call.to_dict()["depth"], call.to_dict()["path"]) == (call.depth, list(call.path))

    seen = await watched(boss(hooks=[before, after]))
    dig, deeper = (event.path for event in seen if isinstance(event, SubtaskEvent) and event.status == "started")
    assert {each for each in told if each[0] == "look"} == {("look", 1, dig), ("look", 2, deeper)}
    assert {each for each in told if each[0] == "run_subtask"} == {("run_subtask", 0, ()), ("run_subtask", 1, dig)}


# --- the answer as far as it has come ---------------------------------------------------------------------------------


class Order(BaseModel):
    name: str
    cents: int


async def test_the_answer_is_there_as_far_as_it_has_come() -> None:
    agent = Agent("any", scripted(['{"name": "a long name of an order", "cents": 4200}']), output_type=Order)
    async with stream(agent, "go") as s:
        assert s.partial() is None
        seen = [value async for value in s.partials()]
        assert s.partial() == seen[-1] == {"name": "a long name of an order", "cents": 4200}
        assert (await s.result()).output == Order(name="a long name of an order", cents=4200)
    names = [value["name"] for value in seen if isinstance(value, dict) and "name" in value]
    assert len(names) > 1 and all(isinstance(name, str) and names[-1].startswith(name) for name in names)


async def test_an_answer_that_is_text_has_no_parts() -> None:
    async with stream(Agent("any", scripted(["hello"])), "go") as s:
        with pytest.raises(InvalidRequest, match="whose answer is text") as told:
            s.partial()
        assert "s.text()" in str(told.value.hint)


def heard(*words: str) -> PartialAnswer:
    partial = PartialAnswer()
    for each in words:
        partial.take(TextEvent(step=1, attempt=1, text=each))
    return partial


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("", None),
        ("I think", None),
        ('{"a": [1, 2', {"a": [1, 2]}),
        ('{"a": "b', {"a": "b"}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Here: {"a": 1, "b', {"a": 1}),
        ("[1, {", [1, {}]),
        ("42", 42),
    ],
)
def test_json_is_read_wherever_it_stops(words: str, value: Any) -> None:
    assert heard(*words).value == value == heard(words).value


def test_a_lost_attempt_and_a_new_round_begin_anew() -> None:
    partial = heard('{"a": 1')
    lost = ErrorEvent(
        step=1, attempt=1, model_ref="m", failure_kind="timeout", message="late", retryable=True
    )  # fmt: skip
    partial.take(lost.model_copy(update={"path": ("child",)}))
    assert partial.value == {"a": 1}
    partial.take(lost)
    assert partial.value is None
    partial.take(TextEvent(step=1, attempt=2, text='{"b": 2}'))
    partial.take(TextEvent(step=1, attempt=2, text="x", phase="planner"))
    assert partial.value == {"b": 2}
    partial.take(StepEvent(step=2, status="started"))
    assert partial.value is None


# --- the public names -------------------------------------------------------------------------------------------------


def test_the_module_of_events_has_every_class_and_lists_it() -> None:
    members = set(get_args(StreamEvent))
    exported = {getattr(public, name) for name in public.__all__} - {StreamEvent, public.RuntimeEvent}
    assert members == exported
    assert all(each.__doc__ and each.__name__ in (public.__doc__ or "") for each in members)
    assert all("path" in each.model_fields and "type" in each.model_fields for each in members)


async def test_a_glimpse_of_a_level_that_is_unknown_or_over_is_dropped() -> None:
    view = TreeStream("turn_1")
    assert view.glimpse(1, TextDelta(text="?"), "nobody") == []
    assert view.output(1, "c", "t", "") == []


async def test_running_without_a_watcher_shows_nothing_and_fails_nowhere() -> None:
    assert (await run(boss(), "go")).output == "done"
