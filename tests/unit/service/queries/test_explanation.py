"""Every refusal has its reason in the log: also that of a tool which the turn was never offered."""

from typing import Any

import pytest

from kit.runs.engine_runs import calls, of_kind
from wakeful import Agent, RunResult, run, tool
from wakeful.contracts.errors import CallNotFound
from wakeful.contracts.events import PermissionEvaluated, ToolFailed
from wakeful.contracts.policies import GatePolicy, Rule, ToolPolicy
from wakeful.decisions.policy.permissions import default_policy
from wakeful.service.queries.explanation import why_call
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted

ALLOWS = Rule(match="look", decision="allow")
NEVER = Rule(match="refund", decision="deny", reason="refunds are for people")


@tool(effect="pure")
def look() -> str:
    """Look."""
    return "seen"


@tool(effect="keyed")
def refund(order: str) -> str:
    """Give money back."""
    raise AssertionError("it may not be called")


async def refused(store: MemoryStore, policy: GatePolicy) -> RunResult[Any]:
    model = scripted([calls(("refund", {"order": "A"})), "done"])
    result = await run(Agent("support", model, tools=[refund], policy=policy), "go", store=store)
    assert result.output == "done"
    (failed,) = of_kind(result, ToolFailed)
    assert (failed.tool_error.kind, "people" in failed.item.text) == ("tool_not_found", False)
    row = await store.turn(result.turn_id)
    assert row is not None
    replayed = await replay_turn(store, row)
    assert replayed.identical, replayed.divergence
    return result


async def test_a_rule_that_forbids_a_tool_altogether_is_on_record_with_every_call_of_it() -> None:
    store = MemoryStore()
    result = await refused(store, GatePolicy(tools=default_policy("library"), rules=(ALLOWS, NEVER)))
    (verdict,) = of_kind(result, PermissionEvaluated)
    assert (verdict.decision, verdict.layer, verdict.rule_refs) == ("deny", "rules", ("owner:2",))
    told = await why_call(store, "call_1_1")
    assert (told.verdict, told.outcome) == ("deny", "invalid")
    assert told.steps[0].words == "deny: refunds are for people"
    assert [rule.text for rule in told.steps[0].rules] == ["deny refund"]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (GatePolicy(tools=ToolPolicy(classes=frozenset({"safe"}))), "class"),
        (
            GatePolicy(tools=default_policy("library"), rules=(NEVER.model_copy(update={"expires": 9_999_999_999.0}),)),
            "refunds are for people",
        ),
    ],
)
async def test_what_a_turn_was_not_offered_is_explained_by_its_catalogue(policy: GatePolicy, words: str) -> None:
    store = MemoryStore()
    result = await refused(store, policy)
    assert of_kind(result, PermissionEvaluated) == []
    told = await why_call(store, "call_1_1")
    assert told.verdict == "deny"
    assert (told.steps[0].kind, told.steps[0].by) == ("verdict", "catalog") and words in told.steps[0].words


async def test_a_tool_that_nobody_knows_has_no_verdict() -> None:
    store = MemoryStore()
    flagged = Rule(match="*", capabilities=("browser",), decision="deny")
    policy = GatePolicy(tools=default_policy("library"), rules=(flagged,))
    await run(Agent("support", scripted([calls("nothing"), "done"]), policy=policy), "go", store=store)
    assert (await why_call(store, "call_1_1")).verdict == "none"


async def test_a_call_that_an_old_turn_has_too_is_never_taken_for_the_newest() -> None:
    """Also where calls of many turns in between begin like it."""
    store = MemoryStore()

    async def called(call_id: str) -> RunResult[Any]:
        steps = [{"calls": [{"name": "look", "arguments": {}, "id": call_id}]}, "done"]
        return await run(Agent("support", scripted(steps), tools=[look]), "go", store=store)

    first = await called("call_abcd")
    for number in range(6):
        await called(f"call_abcd{number}")
    last = await called("call_abcd")
    with pytest.raises(CallNotFound, match="'call_abcd' matches 2 calls") as vague:
        await why_call(store, "call_abcd")
    assert all(f"{each.turn_id}/call_abcd" in vague.value.hint for each in (first, last))
    assert (await why_call(store, f"{first.turn_id}/call_abcd")).turn_id == first.turn_id
