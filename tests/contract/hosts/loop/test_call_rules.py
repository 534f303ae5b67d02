"""The option `tool_call_rules`: what may be called after what, and what has to be called before a run is complete."""

from typing import Any

import pytest

from kit.hosts.loop_host import CLOCK, SEARCH, Host, calling, search
from wakeful.hosts import ConversationLoop, ConversationResult

TIME: dict[str, Any] = {"name": "ability/clock", "parameters": {}}
AFTER = {"after_tool": "ability/search", "limited_tools": ["ability/search"], "require_one_of": ["ability/clock"]}


async def ruled(host: Host, *rules: dict[str, Any]) -> ConversationResult:
    loop = ConversationLoop(store=host.store, hooks=host.hooks)
    options = {
        "tool_executor": host,
        "tool_declarations": {"ability/search": SEARCH, "ability/clock": CLOCK},
        "tool_call_rules": list(rules),
        "max_turns": 6,
    }
    return await loop.run([{"role": "user", "content": "go"}], host.turn_runner, options)


def kinds(result: ConversationResult) -> list[str | None]:
    return [each["result"]["metadata"].get("error_type") for each in result.tool_execution_results]


@pytest.mark.spec("API-GATE-01")
async def test_a_limited_tool_is_rejected_until_one_of_the_required_ones_was_called() -> None:
    rule = {**AFTER, "max_calls": 1, "gate_completion": False}
    host = Host(
        *(calling(search("1")), calling(search("2")), calling(search("3"))),
        *(calling(TIME), calling(search("4")), {"content": "done"}),
    )
    result = await ruled(host, rule)
    assert kinds(result) == [None, None, "tool_call_gate_rejected", None, None]
    # The inversion: the same run without the rule.
    free = Host(calling(search("1")), calling(search("2")), calling(search("3")), {"content": "done"})
    assert kinds(await ruled(free)) == [None, None, None]


@pytest.mark.spec("API-GATE-02")
async def test_a_run_does_not_complete_by_itself_before_what_is_required_was_called() -> None:
    host = Host(calling(search("1")), {"content": "too early"}, calling(TIME), {"content": "now"})
    result = await ruled(host, {**AFTER, "max_calls": 9})
    assert (result.completed, result.final_content, result.turn_count) == (True, "now", 4)
    assert any("ability/clock" in str(message["content"]) for message in host.wire if message["role"] == "user")
    free = Host(calling(search("1")), {"content": "at once"})
    assert (await ruled(free, {**AFTER, "max_calls": 9, "gate_completion": False})).final_content == "at once"


@pytest.mark.spec("API-GATE-03")
@pytest.mark.parametrize(
    ("rule", "calls"),
    [
        ({"require_tool_use": True}, [search("1")]),
        ({"require_tool_use": True, "min_tool_calls": 2}, [search("1"), search("2")]),
        ({"require_tool_use": True, "require_one_of": ["ability/clock"]}, [TIME]),
    ],
    ids=["any", "two", "one of"],
)
async def test_a_run_that_has_to_use_tools_is_not_complete_without(rule: dict[str, Any], calls: list[Any]) -> None:
    host = Host({"content": "without"}, calling(*calls), {"content": "with"})
    result = await ruled(host, rule)
    assert (result.completed, result.final_content, len(host.calls)) == (True, "with", len(calls))
    other = Host({"content": "without"}, calling(search("1")), {"content": "still"}, calling(*calls), {"content": "ok"})
    wants_more = rule.get("min_tool_calls", 1) > 1 or "require_one_of" in rule
    assert (await ruled(other, rule)).final_content == ("ok" if wants_more else "still")
