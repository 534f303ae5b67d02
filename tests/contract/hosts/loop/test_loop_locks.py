"""Locks and persisters of a transcript."""

from typing import Any

import pytest

from kit.hosts.loop_host import Host, calling, search
from wakeful.hosts import ConversationRequest, MemoryConversationLock


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Recorder:
    """A lock that answers what it is told, and a persister that keeps what it gets."""

    def __init__(self, answer: Any = "token") -> None:
        self.answer = answer
        self.asked: list[Any] = []
        self.kept: list[Any] = []

    def acquire_session_lock(self, session_id: str, ttl_seconds: int = 300) -> Any:
        self.asked.append(("acquire", session_id, ttl_seconds))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def release_session_lock(self, session_id: str, token: str) -> bool:
        self.asked.append(("release", session_id, token))
        return True

    def persist(self, messages: Any, request: Any, result: Any) -> str:
        self.kept.append((messages, request, result))
        return "transcript-7"


@pytest.mark.spec("API-LCK-01", "API-LCK-02")
async def test_the_lock_is_taken_before_the_first_turn_and_let_go_with_its_token() -> None:
    lock = Recorder()
    seen: list[Any] = []
    host = Host(lambda messages, context: seen.append(list(lock.asked)) or {"content": "x"})
    await host.run(transcript_lock=lock, session_id="s")
    assert seen == [[("acquire", "s", 300)]]
    assert lock.asked == [("acquire", "s", 300), ("release", "s", "token")]
    other = Recorder()
    await Host({"content": "x"}).run(transcript_lock_store=other, transcript_id="t", transcript_lock_ttl=9)
    assert other.asked == [("acquire", "t", 9), ("release", "t", "token")]
    nameless = Recorder()
    await Host({"content": "x"}).run(transcript_lock=nameless)
    assert nameless.asked == []


@pytest.mark.spec("API-LCK-03", "API-LCK-04")
@pytest.mark.parametrize("answer", [None, "", False, OSError("server gone")], ids=repr)
async def test_a_lock_that_is_taken_or_cannot_be_asked_is_contention_and_no_turn_is_run(answer: Any) -> None:
    lock, host = Recorder(answer), Host({"content": "x"})
    result = await host.run(transcript_lock=lock, session_id="s", transcript_persister=lock)
    assert (result.status, result.completed, result.turn_count) == ("transcript_lock_contention", False, 0)
    assert [message.content for message in result.messages] == ["hello"]
    assert host.told[0] == ("transcript_lock_contention", {"session_id": "s"})
    assert (host.seen, lock.kept) == ([], [])
    assert lock.asked == [("acquire", "s", 300)], "what was not taken is not released"
    assert "transcript.lock.contended" in [recorded.fact.event.kind for recorded in await host.log()]


@pytest.mark.spec("API-LCK-05")
async def test_an_expired_lock_is_taken_over_and_its_old_token_releases_nothing() -> None:
    clock = Clock()
    lock = MemoryConversationLock(clock)
    first = await lock.acquire_session_lock("s", 10)
    assert first is not None and await lock.acquire_session_lock("s", 10) is None
    assert await lock.acquire_session_lock("other", 10) is not None
    clock.now += 10
    second = await lock.acquire_session_lock("s", 10)
    assert second is not None and second != first
    assert await lock.release_session_lock("s", first) is False
    assert await lock.acquire_session_lock("s", 10) is None, "the new holder still has it"
    assert await lock.release_session_lock("s", second) is True
    assert await lock.release_session_lock("s", second) is False
    assert await lock.acquire_session_lock("s") is not None


async def test_two_loops_with_one_lock_do_not_run_one_transcript_together() -> None:
    lock = MemoryConversationLock()
    inner = Host({"content": "inner"})

    async def nested(messages: Any, context: Any) -> dict[str, Any]:
        blocked = await inner.run(transcript_lock=lock, session_id="s")
        return {"content": str(blocked.status)}

    outer = Host(nested)
    result = await outer.run(transcript_lock=lock, session_id="s")
    assert result.final_content == "transcript_lock_contention"
    assert (await inner.run(transcript_lock=lock, session_id="s")).completed


@pytest.mark.spec("API-LCK-06", "API-RES-20")
async def test_the_persister_gets_the_normalised_result_of_every_run_before_completed_is_told() -> None:
    cases = [({"content": "x"}, None), (calling(search()), "budget_exceeded"), (RuntimeError("no"), "failed")]
    for turn, status in cases:
        persister, host = Recorder(), Host(turn)
        told: list[list[str]] = []

        class Notes(Recorder):
            def persist(self, messages: Any, request: Any, result: Any, host: Host = host, told: Any = told) -> str:
                told.append(list(host.names))
                return super().persist(messages, request, result)

        persister = Notes()
        result = await host.mediated(transcript_persister=persister, max_turns=1)
        ((messages, request, persisted),) = persister.kept
        assert (persisted.to_wire()["schema"], persisted.version) == ("wakeful.conversation-result", 1)
        assert (persisted.status, persisted.run_outcome) == (status, result.run_outcome)
        assert messages == persisted.messages == result.messages
        assert isinstance(request, ConversationRequest)
        assert "completed" not in told[0] and ("completed" in host.names) is (status != "failed")
        assert result.metadata["transcript_id"] == "transcript-7"


@pytest.mark.spec("API-REQ-01")
async def test_the_persister_gets_the_callers_own_request() -> None:
    persister = Recorder()
    request = ConversationRequest.normalise({"messages": [{"role": "user", "content": "q"}], "metadata": {"job": 7}})
    await Host({"content": "x"}).run(request=request, transcript_persister=persister)
    assert persister.kept[0][1] is request
