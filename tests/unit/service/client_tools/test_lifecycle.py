"""The life of a request that somebody outside answers: ended once, told once, continued once."""

import asyncio
from typing import Any

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.runtime_tools import RuntimeToolRequest, RuntimeToolResult
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.transcript import check_pairing, normalise, tool_call
from wakeful.ports.client_requests import RequestEnding
from wakeful.service.client_tools.lifecycle import RuntimeToolLifecycle
from wakeful.service.hooks import HookRegistry
from wakeful.testing.waiting_stores import MemoryRuntimeToolStore

REQUEST: dict[str, Any] = {
    "tool_name": "client/pick",
    "tool_call_id": "c1",
    "run_id": "r1",
    "parameters": {"folder": "/", "api_key": "s3cr3t"},
    "runtime": {"environment": "runtime_local"},
    "metadata": {"turn_count": 2},
}
HOOKS = (
    "runtime_tool_request_created",
    "runtime_tool_result_submitted",
    "runtime_tool_request_timed_out",
    "runtime_tool_request_resumed",
)


class Around:
    """A lifecycle, its store, and what was heard of it."""

    def __init__(self) -> None:
        self.store = MemoryRuntimeToolStore()
        self.hooks = HookRegistry(find=list)
        self.heard: list[tuple[str, tuple[Any, ...]]] = []
        self.recorded: list[str] = []
        for name in HOOKS:
            self.hooks.register(name, lambda *given, name=name: self.heard.append((name, given)))
        self.lifecycle = RuntimeToolLifecycle(self.hooks, record=self._record)
        self.resumed: list[tuple[RuntimeToolRequest, RuntimeToolResult, dict[str, Any]]] = []

    async def _record(self, name: str, envelopes: dict[str, Any]) -> None:
        assert len(self.recorded) == len(self.heard)  # written before anybody is told
        self.recorded.append(name)

    def resume(self, request: RuntimeToolRequest, result: RuntimeToolResult, context: dict[str, Any]) -> Any:
        self.resumed.append((request, result, context))
        return {"turn": 3}

    async def asked(self, **more: Any) -> RuntimeToolRequest:
        return await self.lifecycle.create_pending_request(self.store, {**REQUEST, **more}, {"who": "me"})

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.heard]


@pytest.mark.spec("API-RTL-12")
async def test_a_submitted_result_comes_back_ready_for_the_transcript_and_the_loop() -> None:
    around = Around()
    request = await around.asked()
    done = await around.lifecycle.submit_result(
        around.store, {"request_id": request.request_id, "result": {"file": "a.txt"}}, around, {"who": "me"}
    )
    assert set(done) == {
        *("status", "request", "result", "duplicate", "tool_result_message", "tool_execution_result"),
        "continuation_result",
    }
    assert (done["status"], done["duplicate"], done["continuation_result"]) == (
        "runtime_tool_completed",
        False,
        {"turn": 3},
    )
    assert done["request"]["request_id"] == request.request_id
    assert done["result"]["result"] == {"file": "a.txt"}
    message = normalise(done["tool_result_message"])
    check_pairing([tool_call("client/pick", {}, tool_call_id="c1", turn=2), message])
    assert (message.role, message.content, message.payload["success"]) == ("tool", '{"file": "a.txt"}', True)
    entry = done["tool_execution_result"]
    assert (entry["tool_name"], entry["tool_call_id"], entry["turn_count"]) == ("client/pick", "c1", 2)
    assert entry["parameters"] == {"folder": "/", "api_key": "[redacted]"} and entry["parameters_redacted"] is True
    assert entry["result"]["result"] == {"file": "a.txt"}
    assert entry["runtime"] == {"environment": "runtime_local"}


@pytest.mark.spec("API-RTL-13")
async def test_a_timeout_completes_the_call_with_a_failed_result() -> None:
    around = Around()
    request = await around.asked()
    done = await around.lifecycle.timeout_request(around.store, request.request_id, around.resume, {"who": "me"})
    assert (done["status"], done["duplicate"]) == ("runtime_tool_timeout", False)
    assert done["result"]["success"] is False
    assert done["result"]["metadata"]["status"] == "runtime_tool_timeout"
    assert done["tool_execution_result"]["result"]["metadata"]["status"] == "runtime_tool_timeout"
    assert done["tool_result_message"]["payload"]["error"] == "Runtime tool 'client/pick' was not answered in time"
    assert done["continuation_result"] == {"turn": 3}
    assert "cancelled" not in done


