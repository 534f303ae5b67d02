"""Deciding about pending actions: once, by somebody, and what was accepted is carried out once."""

import asyncio
from typing import Any

import pytest

from contract.waiting.test_pending_action_stores import action
from kit.runs.engine_runs import calls
from wakeful import Agent, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.errors import InvalidValue
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.hosts import OwnPendingActionStore, PendingAction, PendingActionError, PendingActions
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.commands.turns import run_turn
from wakeful.service.hooks import HookRegistry
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock


class Publisher:
    """Carries out actions of the kind `publish`."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    async def __call__(self, accepted: PendingAction) -> dict[str, Any]:
        self.done.append(accepted.apply_input)
        return {"published": accepted.apply_input["post"]}


async def staged(around: Engine, **more: Any) -> PendingAction:
    kept = action(**more)
    await OwnPendingActionStore(around).store(kept)
    return kept


def hooks() -> HookRegistry:
    return HookRegistry(find=list)


@pytest.mark.spec("API-PND-05")
async def test_a_decision_is_accepted_or_rejected_and_is_applied_exactly_once_or_refused() -> None:
    around, publish = new_engine(MemoryStore()), Publisher()
    actions = PendingActions.on(around, {"publish": publish}, hooks())
    kept = await staged(around)
    # Of many who decide at once, one is heard.
    outcomes = await asyncio.gather(
        *(
            actions.decide("a1", "accepted", resolver=f"anna {n}", remember={"scope": "tool"}, note="fine")
            for n in range(5)
        )
    )
    (won,) = [outcome for outcome in outcomes if not outcome.duplicate]
    assert publish.done == [kept.apply_input] and won.result == {"published": 7}
    assert won.action.status == "accepted" and won.action.resolved_at
    assert won.action.resolution_metadata == {"remember": {"scope": "tool"}, "note": "fine"}
    assert all(outcome.action == won.action for outcome in outcomes)
    late = await actions.decide("a1", "rejected", resolver="bert")
    assert (late.duplicate, late.action.resolver, len(publish.done)) == (True, won.action.resolver, 1)
    # Rejected: nothing is carried out.
    await staged(around, action_id="a2")
    rejected = await actions.decide("a2", "rejected", resolver="anna", note="not on a Sunday")
    assert (rejected.action.status, rejected.action.resolution_error) == ("rejected", "not on a Sunday")
    assert (await actions.decide("a2", "accepted", resolver="bert")).duplicate and len(publish.done) == 1
    await what_cannot_be_decided_says_why_and_stays_pending()


async def what_cannot_be_decided_says_why_and_stays_pending() -> None:
    around, publish = new_engine(MemoryStore()), Publisher()
    await staged(around)
    store = OwnPendingActionStore(around)
    known = PendingActions.on(around, {"publish": publish}, hooks())
    unknown = PendingActions.on(around, {"delete": publish}, hooks())
    homeless = PendingActions({"publish": publish}, hooks=hooks())
    for actions, decision, resolver, remember, code in (
        (known, "maybe", "anna", None, "pending_action_invalid_decision"),
        (known, "expired", "anna", None, "pending_action_invalid_decision"),
        (known, "rejected", "anna", True, "pending_action_invalid_decision"),
        (known, "accepted", "anna", {"for": 3}, "pending_action_invalid_decision"),
        (known, "accepted", "anna", "yes", "pending_action_invalid_decision"),
        (homeless, "accepted", "anna", None, "pending_action_no_store"),
        (unknown, "accepted", "anna", None, "pending_action_no_resolver"),
        (known, "accepted", " ", None, "pending_action_missing_resolver"),
        (known, "rejected", None, None, "pending_action_missing_resolver"),
    ):
        with pytest.raises(PendingActionError, match=rf"^{code}: ") as refused:
            await actions.decide("a1", decision, resolver=resolver, remember=remember)  # type: ignore[arg-type]
        assert refused.value.code == code
        kept = await store.get("a1")
        assert kept is not None and kept.is_pending and publish.done == []
    with pytest.raises(PendingActionError, match="there is no action 'a9'"):
        await known.decide("a9", "accepted", resolver="anna")
    # Nobody carries it out, and it can be rejected all the same.
    assert (await unknown.decide("a1", "rejected", resolver="anna")).action.status == "rejected"


async def test_a_store_that_a_hook_names_comes_before_the_default() -> None:
    around, theirs, registry = new_engine(MemoryStore()), new_engine(MemoryStore()), hooks()
    await staged(theirs)
    registry.register("pending_action_store", lambda found: OwnPendingActionStore(theirs))
    done = await PendingActions.on(around, hooks=registry).decide("a1", "rejected", resolver="anna")
    assert done.action.status == "rejected"


async def test_what_is_past_its_time_is_not_accepted_any_more() -> None:
    clock, publish = FixedClock(), Publisher()
    around = new_engine(MemoryStore(), clock=clock)
    await staged(around, expires_at="2000-01-01T00:00:00.000Z")
    late = await PendingActions.on(around, {"publish": publish}, hooks()).decide("a1", "accepted", resolver="anna")
    assert (late.duplicate, late.action.status, publish.done) == (True, "expired", [])


async def test_what_fails_while_it_is_carried_out_is_raised_and_not_done_again() -> None:
    around, tried = new_engine(MemoryStore()), []

    def fails(accepted: PendingAction) -> None:
        tried.append(accepted.action_id)
        raise OSError("the site is down")

    actions = PendingActions.on(around, {"publish": fails}, hooks())
    await staged(around)
    with pytest.raises(OSError, match="the site is down"):
        await actions.decide("a1", "accepted", resolver="anna")
    again = await actions.decide("a1", "accepted", resolver="anna")
    assert (again.duplicate, again.action.status, tried) == (True, "accepted", ["a1"])


@pytest.mark.parametrize("remember", [None, True, {"scope": "tool", "for_seconds": 60}])
async def test_a_call_of_a_turn_is_carried_out_by_its_turn_and_may_be_remembered(remember: Any) -> None:
    ran: list[int] = []

    @tool(approval=True)
    def publish(post: int) -> str:
        ran.append(post)
        return "published"

    round_ = calls(("publish", {"post": 7}))
    who = Agent("support", ScriptedModel([round_, round_, "done"]), tools=[publish])
    around = new_engine(MemoryStore())
    waiting = await run_turn(around, RunRequest(who, "go", key="k"))
    actions = PendingActions.on(around, hooks=hooks())
    outcome = await actions.decide(waiting.approvals[0].id, "accepted", resolver="anna", remember=remember)
    assert (outcome.action.status, outcome.action.resolver, ran) == ("accepted", "anna", [])
    result = await run_turn(around, RunRequest(who, "go", key="k"))
    assert (result.status, ran) == (("completed", [7, 7]) if remember else ("approval_required", [7]))


async def test_a_scope_that_is_none_decides_nothing() -> None:
    @tool(approval=True)
    def publish(post: int) -> str:
        raise AssertionError

    who = Agent("support", ScriptedModel([calls(("publish", {"post": 7})), "done"]), tools=[publish])
    around = new_engine(MemoryStore())
    waiting = await run_turn(around, RunRequest(who, "go", key="k"))
    actions = PendingActions.on(around, hooks=hooks())
    for wrong, error in (({"scope": "world"}, PendingActionError), ({"for_seconds": -1}, InvalidValue)):
        with pytest.raises(error):
            await actions.decide(waiting.approvals[0].id, "accepted", resolver="anna", remember=wrong)
    assert (await OwnPendingActionStore(around).get(waiting.approvals[0].id)).is_pending  # type: ignore[union-attr]
