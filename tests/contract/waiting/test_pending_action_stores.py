"""What every PendingActionStore keeps."""

import asyncio
import inspect
from typing import Any

import pytest

from wakeful.hosts.actions.pending_action import PendingAction

LATER = "2099-01-01T00:00:00.000Z"


def action(action_id: str = "a1", **more: Any) -> PendingAction:
    return PendingAction.normalise(
        {
            "action_id": action_id,
            "kind": "publish",
            "summary": "Publish post 7?",
            "preview": {"post": 7},
            "apply_input": {"post": 7, "draft": None},
            "created_at": "2026-01-01T00:00:00.000Z",
            **more,
        }
    )


def decided(before: PendingAction, status: str = "accepted", **more: Any) -> PendingAction:
    return before.model_copy(update={"status": status, "resolved_at": LATER, "resolver": "anna", **more})


async def done(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


@pytest.mark.spec("API-PND-07")
async def test_actions_are_kept_found_decided_expired_and_deleted_also_after_a_restart(open_actions: Any) -> None:
    kept = [
        action("a1"),
        action("a2", kind="delete", agent="support"),
        action("a3", expires_at="2030-01-01T00:00:00.000Z"),
        action("a4", preview=None, apply_input=None),
    ]
    async with open_actions() as store:
        for each in kept:
            await done(store.store(each))
        with pytest.raises(ValueError, match="'a1' already"):
            await done(store.store(action("a1")))
    async with open_actions() as store:  # pending actions survive a restart
        assert [await done(store.get(each.action_id)) for each in kept] == kept
        assert await done(store.get("nope")) is None
        assert [each.action_id for each in await done(store.list({}))] == ["a4", "a3", "a2", "a1"]
        assert [each.action_id for each in await done(store.list({"kind": "delete", "agent": "support"}))] == ["a2"]
        assert [each.action_id for each in await done(store.list({"limit": 2}))] == ["a4", "a3"]
        assert await done(store.summary({})) == {"pending": 4}
        accepted = decided(kept[0], resolution_result={"published": 7})
        assert await done(store.record_resolution(accepted)) is True
        assert await done(store.record_resolution(decided(kept[0], "rejected"))) is False
        assert await done(store.expire("2029-01-01T00:00:00.000Z")) == 0
        assert await done(store.expire("2031-01-01T00:00:00.000Z")) == 1
        assert await done(store.delete("a4", resolver="anna", now=LATER)) is True
        assert await done(store.delete("a4", resolver="anna", now=LATER)) is False
        assert await done(store.delete("nope", resolver="anna", now=LATER)) is False
    async with open_actions() as store:
        assert await done(store.get("a1")) == accepted
        assert (await done(store.get("a3"))).status == "expired"
        assert await done(store.summary({})) == {"accepted": 1, "pending": 1, "expired": 1, "deleted": 1}
        assert [each.action_id for each in await done(store.list({"status": "pending"}))] == ["a2"]


async def test_of_many_decisions_one_holds(open_actions: Any) -> None:
    async with open_actions() as store:
        await done(store.store(action()))
        ends = [decided(action(), "accepted" if n % 2 else "rejected") for n in range(6)]
        won = await asyncio.gather(*(done(store.record_resolution(end)) for end in ends))
        assert sum(won) == 1
        assert (await done(store.get("a1"))).status == ends[won.index(True)].status
