"""What the policy denies is brought before nobody, and no key of the runtime is in what foreign code raises."""

from typing import Any

import pytest

from kit.hosts.loop_host import Host, calling, search
from kit.runs.engine_runs import calls, of_kind
from wakeful import Agent, HookInput, HookVerdict, RunResult, hook, run, tool
from wakeful.contracts.events import (
    HookStarted,
    PermissionEvaluated,
    ToolCatalogResolved,
    ToolFailed,
    ToolMediationFailed,
)
from wakeful.contracts.policies import GatePolicy, Rule
from wakeful.decisions.policy.permissions import default_policy
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.tools.source import Offer, ToolSource
from wakeful.tools.tool import DeclaredTool


def policy(*rules: Rule) -> GatePolicy:
    return GatePolicy(tools=default_policy("library"), rules=rules)


async def identical(store: MemoryStore, result: RunResult[Any]) -> bool:
    row = await store.turn(result.turn_id)
    assert row is not None
    report = await replay_turn(store, row)
    assert report.divergence is None, report.divergence
    return report.identical


@pytest.mark.parametrize("denied", [True, False])
async def test_hooks_do_not_hear_of_a_call_that_the_policy_denies(denied: bool) -> None:
    heard: list[str] = []
    paid: list[str] = []

    @tool(effect="keyed")
    def refund(order: str) -> str:
        """Give money back."""
        paid.append(order)
        return "paid"

    def listens(call: HookInput) -> None:
        heard.append(call.tool)

    @hook("permission_request")
    def would_be_asked(call: HookInput) -> None:
        heard.append(f"asked about {call.tool}")

    store = MemoryStore()
    model = scripted([calls(("refund", {"order": "A"})), "done"])
    rules = (Rule(match="refund", arguments={"order": "A"}, decision="deny", reason="not A"),) if denied else ()
    agent = Agent("support", model, tools=[refund], hooks=[listens, would_be_asked], policy=policy(*rules))
    result = await run(agent, "go", store=store)
    assert result.output == "done" and await identical(store, result)
    assert heard == ([] if denied else ["refund"]) and bool(of_kind(result, HookStarted)) is not denied
    assert paid == ([] if denied else ["A"])
    (verdict,) = of_kind(result, PermissionEvaluated)
    assert verdict.decision == ("deny" if denied else "allow")


async def test_no_hook_rewrites_a_call_that_the_policy_denies_into_one_that_it_does_not() -> None:
    paid: list[str] = []

    @tool(effect="keyed")
    def refund(order: str) -> str:
        """Give money back."""
        paid.append(order)
        return "paid"

    def writes_another(call: HookInput) -> HookVerdict:
        return HookVerdict("continue", arguments={"order": "B"})

    rule = Rule(match="refund", arguments={"order": "A"}, decision="deny", reason="not A")
    for order, result_of in (("A", []), ("C", ["B"])):
        model = scripted([calls(("refund", {"order": order})), "done"])
        agent = Agent("support", model, tools=[refund], hooks=[writes_another], policy=policy(rule))
        await run(agent, "go", store=MemoryStore())
        assert paid == result_of


class Leaking(DeclaredTool):
    """A tool that cannot say what a call would do, and says why."""

    def __init__(self, inner: Any, where: str, key: str) -> None:
        self._declaration = inner.declaration
        self._where, self._key = where, key

    def traits(self, arguments: dict[str, Any]) -> Any:
        self._raise("traits")
        return self._declaration

    def confinement(self, arguments: dict[str, Any]) -> None:
        self._raise("confinement")

    def working_directory(self, arguments: dict[str, Any]) -> None:
        self._raise("directory")

    def _raise(self, where: str) -> None:
        if where == self._where:
            raise RuntimeError(f"refused with {self._key}")


@pytest.mark.parametrize("where", ["traits", "confinement", "directory"])
async def test_what_a_tool_raises_about_a_call_holds_no_key_of_the_runtime(where: str) -> None:
    @tool(effect="keyed")
    def refund(order: str) -> str:
        """Give money back."""
        raise AssertionError

    store = MemoryStore()
    key = store.secret.hex()
    model = scripted([calls(("refund", {"order": "A"})), "done"])
    result = await run(Agent("support", model, tools=[Leaking(refund, where, key)]), "go", store=store)
    (failed,) = of_kind(result, ToolFailed)
    assert failed.status == "invalid" and failed.message.startswith("refund could not say what this call would do")
    assert "refused with" in failed.message
    assert key not in "".join(entry.fact.event.model_dump_json() for entry in result.facts())


@pytest.mark.parametrize("how", ["raises", "rejects"])
async def test_what_a_mediator_says_holds_no_key_of_the_runtime(how: str) -> None:
    host = Host(calling(search("a", id="c1")), {"content": "done"})
    key = host.store.secret.hex()

    def mediator(context: dict[str, Any]) -> Any:
        if how == "raises":
            raise RuntimeError(f"refused with {key}")
        return {"action": "reject", "error": f"refused with {key}"}

    await host.mediated(pre_tool_mediator=mediator)
    facts = await host.log()
    told = [entry.fact.event for entry in facts if isinstance(entry.fact.event, ToolMediationFailed | ToolFailed)]
    assert told and "refused with" in "".join(event.model_dump_json() for event in told)
    assert key not in "".join(entry.fact.event.model_dump_json() for entry in facts)


class Gone(ToolSource):
    """A source that breaks, with a key in its hand."""

    name = "gone"

    def __init__(self, key: str) -> None:
        self._key = key

    async def offer(self) -> Offer:
        raise RuntimeError(f"401 for {self._key}")


async def test_what_a_source_raises_holds_no_key_of_the_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-ant-0123456789abcdefghijklmnop"
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    store = MemoryStore()
    result = await run(Agent("support", scripted(["done"]), tools=[Gone(key)]), "go", store=store)
    (resolved,) = of_kind(result, ToolCatalogResolved)
    blob = await store.get_blob(resolved.catalog_ref.digest)
    assert b"401 for" in blob and key.encode() not in blob
