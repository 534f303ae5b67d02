"""Tools that a client runs, in a conversation loop: the run pauses on a request, and goes on with its result."""

from typing import Any

import pytest

from kit.hosts.loop_host import CLIENTS, SEARCH, Host, calling, search
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.contracts.transcript import check_pairing, normalise_all
from wakeful.service.client_tools.lifecycle import RuntimeToolLifecycle
from wakeful.service.client_tools.store import OwnRequestStore
from wakeful.testing.waiting_stores import MemoryRuntimeToolStore

PICK: dict[str, Any] = {
    "name": "client/pick",
    "description": "Let the person pick.",
    "parameters": {
        "type": "object",
        "properties": {"folder": {"type": "string"}, "user": {"type": "string"}, "api_key": {"type": "string"}},
        "required": ["folder", "user"],
    },
    "client_context_bindings": {"user": "user_id"},
    "runtime": {"environment": "runtime_local"},
}
TOOLS = {"client/pick": PICK}
CONTEXT = {**CLIENTS, "client_context": {"user_id": "u1"}, "who": "me"}


def pick(**more: Any) -> dict[str, Any]:
    call_id = more.pop("id", "c1")
    return {"name": "client/pick", "id": call_id, "parameters": {"folder": "/home", **more}}


class Broken(MemoryRuntimeToolStore):
    """A store that can keep nothing."""

    async def create(self, request: RuntimeToolRequest) -> None:
        raise OSError("the disk is full")


@pytest.mark.spec("API-RTL-01")
async def test_a_clients_tool_pauses_the_run_with_its_normalised_request() -> None:
    host = Host(calling(pick(api_key="s3cr3t"), content="Which one?"))
    result = await host.run(tool_declarations=TOOLS, max_turns=5, context=CONTEXT, run_id="r1")
    assert (result.status, result.completed, result.turn_count) == ("runtime_tool_pending", False, 1)
    pending = result.runtime_tool_pending
    assert pending is not None and RuntimeToolRequest.normalise(pending).model_dump(mode="json") == pending
    assert {name: pending[name] for name in ("status", "tool_name", "tool_call_id", "run_id", "runtime")} == {
        "status": "runtime_tool_pending",
        "tool_name": "client/pick",
        "tool_call_id": "c1",
        "run_id": "r1",
        "runtime": {"environment": "runtime_local"},
    }
    # What the client gets is real and whole; whatever else is shown is redacted.
    assert pending["parameters"] == {"folder": "/home", "user": "u1", "api_key": "s3cr3t"}
    assert pending["metadata"] == {"turn_count": 1} and pending["timeout_at"]
    assert "s3cr3t" not in str(result.messages) + str(host.told) + str(result.tool_observability)
    assert result.run_outcome.status == "runtime_tool_pending"


async def test_what_is_told_of_a_pause_and_what_is_seen_of_its_call() -> None:
    host = Host(calling(pick()))
    result = await host.run(tool_declarations=TOOLS, max_turns=5, context=CONTEXT)
    pending = result.runtime_tool_pending
    assert pending is not None
    assert host.payloads("runtime_tool_pending") == [
        {"turn": 1, "tool_name": "client/pick", "tool_call_id": "c1", "request_id": pending["request_id"]}
    ]
    assert host.names[-1] == "completed" and host.payloads("completed")[0]["run_outcome"]["completed"] is False
    (seen,) = result.tool_observability.calls
    assert (seen.status, seen.arguments.keys, seen.result) == ("pending", ("folder", "user"), None)
    assert host.calls == []  # the host's executor is not asked, and need not be there


async def test_siblings_have_their_results_and_the_transcript_waits_for_one() -> None:
    host = Host(calling(search("a", id="c0"), pick(), search("b", id="c2")))
    result = await host.mediated(tool_declarations={**TOOLS, "ability/search": SEARCH}, context=CONTEXT)
    assert [(message.type, message.tool_call_id) for message in result.messages[1:]] == [
        ("tool_call", "c0"),
        ("tool_result", "c0"),
        ("tool_call", "c1"),
        ("tool_call", "c2"),
        ("tool_result", "c2"),
    ]
    check_pairing(result.messages, pending=["c1"])
    assert [call.status for call in result.tool_observability.calls] == ["succeeded", "succeeded", "pending"]


async def test_the_host_continues_with_the_clients_result() -> None:
    """Submit gives the message that was missing; another run goes on with it."""
    store = MemoryRuntimeToolStore()
    host = Host(calling(pick()), {"content": "You picked a.txt."})
    paused = await host.run(
        tool_declarations=TOOLS, max_turns=5, context=CONTEXT, run_id="r1", runtime_tool_request_store=store
    )
    assert paused.runtime_tool_pending is not None

    async def go_on(request: Any, result: Any, context: dict[str, Any]) -> dict[str, Any]:
        answer = {
            "type": "tool_result",
            "role": "tool",
            "content": "a.txt",
            "payload": {"tool_name": request.tool_name, **result.to_tool_result(request.runtime)},
            "metadata": {"tool_call_id": request.tool_call_id},
        }
        went_on = await host.run(
            [*(message.to_wire() for message in paused.messages), answer],
            tool_declarations=TOOLS,
            context=CLIENTS,
            run_id="r2",
        )
        return {"said": went_on.final_content, "status": went_on.status}

    lifecycle = RuntimeToolLifecycle(host.hooks)
    done = await lifecycle.submit_result(
        store, {"request_id": paused.runtime_tool_pending["request_id"], "result": "a.txt"}, go_on
    )
    assert done["continuation_result"] == {"said": "You picked a.txt.", "status": None}
    check_pairing(normalise_all([*(message.to_wire() for message in paused.messages), done["tool_result_message"]]))


