"""A mediator that has somebody outside carry out a call: the run pauses on a request, as for a client's own tool."""

from typing import Any

import pytest

from kit.hosts.loop_host import SEARCH, Host, calling, search
from kit.runs.engine_runs import calls
from wakeful import Agent, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.approvals import Approve
from wakeful.contracts.events.tools import Elsewhere, Opinion
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.contracts.transcript import check_pairing
from wakeful.engine.run_request import HostTerms, RunRequest
from wakeful.gate.call_at_gate import CallAtGate, Consultation
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.client_tools.lifecycle import RuntimeToolLifecycle
from wakeful.service.client_tools.store import OwnRequestStore
from wakeful.service.commands.approvals import decide
from wakeful.service.commands.turns import run_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing.waiting_stores import MemoryRuntimeToolStore

DONE = {"content": "done"}
BOUND: dict[str, Any] = {
    **SEARCH,
    "parameters": {
        "type": "object",
        "properties": {"q": {"type": "string"}, "user": {"type": "string"}},
        "required": ["q", "user"],
    },
    "client_context_bindings": {"user": "user_id"},
}


async def replayed(host: Host) -> None:
    (row,) = await host.store.turns()
    report = await replay_turn(host.store, row)
    assert report.divergence is None, report.divergence


@pytest.mark.spec("API-PRE-08")
@pytest.mark.parametrize("as_hook", [False, True])
async def test_pending_pauses_the_run_as_a_pending_runtime_tool(as_hook: bool) -> None:
    said = {"action": "pending", "metadata": {"queue": "slow"}, "runtime": {"environment": "runtime_local"}}
    host, store = Host(calling(search("a", id="c1"), content="Wait.")), MemoryRuntimeToolStore()
    options: dict[str, Any] = {"runtime_tool_request_store": store, "run_id": "r1"}
    if as_hook:
        host.hooks.register("pre_tool_call_decision", lambda decision, context: said)
    else:
        options["pre_tool_mediator"] = lambda context: said
    result = await host.mediated(**options)
    assert (result.status, result.completed, host.calls) == ("runtime_tool_pending", False, [])
    pending = result.runtime_tool_pending
    assert pending is not None and RuntimeToolRequest.normalise(pending).model_dump(mode="json") == pending
    assert (pending["tool_name"], pending["tool_call_id"], pending["run_id"]) == ("ability/search", "c1", "r1")
    assert pending["parameters"] == {"q": "a"} and pending["timeout_at"]
    # What the declaration says about the tool, and over it what the mediator said about this call.
    assert pending["runtime"] == {"completion_signal": "progress", "environment": "runtime_local"}
    assert pending["metadata"] == {"turn_count": 1, "queue": "slow"}
    assert host.payloads("runtime_tool_pending") == [
        {"turn": 1, "tool_name": "ability/search", "tool_call_id": "c1", "request_id": pending["request_id"]}
    ]
    check_pairing(result.messages, pending=["c1"])
    await replayed(host)
    # It has the life of every such request: it is kept, and answered once.
    kept = await store.get(pending["request_id"])
    assert kept is not None and kept.model_dump(mode="json") == pending
    lifecycle = RuntimeToolLifecycle(host.hooks)
    answer = {"request_id": pending["request_id"], "result": {"n": 3}}
    done = await lifecycle.submit_result(store, answer)
    assert done["duplicate"] is False and (await lifecycle.submit_result(store, answer))["duplicate"] is True
    assert done["tool_result_message"]["metadata"]["tool_call_id"] == "c1"
    await the_mediators_own_request_says_what_is_run_until_when_and_what_it_is_called()


async def test_the_call_is_executed_here_when_the_mediator_says_nothing_of_the_kind() -> None:
    """The inversion: it is `pending` that keeps the executor from it."""
    host = Host(calling(search("a", id="c1")), DONE)
    result = await host.mediated(pre_tool_mediator=lambda context: {"action": "proceed"})
    assert result.completed and len(host.calls) == 1


async def the_mediators_own_request_says_what_is_run_until_when_and_what_it_is_called() -> None:
    request = {
        "request_id": "req-7",
        "parameters": {"q": "b", "api_key": "s3cr3t"},
        "timeout_at": "2099-01-01T00:00:00.000Z",
        "metadata": {"job": 7},
    }
    host, store = Host(calling(search("a", id="c1"))), MemoryRuntimeToolStore()
    result = await host.mediated(
        pre_tool_mediator=lambda context: {"action": "pending", "runtime_tool_request": request},
        runtime_tool_request_store=store,
    )
    pending = result.runtime_tool_pending
    assert pending is not None
    assert {name: pending[name] for name in ("request_id", "parameters", "timeout_at")} == {
        name: request[name] for name in ("request_id", "parameters", "timeout_at")
    }
    assert pending["metadata"] == {"turn_count": 1, "job": 7}
    assert await store.get("req-7") is not None
    # The one who carries it out gets the real parameters, and nobody else does.
    assert "s3cr3t" not in str(result.messages) + str(host.told) + str(result.tool_observability)
    await replayed(host)


