"""A model may call a tool by the last part of its name, as people do, where only one tool has it."""

from pathlib import Path

from kit.runs.engine_runs import calls, of_kind
from wakeful import Agent, Budget, run, tool
from wakeful.contracts.events import PermissionEvaluated, ToolFailed, ToolStarted
from wakeful.testing import scripted


def named(name: str) -> object:
    async def act() -> str:
        return f"{name} ran"

    return tool(act, name=name, effect="pure")


async def test_a_bare_name_that_one_tool_has_is_that_tools(tmp_path: Path) -> None:
    model = scripted([calls(("read_file", {"path": "a.txt"}), "look_up"), "done"])
    (tmp_path / "a.txt").write_text("hello")
    agent = Agent("any", model, tools=[named("shop/look_up")], workspace=tmp_path)
    result = await run(agent, "go")
    assert [started.tool_name for started in of_kind(result, ToolStarted)] == ["wakeful/read_file", "shop/look_up"]
    assert [call.tool for call in result.calls()] == ["wakeful/read_file", "shop/look_up"]
    assert result.calls("look_up") == result.calls("shop/look_up") != []


async def test_one_that_two_tools_have_is_nobodys_and_an_exact_name_goes_first() -> None:
    tools = [named("shop/look_up"), named("bank/look_up"), named("pay"), named("bank/pay")]
    result = await run(Agent("any", scripted([calls("look_up", "pay"), "done"]), tools=tools), "go")
    (failed,) = of_kind(result, ToolFailed)
    assert (failed.tool_name, failed.error_category) == ("look_up", "unknown_tool")
    assert [call.result for call in result.calls("pay") if call.status == "success"] == ["pay ran"]


async def test_a_rule_about_the_tool_holds_for_its_bare_name() -> None:
    from wakeful import GatePolicy, Rule

    policy = GatePolicy(rules=(Rule(match="shop/look_up", decision="deny", reason="closed"),))
    agent = Agent("any", scripted([calls("look_up"), "done"]), tools=[named("shop/look_up")], policy=policy)
    result = await run(agent, "go")
    assert [event.decision for event in of_kind(result, PermissionEvaluated)] in ([], ["deny"])
    assert not any(call.status == "success" for call in result.calls())


async def test_a_limit_on_calls_of_a_tool_holds_for_its_bare_name() -> None:
    for limit in ("look_up", "shop/look_up"):
        for called in ("look_up", "shop/look_up"):
            model = scripted([calls(called), calls(called, called), "done"], leftover="ignore")
            agent = Agent("any", model, tools=[named("shop/look_up")], budget=Budget(per_tool={limit: 2}))
            result = await run(agent, "go")
            assert (result.status, result.stop_reason) == ("incomplete", "tool_calls")
            assert [call.status for call in result.calls()].count("success") == 2
            assert result.warnings == ()