@pytest.mark.spec("API-RTL-04")
async def test_a_request_waits_then_ends_as_itself_and_a_cancel_says_so() -> None:
    around = Around()
    request, answered = await around.asked(), await around.asked(tool_call_id="c2")
    assert request.status == "runtime_tool_pending"
    done = await around.lifecycle.submit_result(around.store, {"request_id": answered.request_id, "result": 1})
    assert done["status"] == done["request"]["status"] == "runtime_tool_completed"
    done = await around.lifecycle.cancel_request(around.store, request.request_id)
    assert (done["status"], done["cancelled"], around.names[-1]) == (
        "runtime_tool_timeout",
        True,
        "runtime_tool_request_timed_out",
    )
    assert {**done["request"], "status": "runtime_tool_pending"} == request.model_dump()
    again = await around.lifecycle.timeout_request(around.store, request.request_id)
    assert (again["duplicate"], again["cancelled"]) == (True, True)


@pytest.mark.spec("API-RTL-08")
async def test_exactly_one_caller_ends_a_request_and_everybody_else_gets_its_result() -> None:
    around = Around()
    request = await around.asked()

    def submit(n: int) -> Any:
        answer = {"request_id": request.request_id, "result": {"n": n}}
        return around.lifecycle.submit_result(around.store, answer, around)

    answers = await asyncio.gather(
        submit(1),
        submit(2),
        around.lifecycle.timeout_request(around.store, request.request_id, around),
        around.lifecycle.cancel_request(around.store, request.request_id, around),
        submit(1),
    )
    winners = [answer for answer in answers if not answer["duplicate"]]
    assert len(winners) == 1
    assert all(answer["result"] == winners[0]["result"] for answer in answers)
    assert all(answer["continuation_result"] is None for answer in answers if answer["duplicate"])
    assert (len(around.resumed), around.store.writes) == (1, 2)
    assert len(around.names) == len(set(around.names)) == 3
    later = await around.lifecycle.timeout_request(around.store, request.request_id, around)
    assert (later["duplicate"], later["result"]) == (True, winners[0]["result"])
    assert (len(around.resumed), around.store.writes, len(around.heard)) == (1, 2, 3)
    stored = await around.store.get(request.request_id)
    assert stored is not None and stored.status == winners[0]["status"]


class Careless(MemoryRuntimeToolStore):
    """Says that it compares and sets, and does not."""

    def _settle(self, request_id: str, status: Any, result: RuntimeToolResult | None) -> RequestEnding | None:
        request = self._requests[request_id].settled(status)
        return RequestEnding(True, request, result)


async def test_inversion_a_store_that_lets_everybody_win_continues_the_run_twice() -> None:
    """Taken out: without compare-and-set in the store there are two winners."""
    around = Around()
    around.store = Careless()
    request = await around.asked()
    for n in (1, 2):
        answer = {"request_id": request.request_id, "result": n}
        await around.lifecycle.submit_result(around.store, answer, around)
    assert len(around.resumed) == 2


@pytest.mark.spec("API-RTL-09")
async def test_a_store_without_compare_and_set_cannot_end_requests() -> None:
    around = Around()
    request = await around.asked()

    class Plain(MemoryRuntimeToolStore):
        compare_and_set = False

    class Bare:
        compare_and_set = True

        def get(self, request_id: str) -> None: ...

    answer = {"request_id": request.request_id, "result": 1}
    for store in (Plain(), Bare(), object()):
        lifecycle: Any = around.lifecycle
        for attempt in (
            lambda lifecycle=lifecycle, store=store: lifecycle.submit_result(store, answer),
            lambda lifecycle=lifecycle, store=store: lifecycle.timeout_request(store, request.request_id),
            lambda lifecycle=lifecycle, store=store: lifecycle.cancel_request(store, request.request_id),
        ):
            with pytest.raises(InvalidValue, match=r"^invalid_runtime_tool_store: "):
                await attempt()
    assert around.names == ["runtime_tool_request_created"]


@pytest.mark.spec("API-RTL-14")
async def test_what_waits_can_be_listed_for_clients_that_poll_and_for_scans() -> None:
    around = Around()
    first = await around.asked(timeout_at="2026-01-01T00:00:00Z")
    second = await around.asked(tool_call_id="c2", run_id="r2", timeout_at="2026-01-03T00:00:00Z")
    third = await around.asked(tool_call_id="c3", tool_name="client/show")

    async def found(**query: Any) -> list[RuntimeToolRequest]:
        return await around.lifecycle.recent_pending_requests(around.store, query)

    assert await found() == [third, second, first]
    assert await found(run_id="r1") == [third, first]
    assert await found(tool_name="client/show") == [third]
    assert await found(before="2026-01-02T00:00:00Z") == [first]
    assert await found(limit=1) == [third]
    await around.lifecycle.timeout_request(around.store, third.request_id)
    assert await found() == [second, first]