async def test_parameters_that_are_not_the_models_are_in_the_request() -> None:
    host = Host(calling(search("a", id="c1")))
    result = await host.mediated(
        tool_declarations={"ability/search": BOUND},
        context={"client_context": {"user_id": "u1"}},
        pre_tool_mediator=lambda context: {"action": "pending"},
    )
    assert result.runtime_tool_pending is not None
    assert result.runtime_tool_pending["parameters"] == {"q": "a", "user": "u1"}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"tool_name": "ability/other"}, "tool_name='ability/other'"),
        ({"tool_call_id": "c9"}, "tool_call_id='c9'"),
        ({"status": "runtime_tool_completed"}, "status="),
        ({"parameters": {"q": 3}}, "do not fit"),
        ({"timeout_at": "soon"}, "not an ISO 8601 time"),
        ({"colour": "red"}, "is none"),
    ],
)
async def test_a_request_that_is_not_for_this_call_denies_it(request_: dict[str, Any], words: str) -> None:
    host = Host(calling(search("a", id="c1")), DONE)
    said = {"action": "pending", "runtime_tool_request": request_}
    result = await host.mediated(pre_tool_mediator=lambda context: said)
    assert result.completed and host.calls == []
    (payload,) = host.payloads("pre_tool_mediation_error")
    assert words in payload["reason"]


@pytest.mark.parametrize("wrong", [{"q": 3}, {}])
async def test_a_call_that_cannot_be_made_is_handed_to_nobody(wrong: dict[str, Any]) -> None:
    host = Host(calling({"name": "ability/search", "id": "c1", "parameters": wrong}), DONE)
    result = await host.mediated(pre_tool_mediator=lambda context: {"action": "pending"})
    assert result.completed and host.calls == [] and result.runtime_tool_pending is None
    (entry,) = result.tool_execution_results
    assert entry["result"]["success"] is False


async def test_what_a_person_has_to_let_through_waits_for_them_first_and_for_the_outside_then() -> None:
    host = Host(calling(search("a", id="c1")))
    tools = {"ability/search": {**SEARCH, "action_policy": "preview"}}
    asked = await host.mediated(tool_declarations=tools, pre_tool_mediator=lambda context: {"action": "pending"})
    assert (asked.status, asked.runtime_tool_pending) == ("approval_required", None)


async def test_an_approval_does_not_bring_a_call_back_that_somebody_outside_carries_out() -> None:
    ran: list[int] = []

    @tool(approval=True)
    def publish(post: int) -> str:
        ran.append(post)
        return "here"

    async def outside(at: CallAtGate) -> Consultation:
        return Consultation(
            (Opinion(by="mediator", decision="allow", elsewhere=Elsewhere(metadata={"queue": "slow"})),)
        )

    store = MemoryStore()
    around = new_engine(store)
    who = Agent("support", ScriptedModel([calls(("publish", {"post": 7})), "done"]), tools=[publish])
    request = RunRequest(who, "go", key="k", host=HostTerms(consult=outside))
    waiting = await run_turn(around, request)
    assert waiting.status == "approval_required"
    await decide(around, waiting.approvals[0].id, Approve(), by="anna")
    paused = await run_turn(around, request)
    assert (paused.status, ran) == ("runtime_tool_pending", [])
    (pending,) = paused.runtime_tools
    assert pending.parameters == {"post": 7} and pending.metadata["queue"] == "slow"
    answer = {"request_id": pending.request_id, "result": {"published": 7}}
    await RuntimeToolLifecycle().submit_result(OwnRequestStore(around), answer)
    done = await run_turn(around, request)
    assert (done.output, ran) == ("done", [])
    row = await store.turn(done.turn_id)
    assert row is not None and (await replay_turn(store, row)).divergence is None


@pytest.mark.spec("API-RTL-02")
async def test_storage_and_continuation_are_the_hosts_and_the_core_owns_the_order_of_things() -> None:
    """Any object with the store's methods will do, and what continues a run is a callable that nothing is asked of."""
    made: list[str] = []

    class Anything:
        """Neither a class of wakeful's nor a database."""

        compare_and_set = True

        def __init__(self) -> None:
            self.inner = MemoryRuntimeToolStore()

        def create(self, request: Any) -> Any:
            made.append("create")
            return self.inner.create(request)

        def get(self, request_id: str) -> Any:
            return self.inner.get(request_id)

        def complete(self, request_id: str, result: Any) -> Any:
            made.append("complete")
            return self.inner.complete(request_id, result)

        def timeout(self, request_id: str, result: Any = None) -> Any:
            return self.inner.timeout(request_id, result)

        def recent_pending(self, query: Any) -> Any:
            return self.inner.recent_pending(query)

    store, host = Anything(), Host(calling(search("a", id="c1")))
    paused = await host.mediated(
        pre_tool_mediator=lambda context: {"action": "pending"}, runtime_tool_request_store=store
    )
    assert paused.runtime_tool_pending is not None
    # The request has the fields of the contract: no session, job, chat or browser of a product is among them.
    assert paused.runtime_tool_pending.keys() == {
        "status",
        "request_id",
        "tool_name",
        "tool_call_id",
        "parameters",
        "run_id",
        "timeout_at",
        "runtime",
        "metadata",
    }

    def schedule(request: Any, result: Any, context: dict[str, Any]) -> dict[str, Any]:
        made.append(f"continue {context['session']}")
        return {"queued": True}

    done = await RuntimeToolLifecycle(host.hooks).submit_result(
        store,
        {"request_id": paused.runtime_tool_pending["request_id"], "result": 1},
        schedule,
        {"session": "the host's own"},
    )
    assert made == ["create", "complete", "continue the host's own"]
    assert done["continuation_result"] == {"queued": True}
    assert len(host.turns) == 0 and len(host.seen) == 1  # the core has scheduled no further turn by itself
