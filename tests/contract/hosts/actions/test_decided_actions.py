"""Deciding what waits for a person, in a host of its own: once, and never by halves."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from wakeful.hosts import (
    Ability,
    ExecutionPrincipal,
    HookRegistry,
    PendingAction,
    PendingActionError,
    PendingActions,
    open_engine,
    open_host,
)

ANN = ExecutionPrincipal.user_session("ann", "support")
WANTED = {
    "action_id": "a1",
    "kind": "publish",
    "summary": "Publish post 7.",
    "preview": {"title": "Gold"},
    "apply_input": {"post": 7},
    "created_at": "2026-01-01T00:00:00.000Z",
}


async def staged(place: Path) -> dict[str, Any]:
    """An ability whose call waits for a person, through the host's own door."""
    hooks = HookRegistry(find=list)
    hooks.register("ability_pre_execute_decision", lambda value, *_: WANTED)
    async with open_host(place, principal=ANN, hooks=hooks) as host:
        host.abilities.register(Ability("shop/publish", lambda given: "done at once", lambda given: True))
        answer: dict[str, Any] = await host.abilities.call("shop/publish", {"post": 7})
    return answer


@pytest.mark.spec("API-PND-05")
async def test_an_action_that_an_ability_staged_is_decided_once_and_carried_out_once(tmp_path: Path) -> None:
    place, done = tmp_path / "shop.db", []

    async def publish(action: PendingAction) -> str:
        done.append(action.apply_input)
        return "published"

    answer = await staged(place)
    assert answer["type"] == "approval_required" and answer["metadata"]["staged"] is True
    async with open_engine(place) as engine:  # as after a restart
        hooks = HookRegistry(find=list)
        actions = PendingActions.on(engine, {"publish": publish}, hooks)
        for decision, resolver, code in (
            ("maybe", "ann", "pending_action_invalid_decision"),
            ("accepted", " ", "pending_action_missing_resolver"),
        ):
            with pytest.raises(PendingActionError) as refused:
                await actions.decide("a1", decision, resolver=resolver)
            assert (refused.value.code, done) == (code, [])
        for homeless, code in (
            (PendingActions({"publish": publish}, hooks=hooks), "pending_action_no_store"),
            (PendingActions.on(engine, {}, hooks), "pending_action_no_resolver"),
        ):
            with pytest.raises(PendingActionError) as refused:
                await homeless.decide("a1", "accepted", resolver="ann")
            assert (refused.value.code, done) == (code, [])
        outcomes = await asyncio.gather(
            *(actions.decide("a1", "accepted", resolver=f"ann {n}", remember=True) for n in range(4))
        )
        assert [outcome.duplicate for outcome in outcomes].count(False) == 1
        assert done == [{"post": 7}]
        late = await actions.decide("a1", "rejected", resolver="bert")
        assert (late.duplicate, late.action.status) == (True, "accepted")
        assert late.action.resolution_metadata["remember"] is True