@pytest.mark.spec("API-RTL-10")
@pytest.mark.parametrize("option", ["runtime_tool_request_store", "runtime_tool_store"])
async def test_with_a_store_the_request_is_kept_before_the_run_returns(option: str) -> None:
    store = MemoryRuntimeToolStore()
    heard: list[Any] = []
    host = Host(calling(pick()))
    host.hooks.register("runtime_tool_request_created", lambda *given: heard.append(given))
    result = await host.run(tool_declarations=TOOLS, max_turns=5, context=CONTEXT, **{option: store})
    assert result.runtime_tool_pending is not None
    kept = await store.get(result.runtime_tool_pending["request_id"])
    assert kept is not None and kept.model_dump(mode="json") == result.runtime_tool_pending
    assert [(request, context["who"]) for request, context in heard] == [(result.runtime_tool_pending, "me")]
    # Without one the request is in the result and nowhere else.
    bare = Host(calling(pick()))
    alone = await bare.run(tool_declarations=TOOLS, max_turns=5, context=CONTEXT)
    assert alone.status == "runtime_tool_pending" and len(heard) == 1


@pytest.mark.spec("API-RTL-11")
async def test_a_request_that_cannot_be_kept_fails_its_call_and_the_run_goes_on() -> None:
    host = Host(calling(pick()), {"content": "I could not ask."})
    result = await host.run(tool_declarations=TOOLS, max_turns=5, context=CONTEXT, runtime_tool_store=Broken())
    assert (result.status, result.completed, result.runtime_tool_pending) == (None, True, None)
    (execution,) = result.tool_execution_results
    assert execution["result"]["success"] is False
    assert execution["result"]["metadata"]["error_type"] == "runtime_tool_request_failed"
    assert "the disk is full" in execution["result"]["error"]
    assert execution["result"]["metadata"]["effects"] == "none"  # nobody was asked
    assert "runtime_tool_pending" not in host.names and result.final_content == "I could not ask."
    check_pairing(result.messages)


async def test_of_two_requests_one_of_which_cannot_be_kept_the_other_still_pauses_the_run() -> None:
    class Fussy(MemoryRuntimeToolStore):
        async def create(self, request: RuntimeToolRequest) -> None:
            if request.tool_call_id == "c1":
                raise OSError("not this one")
            await super().create(request)

    host = Host(calling(pick(), pick(id="c2")))
    result = await host.run(tool_declarations=TOOLS, max_turns=5, context=CONTEXT, runtime_tool_store=Fussy())
    assert result.runtime_tool_pending is not None and result.runtime_tool_pending["tool_call_id"] == "c2"
    assert [entry["tool_call_id"] for entry in result.tool_execution_results] == ["c1"]


async def test_what_the_client_could_not_run_is_never_asked() -> None:
    """Parameters are put together and held to the schema first."""
    host = Host(calling(pick()), {"content": "never mind"})
    store = MemoryRuntimeToolStore()
    result = await host.run(
        tool_declarations=TOOLS, max_turns=5, context=CLIENTS, runtime_tool_store=store
    )  # nothing to bind from
    (execution,) = result.tool_execution_results
    assert execution["result"]["metadata"]["error_type"] == "missing_required_parameters"
    assert (result.status, store.writes) == (None, 0)


async def test_wakefuls_own_store_keeps_the_requests_of_its_own_loop() -> None:
    """The request is in the log already: keeping it again changes nothing, and its answer ends it there."""
    host = Host(calling(pick()))
    own = OwnRequestStore(new_engine(host.store))
    result = await host.run(tool_declarations=TOOLS, max_turns=5, context=CONTEXT, runtime_tool_store=own, run_id="r1")
    assert result.runtime_tool_pending is not None
    (kept,) = await own.recent_pending({"run_id": "r1"})
    assert (kept.parameters, kept.run_id) == ({"folder": "/home", "user": "u1"}, "r1")
    assert await own.recent_pending({"run_id": "r2"}) == []
    name = result.runtime_tool_pending["request_id"]
    done = await RuntimeToolLifecycle(host.hooks, record=own.record).submit_result(own, {"request_id": name})
    assert (done["status"], done["duplicate"]) == ("runtime_tool_completed", False)
    assert [row.status for row in await host.store.actions()] == ["completed"]


async def test_several_requests_are_all_there() -> None:
    host = Host(calling(pick(), pick(id="c2")))
    result = await host.run(tool_declarations=TOOLS, max_turns=5, context=CONTEXT)
    listed = result.metadata["runtime_tool_requests"]
    assert [request["tool_call_id"] for request in listed] == ["c1", "c2"]
    assert listed[0] == result.runtime_tool_pending
