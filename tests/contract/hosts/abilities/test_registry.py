"""Abilities: one way to call them, whoever wrote them."""

from typing import Any

import pytest

from wakeful.contracts.errors import InvalidConfig
from wakeful.hosts import Abilities, Ability, AbilityRefused, PendingAction
from wakeful.service.hooks import HookRegistry
from wakeful.testing.waiting_stores import MemoryPendingActionStore

ACTION: dict[str, Any] = {
    "action_id": "a1",
    "kind": "publish",
    "summary": "Publish 'Hello'",
    "preview": {"title": "Hello"},
    "apply_input": {"post": 7},
    "created_at": "2026-01-01T00:00:00Z",
}
SCHEMA = {"type": "object", "properties": {"post": {"type": "integer"}}, "required": ["post"]}
DECISION = "ability_pre_execute_decision"


class Host:
    """Abilities with one of them registered, and everything that happened, in order."""

    def __init__(self, permitted: Any = True, store: Any = None) -> None:
        self.steps: list[str] = []
        self.heard: list[tuple[Any, ...]] = []
        self.permitted = permitted
        self.hooks = HookRegistry(find=list)
        self.abilities = Abilities(self.hooks, store=store)
        self.abilities.register(Ability("posts/publish", self.publish, self.may, input_schema=SCHEMA))
        self.hooks.register("ability_invoked", lambda *given: self.hear("invoked", given))
        self.hooks.register("ability_executed", lambda *given: self.hear("executed", given))

    def hear(self, step: str, given: tuple[Any, ...]) -> None:
        self.steps.append(step)
        self.heard.append(given)

    async def publish(self, given: Any) -> Any:
        self.steps.append("execute")
        return {"published": given["post"]}

    def may(self, given: Any) -> Any:
        self.steps.append("permission")
        if isinstance(self.permitted, Exception):
            raise self.permitted
        return self.permitted

    def decide(self, decision: Any, priority: int = 10) -> None:
        def gate(before: Any, name: str, given: Any, ability: Ability) -> Any:
            self.steps.append("gate")
            if isinstance(decision, Exception):
                raise decision
            return decision

        self.hooks.register(DECISION, gate, priority)

    async def call(self, given: Any = None) -> Any:
        return await self.abilities.call("posts/publish", {"post": 7} if given is None else given)

    async def refused(self, given: Any = None) -> str:
        with pytest.raises(AbilityRefused) as caught:
            await self.call(given)
        assert "execute" not in self.steps
        return caught.value.code


@pytest.mark.spec("API-ABL-01", "API-ABL-02")
async def test_every_call_goes_through_the_same_steps_and_observers_change_nothing() -> None:
    host = Host()
    host.decide(None)

    def meddle(name: str, result: dict[str, Any], given: dict[str, Any], ability: Ability) -> str:
        result["published"], given["post"] = 0, 0
        return "another result"

    host.hooks.register("ability_executed", meddle, priority=1)
    given = {"post": 7}
    assert await host.call(given) == {"published": 7}
    assert given == {"post": 7}
    assert host.steps == ["invoked", "gate", "permission", "execute", "executed"]
    assert host.heard[1][:3] == ("posts/publish", {"published": 7}, {"post": 7})

    def broken(*_: Any) -> None:
        raise ValueError("mine")

    host.hooks.register("ability_executed", broken, priority=0)
    assert await host.call() == {"published": 7}
    wrong = Host()
    assert await wrong.refused({"post": "seven"}) == "ability_invalid_input"
    assert wrong.steps == ["invoked"]


@pytest.mark.spec("API-ABL-03")
async def test_invoked_is_told_for_refused_calls_too_with_the_raw_input() -> None:
    for permitted, given, code in (
        (True, {"post": "seven"}, "ability_invalid_input"),
        (False, {"post": 7}, "ability_permission_denied"),
    ):
        host = Host(permitted)
        assert await host.refused(given) == code
        assert host.heard[0][:2] == ("posts/publish", given)
    host = Host()
    host.decide(ValueError("mine"))
    assert await host.refused() == "ability_gate_failed"
    assert host.steps[0] == "invoked"


@pytest.mark.parametrize("permitted", [False, None, 1, "yes", ValueError("mine")])
async def test_only_a_plain_yes_permits(permitted: Any) -> None:
    assert await Host(permitted).refused() == "ability_permission_denied"


@pytest.mark.spec("API-ABL-04")
@pytest.mark.parametrize("decision", [ACTION, PendingAction.normalise(ACTION)], ids=["dict", "action"])
async def test_a_decision_is_staged_and_stands_in_the_abilitys_place(decision: Any) -> None:
    store, own = MemoryPendingActionStore(), MemoryPendingActionStore()
    host = Host(store=own)
    host.decide(decision)
    remove = host.hooks.register("pending_action_store", lambda found: store)
    message = await host.call()
    assert (message["type"], message["role"], message["content"]) == ("approval_required", "tool", "Publish 'Hello'")
    assert message["payload"]["apply_input"] == {"post": 7}
    assert message["metadata"] == {"ability_name": "posts/publish", "staged": True}
    assert (store.get("a1"), own.get("a1")) == (PendingAction.normalise(ACTION), None)
    assert host.steps == ["invoked", "gate"]
    remove()
    await host.call()
    assert own.get("a1") == PendingAction.normalise(ACTION)
    free = Host()
    free.decide(None)
    assert await free.call() == {"published": 7}


