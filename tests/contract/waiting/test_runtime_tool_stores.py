"""What every RuntimeToolRequestStore keeps."""

import asyncio
import inspect
from typing import Any

import pytest

from wakeful.contracts.runtime_tools import RuntimeToolRequest, RuntimeToolResult, timed_out
from wakeful.ports.client_requests import RequestEnding
from wakeful.service.client_tools.lifecycle import RuntimeToolLifecycle
from wakeful.service.hooks import HookRegistry


def request(call: str = "c1", **more: Any) -> RuntimeToolRequest:
    return RuntimeToolRequest.normalise(
        {"tool_name": "client/pick", "tool_call_id": call, "run_id": "r1", "parameters": {"folder": "/"}, **more}
    )


def answer(asked: RuntimeToolRequest, **result: Any) -> RuntimeToolResult:
    return RuntimeToolResult.normalise({"result": result}, asked)


async def done(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


@pytest.mark.spec("API-RTL-07")
async def test_a_request_is_kept_found_ended_and_found_again_after_a_restart(open_requests: Any) -> None:
    first, second = request("c1"), request("c2", tool_name="client/paint", run_id="r2")
    third = request("c3", timeout_at="2099-01-01T00:00:00.000Z")
    async with open_requests() as store:
        for each in (first, second, third):
            await done(store.create(each))
        assert await done(store.get("runtime-tool-nope")) is None
        assert await done(store.complete("runtime-tool-nope", answer(first))) is None
        assert await done(store.timeout("runtime-tool-nope")) is None
    async with open_requests() as store:
        assert await done(store.get(first.request_id)) == first
        assert await pending(store, {}) == ["c3", "c2", "c1"]  # newest first
        assert await pending(store, {"run_id": "r1"}) == ["c3", "c1"]
        assert await pending(store, {"tool_name": "client/paint"}) == ["c2"]
        assert await pending(store, {"before": "2099-01-02T00:00:00.000Z"}) == ["c3"]
        assert await pending(store, {"before": "2098-01-01T00:00:00.000Z"}) == []
        assert await pending(store, {"limit": 1}) == ["c3"]
        completed = await done(store.complete(first.request_id, answer(first, file="a")))
        assert completed == RequestEnding(True, first.settled("runtime_tool_completed"), answer(first, file="a"))
        ended = await done(store.timeout(second.request_id, timed_out(second)))
        assert ended == RequestEnding(True, second.settled("runtime_tool_timeout"), timed_out(second))
    async with open_requests() as store:
        assert await done(store.get(first.request_id)) == first.settled("runtime_tool_completed")
        assert await pending(store, {}) == ["c3"]


async def pending(store: Any, query: dict[str, Any]) -> list[str]:
    return [each.tool_call_id for each in await done(store.recent_pending(query))]


async def test_keeping_it_again_changes_nothing(open_requests: Any) -> None:
    async with open_requests() as store:
        await done(store.create(request()))
        await done(store.complete(request().request_id, answer(request(), n=1)))
        await done(store.create(request()))
        assert (await done(store.get(request().request_id))).status == "runtime_tool_completed"


@pytest.mark.spec("API-RTL-08")
async def test_one_of_many_ends_it_and_the_others_get_what_it_ended_with(open_requests: Any) -> None:
    heard: list[str] = []
    resumed: list[Any] = []
    hooks = HookRegistry(find=list)
    for name in ("runtime_tool_result_submitted", "runtime_tool_request_timed_out", "runtime_tool_request_resumed"):
        hooks.register(name, lambda *_, name=name: heard.append(name))

    def resume(*given: Any) -> dict[str, Any]:
        resumed.append(given)
        return {}

    async with open_requests() as store:
        asked = request()
        await done(store.create(asked))
        lifecycle = RuntimeToolLifecycle(hooks)
        answers = await asyncio.gather(
            *(
                lifecycle.submit_result(store, {"request_id": asked.request_id, "result": {"n": n}}, resume)
                for n in range(4)
            ),
            lifecycle.timeout_request(store, asked.request_id, resume),
            lifecycle.cancel_request(store, asked.request_id, resume),
        )
        (won,) = [each for each in answers if not each["duplicate"]]
        assert all((each["result"], each["request"]) == (won["result"], won["request"]) for each in answers)
        assert [each["continuation_result"] for each in answers if each["duplicate"]] == [None] * 5
        assert len(resumed) == 1 and len(heard) == 2
    async with open_requests() as store:
        again = await RuntimeToolLifecycle(hooks).submit_result(
            store, {"request_id": asked.request_id, "result": {"n": 9}}, resume
        )
        assert (again["duplicate"], again["result"]) == (True, won["result"])  # a terminal record keeps its result
        assert len(resumed) == 1 and len(heard) == 2


async def test_a_large_request_and_a_large_answer_come_back_whole(open_requests: Any) -> None:
    asked = request(parameters={"text": "x" * 100_000})
    async with open_requests() as store:
        await done(store.create(asked))
        assert await done(store.get(asked.request_id)) == asked
        settled = await done(store.complete(asked.request_id, answer(asked, text="y" * 100_000)))
        assert settled.result == answer(asked, text="y" * 100_000)
