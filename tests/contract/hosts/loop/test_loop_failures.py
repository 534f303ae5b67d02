"""Failures of the loop's surroundings: a turn that fails is a result, an observer that fails is a trace."""

import asyncio
from typing import Any

import pytest

from kit.hosts.loop_host import Host, calling, search


class Persister:
    """Keeps what it gets."""

    def __init__(self, error: Exception | None = None, kept: str = "") -> None:
        self.error = error
        self.kept = kept
        self.got: list[tuple[Any, Any, Any]] = []

    def persist(self, messages: Any, request: Any, result: Any) -> str:
        self.got.append((messages, request, result))
        if self.error is not None:
            raise self.error
        return self.kept


class Lock:
    """Counts."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.released: list[tuple[str, str]] = []

    def acquire_session_lock(self, session_id: str, ttl_seconds: int = 300) -> str:
        return "token"

    def release_session_lock(self, session_id: str, token: str) -> bool:
        self.released.append((session_id, token))
        if self.error is not None:
            raise self.error
        return True


@pytest.mark.spec("API-FAIL-01")
@pytest.mark.parametrize(
    ("turn", "failure"),
    [
        (RuntimeError("gone"), {"type": "turn_runner_exception", "message": "RuntimeError: gone", "turn_count": 2}),
        (
            {"failure": {"type": "rate_limited", "message": "slow down", "code": "429"}, "usage": {"prompt_tokens": 1}},
            {"type": "rate_limited", "message": "slow down", "code": "429", "turn_count": 2},
        ),
    ],
    ids=["raises", "reports"],
)
async def test_a_turn_that_fails_ends_the_run_with_everything_so_far_kept(turn: Any, failure: dict[str, Any]) -> None:
    host, persister = Host({**calling(search()), "usage": {"prompt_tokens": 2}}, turn), Persister()
    result = await host.mediated(transcript_persister=persister)
    assert (result.status, result.completed, result.turn_count) == ("failed", False, 2)
    assert result.failure is not None and result.failure.model_dump(exclude_none=True) == failure
    assert (result.run_outcome.status, result.run_outcome.stop_reason) == ("failed", "provider_error")
    assert host.payloads("failed") == [{"turn": 2, "error": failure["message"]}]
    assert [message.type for message in result.messages] == ["text", "tool_call", "tool_result"]
    assert len(result.tool_execution_results) == 1
    assert result.usage["prompt_tokens"] >= 2
    ((messages, _, persisted),) = persister.got
    assert (messages, persisted.failure) == (result.messages, result.failure)
    assert len(host.seen) == 2, "a failed turn is not tried again"


async def test_an_adapter_may_say_that_trying_again_is_no_use() -> None:
    failure = {"message": "bad key", "retryable": False}
    assert (await Host({"failure": failure}).run()).run_outcome.retryable is False
    assert (await Host({"failure": {"message": "busy"}}).run()).run_outcome.retryable is True


@pytest.mark.spec("API-FAIL-02")
@pytest.mark.parametrize(
    "returned",
    [
        None,
        "text",
        ["list"],
        7,
        {"messages": "no list"},
        {"messages": [{"role": ""}]},
        {"content": 7},
        {"tool_calls": "no list"},
        {"usage": []},
        {"request_metadata": {"x": object()}},
    ],
    ids=lambda returned: str(returned).partition(" object at")[0],
)
async def test_a_turn_result_that_is_none_is_a_failed_result(returned: Any) -> None:
    host = Host(lambda messages, context: returned)
    result = await host.run()
    assert (result.status, result.completed) == ("failed", False)
    assert result.failure is not None and result.failure.type == "invalid_turn_result"
    assert result.run_outcome.stop_reason == "failed"
    assert [message.content for message in result.messages] == ["hello"]
    assert host.names == ["turn_started", "failed"]


@pytest.mark.spec("API-FAIL-03")
async def test_a_tool_that_fails_is_a_result_the_model_sees_and_the_loop_goes_on() -> None:
    host = Host(calling(search("bad")), calling(search("worse")), {"content": "I gave up"})
    host.answers = {"bad": ValueError("boom"), "worse": {"success": False, "error": "no"}}
    result = await host.mediated()
    assert (result.completed, result.turn_count, result.final_content) == (True, 3, "I gave up")
    assert [message["content"] for message in host.wire if message["type"] == "tool_result"] == [
        "ValueError: boom",
        "no",
    ]


@pytest.mark.spec("API-FAIL-04", "API-FAIL-05")
async def test_what_observers_persister_and_lock_raise_changes_nothing_and_leaves_a_trace() -> None:
    def broken(*_: Any) -> None:
        raise ValueError("observer")

    calm = Host(calling(search()), {"content": "done"})
    expected = await calm.mediated()
    host = Host(calling(search()), {"content": "done"})
    host.hooks.register("loop_event", broken)
    persister, lock = Persister(OSError("disk")), Lock(OSError("server"))
    heard: list[str] = []

    def grumpy(name: str, payload: dict[str, Any]) -> None:
        heard.append(name)
        raise ValueError("sink")

    result = await host.mediated(on_event=grumpy, transcript_persister=persister, transcript_lock=lock, session_id="s")
    same = ("completed", "status", "final_content", "turn_count", "messages", "tool_execution_results", "usage")
    assert {name: getattr(result, name) for name in same} == {name: getattr(expected, name) for name in same}
    assert [name for name in heard if name in calm.names] == calm.names, "an observer that fails hears the rest too"
    traces = [
        (recorded.fact.event.kind, recorded.fact.event.surface, recorded.fact.event.error)
        for recorded in await host.log()
        if recorded.fact.event.kind
        in ("observer.failed", "transcript.persist.failed", "transcript.lock.release_failed")
    ]
    assert ("observer.failed", "on_event", "ValueError: sink") in traces
    assert ("observer.failed", "loop_event", "ValueError: observer") in traces
    assert ("transcript.persist.failed", "transcript_persister", "OSError: disk") in traces
    assert ("transcript.lock.release_failed", "transcript_lock", "OSError: server") in traces
    noted = [note["event"] for note in result.metadata["swallowed_failures"]]
    assert {"observer_failed", "transcript_persist_failed", "transcript_lock_release_failed"} <= set(noted)
    before = persister.got[0][2].metadata["swallowed_failures"]
    assert before and {note["event"] for note in before} == {"observer_failed"}
    assert "swallowed_failures" not in expected.metadata


@pytest.mark.spec("API-FAIL-06", "API-LCK-07")
async def test_the_lock_is_released_on_every_way_out_and_not_before_the_transcript_is_kept() -> None:
    for turn in ({"content": "x"}, RuntimeError("no"), "junk", calling(search())):
        lock, persister = Lock(), Persister()
        held: list[int] = []

        class Watches(Persister):
            def persist(self, messages: Any, request: Any, result: Any, lock: Lock = lock, held: Any = held) -> str:
                held.append(len(lock.released))
                return ""

        persister = Watches()
        await Host(turn).mediated(transcript_lock=lock, session_id="s", transcript_persister=persister, max_turns=1)
        assert held == [0]
        assert lock.released == [("s", "token")]


async def test_the_lock_is_released_when_the_caller_gives_up() -> None:
    lock, began = Lock(), asyncio.Event()

    async def for_ever(messages: Any, context: Any) -> Any:
        began.set()
        await asyncio.Event().wait()

    host = Host(for_ever)
    run = asyncio.create_task(host.run(transcript_lock=lock, session_id="s"))
    await began.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert lock.released == [("s", "token")]
