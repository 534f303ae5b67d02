"""Every error type of a tool result, provoked once: what hosts tell failures apart by."""

from collections.abc import Awaitable, Callable
from typing import Any, get_args

import pytest

from kit.hosts.loop_host import CLOCK, SEARCH, Host, calling, search
from wakeful.hosts import ToolExecutionCore
from wakeful.hosts.abilities.registry import Abilities, Ability, AbilityExecutor
from wakeful.hosts.loop.budgets import IterationBudget
from wakeful.hosts.ports import ToolCall, ToolCallMetadata
from wakeful.hosts.tools.declaration_reader import normalize_for_conversation_request
from wakeful.hosts.tools.tool_execution import ErrorType
from wakeful.service.hooks import HookRegistry

DONE = {"content": "done"}
RULE = {"after_tool": "ability/clock", "limited_tools": ["ability/search"], "require_one_of": ["ability/x"]}


async def last_of(*calls: Any, **options: Any) -> dict[str, Any]:
    """The result of the last of these calls."""
    result = await Host(calling(*calls), DONE).mediated(**options)
    found: dict[str, Any] = result.tool_execution_results[-1]["result"]
    return found


def tools(**fields: Any) -> dict[str, Any]:
    return {"tool_declarations": {"ability/search": {**SEARCH, **fields}, "ability/clock": CLOCK}}


async def nobody_runs_it() -> dict[str, Any]:
    result = await Host(calling(search())).run()
    found: dict[str, Any] = result.tool_execution_results[0]["result"]
    return found


async def prepared_for_another() -> dict[str, Any]:
    declared = [normalize_for_conversation_request(raw) for raw in (SEARCH, CLOCK)]
    about = ToolCallMetadata(source="s", provider_tool_name="x", tool_call_id="c1")
    return await ToolExecutionCore(declared, Host()).run(
        ToolCall(tool_name="ability/search", metadata=about), declared[1], {}
    )


async def ability(named: Any) -> dict[str, Any]:
    abilities = Abilities(HookRegistry(find=list))
    abilities.register(Ability("posts/find", lambda given: {"found": given["q"]}, lambda given: True))
    abilities.register(Ability("posts/drop", lambda given: given, lambda given: False))
    return await last_of(search(), tool_executor=AbilityExecutor(abilities), **tools(ability=named))


def says(decision: Any) -> Callable[[Any], Any]:
    return lambda context: decision


PROVOKED: dict[str, Callable[[], Awaitable[dict[str, Any]]]] = {
    "executor_target_unavailable": lambda: last_of(search(), **tools(runtime={"executor_target": "gpu"})),
    "invalid_prepared_tool_call": prepared_for_another,
    "capability_denied": lambda: last_of(search(), **tools(required_capability="edit_posts")),
    "ability_name_missing": lambda: ability(" "),
    "pre_tool_mediation_rejected": lambda: last_of(
        search(), pre_tool_mediator=says({"action": "reject", "error": "no"})
    ),
    "tool_call_gate_rejected": lambda: last_of(
        {"name": "ability/clock", "parameters": {}}, search(), tool_call_rules=[RULE]
    ),
    "pre_tool_mediation_error": lambda: last_of(search(), pre_tool_mediator=says("nonsense")),
    "invalid_tool_call": lambda: last_of({"parameters": {}}),
    "invalid_parameters": lambda: last_of(search("x", n="many")),
    "sibling_skipped": lambda: last_of(
        search(), search("y"), pre_tool_mediator=says({"action": "reject", "error": "no", "complete": True})
    ),
    "tool_mediation_disabled": nobody_runs_it,
    "action_forbidden": lambda: last_of(search(), **tools(action_policy="forbidden")),
    "budget_exceeded": lambda: last_of(search(), search("y"), budgets=[IterationBudget("tool_calls", 1)]),
}


@pytest.mark.parametrize("kind", PROVOKED)
@pytest.mark.spec("API-CORE-08")
async def test_a_failed_call_says_of_which_type_it_is(kind: str) -> None:
    result = await PROVOKED[kind]()
    assert (result["success"], result["metadata"]["error_type"]) == (False, kind)
    assert kind in get_args(ErrorType)


@pytest.mark.parametrize(
    ("named", "came"),
    [
        ("posts/find", {"found": "x"}),
        ("posts/drop", "ability_permission_denied"),
        ("posts/none", "ability_not_found"),
        (None, "ability_name_missing"),
    ],
)
async def test_a_tool_may_run_an_ability_by_its_name(named: Any, came: Any) -> None:
    result = await ability(named)
    assert (result["result"] if result["success"] else result["metadata"]["error_type"]) == came


async def test_an_ability_that_needs_a_person_asks_for_one() -> None:
    hooks = HookRegistry(find=list)
    action = {
        "action_id": "a1",
        "kind": "publish",
        "summary": "Publish it?",
        "preview": {},
        "apply_input": {"post": 7},
        "created_at": "2026-01-01T00:00:00Z",
    }
    hooks.register("ability_pre_execute_decision", lambda *_: action)
    abilities = Abilities(hooks)
    abilities.register(Ability("posts/find", lambda given: given, lambda given: True))
    host = Host(calling(search()))
    result = await host.mediated(tool_executor=AbilityExecutor(abilities), **tools(ability="posts/find"))
    assert result.status == "approval_required"
