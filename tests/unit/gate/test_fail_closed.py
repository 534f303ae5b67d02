"""What the gate does not know, cannot ask or cannot find is denied, asked anew, or run alone: never let through."""

from typing import Any

import pytest
from pydantic import ValidationError

from kit.hosts.loop_host import SEARCH, Host, calling, search
from kit.runs.asked_runs import REFUND, World, again, agent, asked, say
from kit.runs.engine_runs import of_kind
from wakeful import Approve, HookInput, HookVerdict, hook, run, tool
from wakeful.contracts.errors import ApprovalNotFound, InvalidConfig
from wakeful.contracts.events import PermissionEvaluated, ToolFailed
from wakeful.contracts.policies import GatePolicy, Rule
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.policy.catalog import entry_of
from wakeful.decisions.policy.permissions import default_policy
from wakeful.gate.verdicts import NOTHING_AGAINST
from wakeful.store.memory import MemoryStore
from wakeful.tools.client import ClientTool

DONE = {"content": "done"}


def kinds(result: Any) -> list[Any]:
    return [entry["result"]["metadata"].get("error_type") for entry in result.tool_execution_results]


async def unknown_policies_deny() -> None:
    # Of an action: whoever says something that is no policy has forbidden it.
    for said, kind in (("direct", None), ("sometimes", "action_forbidden")):
        host = Host(calling(search("a")), DONE)
        host.hooks.register("tool_action_policy", lambda policy, *_, said=said: said)
        result = await host.mediated(tool_declarations={"ability/search": SEARCH})
        assert (kinds(result), len(host.calls)) == ([kind], 0 if kind else 1)
    # Of what is shown: an unknown mode hides.
    for mode, kind in (("deny", None), ("perhaps", "tool_not_found")):
        host = Host(calling(search("a")), DONE)
        result = await host.mediated(
            tool_declarations={"ability/search": SEARCH}, context={"tool_policy": {"mode": mode}}
        )
        assert (kinds(result), len(host.calls)) == ([kind], 0 if kind else 1)
    # Of an owner: a decision, a class or a context that there is not is refused where it is written.
    with pytest.raises(ValidationError):
        Rule(match="refund", decision="perhaps")  # type: ignore[arg-type]
    with pytest.raises(InvalidConfig):
        tool(lambda: "x", name="x", permission_class="root")  # type: ignore[call-overload]
    with pytest.raises(InvalidConfig):
        default_policy("somewhere")  # type: ignore[arg-type]


async def a_hook_error_denies(point: Any) -> None:
    world, broken = World(), True

    def fails(call: Any) -> HookVerdict | None:
        if broken:
            raise RuntimeError("no database")
        return None

    if point == "predicate":
        support = agent([world.tool(approval=lambda call: fails(call) is not None)], (REFUND,))
    else:
        asks = point == "permission_request"
        support = agent([world.tool(approval=asks)], (REFUND,), hooks=[hook(point)(fails)])
    result = await run(support, "go", store=MemoryStore())
    (failed,) = of_kind(result, ToolFailed)
    assert (failed.status, world.done) == ("denied", []) and "no database" in failed.message
    # The same hook when it does not raise.
    broken = False
    fine = await run(support, "go", store=MemoryStore())
    assert (fine.status, len(world.done)) == (("approval_required", 0) if asks_a_person(point) else ("completed", 1))


def asks_a_person(point: str) -> bool:
    return point == "permission_request"


async def a_permission_that_is_not_found_lets_nothing_through() -> None:
    world, store = World(), MemoryStore()
    # A standing answer about a call that is not this one.
    stale = Rule(match="refund", decision="allow", call_hash="0" * 64, id="stale")
    policy = GatePolicy(tools=default_policy("library"), rules=(stale,))
    waiting = await asked(agent([world.tool(approval=True)], (REFUND,), policy=policy), store)
    # A record that is not there.
    with pytest.raises(ApprovalNotFound):
        await say(store, "appr_of_nobody", Approve())
    # An approval of what is not there any more: the tool was declared otherwise when it was given.
    await say(store, waiting.approvals[0], Approve())
    other = agent([world.tool(approval=True, timeout=5.0)], (REFUND,), policy=policy)
    anew = await again(other, store)
    assert (anew.status, world.done) == ("approval_required", [])
    assert anew.approvals[0].id != waiting.approvals[0].id
    # With a record that is found and fits, it runs.
    await say(store, anew.approvals[0], Approve())
    assert ((await again(other, store)).status, len(world.done)) == ("completed", 1)


def an_unknown_or_missing_flag_serialises() -> None:
    silent = ToolDeclaration(name="x", input_schema={"type": "object"})
    assert silent.serial and silent.permission == "external_write"
    assert not ToolDeclaration(name="x", input_schema={"type": "object"}, effect="pure").serial
    odd = ToolDeclaration(name="x", input_schema={}, capabilities=("teleport", "write"))
    shown = entry_of(odd, NOTHING_AGAINST)
    assert shown.capabilities == ("custom:teleport", "write")
    assert (shown.is_read_only, shown.is_concurrency_safe, shown.is_destructive) == (False, False, True)
    assert ClientTool(ToolDeclaration(name="client/x", input_schema={}, effect="pure")).declaration.serial
    with pytest.raises(ValidationError):
        ToolDeclaration(name="x", input_schema={}, is_quite_safe=True)  # type: ignore[call-arg]


@pytest.mark.spec("STD-INV-03")
async def test_what_is_unknown_fails_closed() -> None:
    await unknown_policies_deny()
    for point in ("pre_tool_use", "permission_request", "predicate"):
        await a_hook_error_denies(point)
    await a_permission_that_is_not_found_lets_nothing_through()
    an_unknown_or_missing_flag_serialises()


async def test_the_verdict_says_that_it_was_the_hook() -> None:
    def fails(call: HookInput) -> None:
        raise RuntimeError("no database")

    result = await run(agent([World().tool()], (REFUND,), hooks=[fails]), "go", store=MemoryStore())
    (verdict,) = of_kind(result, PermissionEvaluated)
    assert (verdict.decision, verdict.decision_source) == ("deny", "hook")


@pytest.mark.parametrize("answer", [None, 0, 5, {}, object()], ids=["none", "zero", "five", "dict", "object"])
async def test_a_predicate_that_answers_neither_yes_nor_no_denies(answer: Any) -> None:
    """A forgotten `return` is no permission."""
    world = World()
    result = await run(agent([world.tool(approval=lambda call: answer)], (REFUND,)), "go", store=MemoryStore())
    (failed,) = of_kind(result, ToolFailed)
    assert (failed.status, world.done) == ("denied", []) and "not True, False or a reason" in failed.message
    # The same call when the predicate says no.
    fine = await run(agent([world.tool(approval=lambda call: False)], (REFUND,)), "go", store=MemoryStore())
    assert (fine.status, len(world.done)) == ("completed", 1)