class Broken(MemoryPendingActionStore):
    """Cannot keep anything."""

    def store(self, action: PendingAction) -> None:
        raise OSError("disk full")


@pytest.mark.spec("API-ABL-06")
async def test_an_action_that_cannot_be_staged_still_keeps_the_ability_from_running() -> None:
    def unreachable(found: Any) -> Any:
        raise OSError("no store")

    for store, hook in ((Broken(), None), (None, None), (MemoryPendingActionStore(), unreachable)):
        host = Host(store=store)
        host.decide(ACTION)
        if hook is not None:
            host.hooks.register("pending_action_store", hook)
        message = await host.call()
        assert (message["type"], message["metadata"]["staged"]) == ("approval_required", False)
        assert "execute" not in host.steps


@pytest.mark.spec("API-ABL-07")
@pytest.mark.parametrize(
    "decision",
    [
        ValueError("mine"),
        "deny",
        True,
        {"kind": "publish"},
        {**ACTION, "status": "accepted", "resolved_at": "x", "resolver": "me"},
        {**ACTION, "grants": "all"},
        {**ACTION, "instruction": 3},
    ],
)
async def test_a_gate_that_fails_or_answers_nonsense_refuses_the_call(decision: Any) -> None:
    host = Host(store=MemoryPendingActionStore())
    host.decide(decision)
    assert await host.refused() == "ability_gate_failed"


@pytest.mark.parametrize("priority", [1, 20])
async def test_inversion_without_the_decision_the_same_call_runs(priority: int) -> None:
    """Taken out: with no gate registered nothing stands between the call and the ability."""
    assert await Host().call() == {"published": 7}
    gated = Host(store=MemoryPendingActionStore())
    gated.decide(ACTION)
    gated.decide(None, priority=priority)  # another hook that has nothing to say does not undo the decision
    assert (await gated.call())["type"] == "approval_required"
    assert "execute" not in gated.steps


@pytest.mark.spec("API-ABL-08")
async def test_what_an_earlier_handler_answered_is_returned_untouched() -> None:
    host = Host(store=MemoryPendingActionStore())
    host.decide(ACTION)
    answer = {"from": "cache"}
    host.abilities.before_execution(lambda value, name, given, ability: None)
    host.abilities.before_execution(lambda value, name, given, ability: answer)
    host.abilities.before_execution(lambda value, name, given, ability: "too late")
    assert await host.call() is answer
    assert host.steps == ["invoked"]


async def test_a_handler_before_the_gate_that_raises_refuses_the_call() -> None:
    host = Host()

    def broken(*_: Any) -> Any:
        raise ValueError("mine")

    host.abilities.before_execution(broken)
    assert await host.refused() == "ability_gate_failed"


@pytest.mark.spec("API-ABL-09")
async def test_instruction_and_grants_go_into_the_envelope_and_not_into_the_action() -> None:
    store = MemoryPendingActionStore()
    host = Host(store=store)
    host.decide({**ACTION, "instruction": "Look twice.", "grants": [{"scope": "once"}]})
    payload = (await host.call())["payload"]
    assert (payload["instruction"], payload["grants"]) == ("Look twice.", [{"scope": "once"}])
    assert store.get("a1") == PendingAction.normalise(ACTION)


async def test_names_are_asked_for_and_unique() -> None:
    host = Host()
    for name, code in (("", "ability_name_missing"), ("  ", "ability_name_missing"), ("nope", "ability_not_found")):
        with pytest.raises(AbilityRefused) as caught:
            await host.abilities.call(name)
        assert caught.value.code == code
    with pytest.raises(InvalidConfig, match="registered already"):
        host.abilities.register(Ability("posts/publish", host.publish, host.may))
    with pytest.raises(InvalidConfig, match="needs a name"):
        host.abilities.register(Ability(" ", host.publish, host.may))
    assert host.abilities.names == ("posts/publish",)


async def test_an_input_cannot_be_changed_by_those_who_only_judge_it() -> None:
    host = Host()

    def judge(before: Any, name: str, given: dict[str, Any], ability: Ability) -> None:
        given["post"] = 8

    host.hooks.register(DECISION, judge)
    assert await host.call() == {"published": 7}


def test_actions_are_listed_counted_and_ended_once() -> None:
    store = MemoryPendingActionStore()
    first = PendingAction.normalise({**ACTION, "expires_at": "2026-01-02T00:00:00Z"})
    second = PendingAction.normalise({**ACTION, "action_id": "a2", "kind": "delete"})
    store.store(first)
    store.store(second)
    assert store.list({}) == [second, first]
    assert store.list({"kind": "publish", "limit": 5}) == [first]
    accepted = second.model_copy(update={"status": "accepted", "resolved_at": "x", "resolver": "me"})
    assert store.record_resolution(accepted) is True
    assert store.record_resolution(accepted.model_copy(update={"status": "rejected"})) is False
    assert store.get("a2") == accepted
    assert (store.expire("2026-01-01T00:00:00Z"), store.expire("2026-01-03T00:00:00Z")) == (0, 1)
    assert store.delete("a1", resolver="me", now="x") is False
    assert store.summary({}) == {"expired": 1, "accepted": 1}
