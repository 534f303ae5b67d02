"""The execution core: from a name and parameters to a normalised result, whatever the executor does."""

import asyncio
from typing import Any

import pytest

from kit.hosts.loop_host import CLOCK, SEARCH, Host, calling, search
from wakeful.hosts import ConversationLoop, ToolExecutionCore
from wakeful.hosts.ports import ToolCall, ToolCallMetadata
from wakeful.hosts.tools.declaration_reader import normalize_for_conversation_request

TOOLS = [normalize_for_conversation_request(raw) for raw in ({**SEARCH, "provider_aliases": ["find"]}, CLOCK)]


class Executor:
    """Returns or raises what it was told to."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = {"success": True, "result": 1} if answer is None else answer
        self.got: list[tuple[Any, Any, Any]] = []

    def execute(self, call: Any, declaration: Any, context: Any) -> Any:
        self.got.append((call, declaration, context))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


async def outcome(answer: Any, name: str = "ability/search", **parameters: Any) -> dict[str, Any]:
    core = ToolExecutionCore(TOOLS, Executor(answer))
    return await core.execute(name, parameters or {"q": "x"}, tool_call_id="c1")


@pytest.mark.spec("API-CORE-01", "API-CORE-02")
@pytest.mark.parametrize("name", ["ability/search", "ability__search", "find"])
async def test_a_call_goes_from_its_name_or_alias_to_the_executor_and_back(name: str) -> None:
    executor = Executor()
    core = ToolExecutionCore(TOOLS, executor)
    result = await core.execute(name, {"q": "x"}, tool_call_id="c1", context={"k": 1})
    ((call, declaration, context),) = executor.got
    assert call == ToolCall(
        tool_name="ability/search",
        parameters={"q": "x"},
        metadata=ToolCallMetadata(source="abilities", provider_tool_name=name, tool_call_id="c1"),
        id="c1",
    )
    assert (declaration, context) == (TOOLS[0], {"k": 1})
    assert result["result"] == 1


@pytest.mark.spec("API-CORE-03")
async def test_results_are_normalised() -> None:
    assert await outcome({"success": True, "result": [1], "metadata": {"k": 1}, "status": "warm"}) == {
        "success": True,
        "tool_name": "ability/search",
        "status": "warm",
        "metadata": {"k": 1},
        "result": [1],
        "runtime": {"completion_signal": "progress"},
    }
    moved = await outcome({"success": False, "error": "no", "error_type": "quota"})
    assert (moved["error"], moved["metadata"], "result" in moved) == ("no", {"error_type": "quota"}, False)
    kept = await outcome({"success": False, "error": "no", "error_type": "a", "metadata": {"error_type": "b"}})
    assert kept["metadata"] == {"error_type": "b"}
    assert (await outcome({"success": False}))["error"] == "Tool 'ability/search' failed"


@pytest.mark.spec("API-CORE-04")
async def test_an_unknown_tool_is_not_found() -> None:
    result = await outcome(None, "ability/nope")
    assert (result["success"], result["error"]) == (False, "Tool 'ability/nope' not found")
    assert result["metadata"]["error_type"] == "tool_not_found"


@pytest.mark.spec("API-CORE-05")
@pytest.mark.parametrize("parameters", [{"n": 1}, {"q": None}, {"q": ""}])
async def test_missing_required_parameters_are_named_and_the_executor_is_not_called(parameters: dict[str, Any]) -> None:
    executor = Executor()
    result = await ToolExecutionCore(TOOLS, executor).execute("ability/search", parameters)
    assert result["metadata"] == {"error_type": "missing_required_parameters", "missing_parameters": ["q"]}
    assert (result["success"], executor.got) == (False, [])


@pytest.mark.spec("API-CORE-05")
@pytest.mark.parametrize("parameters", [{"n": 1}, {"q": ""}])
async def test_missing_parameters_never_reach_the_executor_in_the_loop_either(parameters: dict[str, Any]) -> None:
    host = Host(calling({"name": "ability/search", "parameters": parameters}), {"content": "done"})
    result = await host.mediated()
    assert result.tool_execution_results[0]["result"]["metadata"]["missing_parameters"] == ["q"]
    assert not host.calls and result.completed


async def test_parameters_that_do_not_fit_the_schema_are_refused_with_their_paths() -> None:
    executor = Executor()
    result = await ToolExecutionCore(TOOLS, executor).execute("ability/search", {"q": "x", "n": "many"})
    assert (result["metadata"]["error_type"], result["metadata"]["paths"]) == ("invalid_parameters", ["n"])
    assert not executor.got


@pytest.mark.spec("API-CORE-06")
async def test_an_executor_that_raises_is_a_failed_result() -> None:
    result = await outcome(ValueError("boom"))
    assert (result["success"], result["error"]) == (False, "ValueError: boom")
    assert result["metadata"]["error_type"] == "executor_exception"
    host = Host(calling(search("bad"), search("good")), {"content": "done"})
    host.answers = {"bad": ValueError("boom")}
    run = await host.mediated()
    assert [entry["result"]["success"] for entry in run.tool_execution_results] == [False, True]
    assert run.tool_execution_results[0]["result"]["metadata"]["error_type"] == "executor_exception"
    assert run.completed


@pytest.mark.spec("API-CORE-07")
async def test_a_return_without_success_is_a_successful_result() -> None:
    result = await outcome({"answer": 42})
    assert (result["success"], result["result"]) == (True, {"answer": 42})


@pytest.mark.spec("API-CORE-09")
@pytest.mark.parametrize("answer", ["text", 7, ["list"], {"x": object()}, {"success": True, "result": {1, 2}}])
async def test_a_return_that_is_no_object_or_no_json_is_a_failed_result(answer: Any) -> None:
    result = await outcome(answer)
    assert (result["success"], result["metadata"]["error_type"]) == (False, "invalid_tool_result")
    host = Host(calling(search("odd")), {"content": "done"})
    host.answers = {"odd": answer}
    assert (await host.mediated()).completed


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"success": True, "status": "runtime_tool_pending"}, "pause"),
        ({"type": "approval_required", "content": "May I?"}, "usable envelope"),
        ({"success": True, "status": "approval_required"}, "usable envelope"),
    ],
)
async def test_a_pause_that_cannot_be_kept_is_a_failed_result_not_a_success(answer: dict[str, Any], words: str) -> None:
    result = await outcome(answer)
    assert result["success"] is False and words in result["error"]


async def test_two_tools_with_one_alias_are_both_reached_by_name_only() -> None:
    twins = [
        normalize_for_conversation_request({**CLOCK, "name": name, "provider_aliases": ["tell"]})
        for name in ("a/clock", "b/clock")
    ]
    core = ToolExecutionCore(twins, Executor())
    assert core.find("tell") is None
    assert core.find("b/clock") is twins[1]


async def test_an_executor_is_told_when_nobody_waits_any_more() -> None:
    began, told = asyncio.Event(), asyncio.Event()

    class Waits:
        async def execute(self, call: Any, declaration: Any, context: dict[str, Any]) -> Any:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                if context["cancelled"].is_set():
                    told.set()

    host = Host(calling(search()))
    loop = ConversationLoop(store=host.store, hooks=host.hooks)
    tools = {"ability/search": SEARCH}
    options = {"tool_executor": Waits(), "tool_declarations": tools, "max_turns": 2}
    run = asyncio.create_task(loop.run([{"role": "user", "content": "x"}], host.turn_runner, options))
    await began.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert told.is_set()