@pytest.mark.spec("API-RTL-15")
async def test_a_continuation_is_called_once_after_winning_and_must_answer_an_object() -> None:
    around = Around()
    request = await around.asked()
    answer = {"request_id": request.request_id, "result": 1}
    with pytest.raises(InvalidValue, match=r"^invalid_runtime_tool_continuation: "):
        await around.lifecycle.submit_result(around.store, answer, "no continuation")  # type: ignore[arg-type]
    stored = await around.store.get(request.request_id)
    assert stored is not None and stored.is_pending

    async def later(request: RuntimeToolRequest, result: RuntimeToolResult, context: dict[str, Any]) -> Any:
        return around.resume(request, result, context)

    await around.lifecycle.submit_result(around.store, answer, later, {"who": "me"})
    await around.lifecycle.submit_result(around.store, answer, later, {"who": "me"})
    ((resumed, result, context),) = around.resumed
    assert (resumed.request_id, result.result, context) == (request.request_id, {"value": 1}, {"who": "me"})
    second = await around.asked(tool_call_id="c2")
    await around.lifecycle.timeout_request(around.store, second.request_id, around)
    assert len(around.resumed) == 2
    third = await around.asked(tool_call_id="c3")
    with pytest.raises(InvalidValue, match=r"^invalid_runtime_tool_continuation: .*returned a str"):
        await around.lifecycle.timeout_request(around.store, third.request_id, lambda *_: "done")


async def test_hooks_get_the_envelopes_and_the_callers_context_and_the_log_comes_first() -> None:
    around = Around()
    request = await around.asked()
    answer = {"request_id": request.request_id, "result": 1}
    done = await around.lifecycle.submit_result(around.store, answer, around, {"who": "me"})
    other = await around.asked(tool_call_id="c2")
    ended = await around.lifecycle.timeout_request(around.store, other.request_id)
    context = {"who": "me"}
    assert around.heard == [
        ("runtime_tool_request_created", (request.model_dump(), context)),
        ("runtime_tool_result_submitted", (done["request"], done["result"], context)),
        ("runtime_tool_request_resumed", (done["request"], done["result"], {"turn": 3}, context)),
        ("runtime_tool_request_created", (other.model_dump(), context)),
        ("runtime_tool_request_timed_out", (ended["request"], ended["result"], {})),
    ]
    assert around.recorded == around.names


@pytest.mark.spec("API-RTL-17")
async def test_a_request_that_is_not_there_is_not_found() -> None:
    around = Around()
    for attempt in (
        around.lifecycle.submit_result(around.store, {"request_id": "nope", "result": 1}),
        around.lifecycle.submit_result(around.store, {"result": 1}),
        around.lifecycle.timeout_request(around.store, "nope"),
        around.lifecycle.cancel_request(around.store, ""),
    ):
        with pytest.raises(InvalidValue, match=r"^runtime_tool_request_not_found: "):
            await attempt
    assert not around.heard and not around.store.writes


async def test_asking_twice_is_asking_once() -> None:
    around = Around()
    request = await around.asked()
    assert await around.asked() == request
    await around.lifecycle.submit_result(around.store, {"request_id": request.request_id, "result": 1})
    assert (await around.asked()).status == "runtime_tool_completed"
    assert around.names == ["runtime_tool_request_created", "runtime_tool_result_submitted"]


async def test_an_answer_that_does_not_fit_writes_nothing() -> None:
    around = Around()
    request = await around.asked()
    for wrong in ({"tool_name": "client/other"}, {"success": "yes"}, {"metadata": "x"}):
        with pytest.raises(InvalidValue, match=r"^invalid_runtime_tool_result: "):
            await around.lifecycle.submit_result(around.store, {"request_id": request.request_id, "result": 1, **wrong})
    assert around.store.writes == 1
    with pytest.raises(InvalidValue, match=r"^invalid_runtime_tool_request: status"):
        await around.asked(tool_call_id="c9", status="runtime_tool_completed")


async def test_what_the_declaration_calls_sensitive_is_redacted_in_the_execution_result() -> None:
    around = Around()
    request = await around.asked()
    declaration = ToolDeclaration(name="client/pick", input_schema={}, sensitive_parameters=("folder",))
    done = await around.lifecycle.timeout_request(around.store, request.request_id, declaration=declaration)
    assert done["tool_execution_result"]["parameters"]["folder"] == "[redacted]"
