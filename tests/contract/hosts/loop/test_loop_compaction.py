"""Compaction in a run, and `compact` by itself."""

from typing import Any

import pytest

from kit.hosts.loop_host import Host, calling, search
from wakeful.contracts import transcript
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.transcript import Message, check_pairing
from wakeful.hosts import compact

POLICY = {"enabled": True, "max_messages": 4, "recent_messages": 2, "summary_prefix": "So far: "}
COMMON = {"policy", "total_messages", "compact_count", "retained_count", "boundary"}


def said(count: int, size: int = 1) -> list[Message]:
    return [transcript.text("user", f"{number}" + "x" * size) for number in range(count)]


@pytest.mark.spec("API-CMP-01")
async def test_nothing_is_folded_without_a_policy_that_says_so_and_somebody_who_summarises() -> None:
    """The loop's opt-in: agents of the runtime compact by default."""
    given = said(9)
    whole = ["0x", "1x", "2x", "3x", "4x", "5x", "6x", "7x", "8x", "ok"]
    options: list[dict[str, Any]] = [
        {},
        {"summarizer": lambda *_: "s"},
        {"compaction_policy": POLICY},
        {"compaction_policy": {**POLICY, "enabled": False}, "summarizer": lambda *_: "s"},
        {"compaction_policy": {"max_messages": 4}, "summarizer": lambda *_: "s"},
    ]
    for chosen in options:
        host = Host({"content": "ok"})
        result = await host.run(given, **chosen)
        assert [message.content for message in result.messages] == whole
        assert not [name for name in host.names if name.startswith("compaction")]
    both = Host({"content": "ok"})
    result = await both.run(given, compaction_policy=POLICY, summarizer=lambda *_: "s")
    assert [message.content for message in result.messages] == ["So far: s", "7x", "8x", "ok"]


@pytest.mark.spec("API-CMP-02", "API-CMP-04")
async def test_compact_returns_the_messages_what_happened_and_what_was_moved_out() -> None:
    done = await compact(said(6), POLICY, lambda *_: "s")
    wire = done.to_wire()
    assert set(wire) == {"messages", "metadata", "events"}
    assert [message["content"] for message in wire["messages"]] == ["So far: s", "4x", "5x"]
    assert wire["metadata"]["compaction"]["status"] == "compacted"
    assert [event["type"] for event in wire["events"]] == ["compaction_started", "compaction_completed"]
    overflow = {**POLICY, "overflow_archive_enabled": True, "overflow_threshold_bytes": 10}
    moved = (await compact(said(6), overflow, None)).to_wire()
    assert (moved["metadata"]["compaction"]["status"], len(moved["archive_items"])) == ("archived", 4)

    def broken(*_: Any) -> str:
        raise OSError("no")

    statuses = {
        "short": (await compact(said(4), POLICY, lambda *_: "s")).status,
        "off": (await compact(said(6), {**POLICY, "enabled": False}, lambda *_: "s")).status,
        "nobody": (await compact(said(6), None, lambda *_: "s")).status,
        "broken": (await compact(said(6), POLICY, broken)).status,
    }
    assert statuses == {"short": "skipped", "off": "skipped", "nobody": "skipped", "broken": "failed"}
    with pytest.raises(InvalidValue, match="invalid_compaction_policy"):
        await compact(said(1), {"enabled": "maybe?"}, None)


@pytest.mark.spec("API-CMP-05")
async def test_the_summarizer_gets_the_older_part_and_what_it_is_for() -> None:
    asked: list[tuple[list[dict[str, Any]], dict[str, Any]]] = []

    async def summarizer(messages: list[dict[str, Any]], context: dict[str, Any]) -> dict[str, Any]:
        asked.append((messages, context))
        return {"summary": "s", "archived_items": [{"type": "note", "content": "kept"}]}

    done = await compact(said(6), POLICY, summarizer)
    ((messages, context),) = asked
    assert [message["content"] for message in messages] == ["0x", "1x", "2x", "3x"]
    assert set(context) == {"policy", "total_messages", "compact_count", "retained_count", "boundary"}
    assert {name: context[name] for name in context if name != "policy"} == {
        "total_messages": 6,
        "compact_count": 4,
        "retained_count": 2,
        "boundary": {"compact_until": 3, "retain_from": 4},
    }
    assert context["policy"]["max_messages"] == 4
    assert [item.content for item in done.archive_items] == ["kept"]
    assert (await compact(said(6), POLICY, lambda *_: "plain words")).messages[0].content == "So far: plain words"
    for nothing in ("", " ", None, {}, {"summary": ""}):
        answer = nothing
        assert (await compact(said(6), POLICY, lambda *_, answer=answer: answer)).status == "failed"


@pytest.mark.spec("API-CMP-07")
@pytest.mark.parametrize("answer", [OSError("gone"), "", None, {"summary": 3}])
async def test_a_summary_that_fails_leaves_the_transcript_and_the_run_as_they_were(answer: Any) -> None:
    def summarizer(*_: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    host = Host({"content": "ok"})
    result = await host.run(said(6), compaction_policy=POLICY, summarizer=summarizer)
    assert [message.content for message in result.messages] == ["0x", "1x", "2x", "3x", "4x", "5x", "ok"]
    assert result.completed and len(host.wire) == 6
    (payload,) = host.payloads("compaction_failed")
    assert payload["error"] == ("OSError: gone" if isinstance(answer, Exception) else payload["error"]) != ""
    assert result.metadata["compaction"]["status"] == "failed"


@pytest.mark.spec("API-CMP-09")
async def test_the_events_say_what_was_folded_and_how_much_is_left() -> None:
    host = Host({"content": "ok"})
    strict = {**POLICY, "conservation_enabled": True}
    await host.run(
        said(6), compaction_policy={**strict, "minimum_conserved_byte_ratio": 0.1}, summarizer=lambda *_: "s"
    )
    started, completed = (host.payloads(f"compaction_{name}")[0] for name in ("started", "completed"))
    assert set(started) == COMMON
    assert COMMON | {"provenance", "conservation", "summarizer"} <= set(completed)
    assert completed["conservation"]["passed"] is True
    assert completed["provenance"]["retained"]["item_count"] == 2
    lossy = Host({"content": "ok"})
    await lossy.run(said(6, 50), compaction_policy=strict, summarizer=lambda *_: "s")
    (failed,) = lossy.payloads("compaction_failed")
    assert COMMON | {"provenance", "conservation", "error"} <= set(failed)
    assert failed["conservation"]["failed_closed"] is True and failed["error"].startswith("conservation failed")
    moving = Host({"content": "ok"})
    overflow = {**POLICY, "overflow_archive_enabled": True, "overflow_threshold_bytes": 10}
    result = await moving.run(said(6), compaction_policy=overflow)
    (archived,) = moving.payloads("compaction_overflow_archived")
    assert COMMON | {"provenance", "conservation", "archive_id", "archived_count"} <= set(archived)
    assert [item["content"] for item in result.metadata["archive_items"]] == ["0x", "1x", "2x", "3x"]
    assert result.metadata["compaction"]["status"] == "archived"


@pytest.mark.spec("API-LOOP-11")
async def test_messages_are_normalised_first_and_folded_before_each_turn() -> None:
    turns: list[int] = []

    def summarizer(messages: list[dict[str, Any]], context: dict[str, Any]) -> str:
        turns.append(len(host.seen) + 1)
        assert all(message["schema"] == "wakeful.message" for message in messages)
        return f"summary {len(turns)}"

    host = Host(*[calling(search(str(number), api_key="sk-1")) for number in range(4)], {"content": "done"})
    result = await host.mediated(
        [{"role": "user", "content": "hello"}], compaction_policy=POLICY, summarizer=summarizer
    )
    assert result.completed and turns == [3, 4, 5]
    for messages in host.seen:
        assert len(messages) <= 4 + 1, "a pair is not cut"
        check_pairing(transcript.normalise_all(messages))
        assert "hello" in [message["content"] for message in messages], "what was asked last is never folded"
    assert [messages[0]["content"] for messages in host.seen] == [
        "hello",
        "hello",
        "So far: summary 1",
        "So far: summary 2",
        "So far: summary 3",
    ]
    order = [name for name in host.names if name.startswith("compaction") or name == "turn_started"]
    assert order[2:5] == ["turn_started", "compaction_started", "compaction_completed"]


async def test_a_summarizer_sees_no_secret_of_a_call_and_the_model_keeps_its_own() -> None:
    seen: list[Any] = []

    def summarizer(messages: Any, context: Any) -> str:
        seen.append(messages)
        return "s"

    host = Host(*[calling(search(str(number), api_key="sk-1")) for number in range(3)], {"content": "done"})
    result = await host.mediated(compaction_policy=POLICY, summarizer=summarizer)
    assert "sk-1" not in repr(seen) + repr(result.to_wire()) + repr(host.told)
    assert "[redacted]" in repr(seen) and "sk-1" in repr(host.wire)


async def test_what_was_moved_out_leaves_with_its_parameters_redacted() -> None:
    overflow = {**POLICY, "overflow_archive_enabled": True, "overflow_threshold_bytes": 10}
    host = Host(*[calling(search(str(number), api_key="sk-1")) for number in range(2)], {"content": "done"})
    result = await host.mediated(compaction_policy=overflow)
    kinds = [item["type"] for item in result.metadata["archive_items"]]
    assert "message:tool_call" in kinds
    assert "sk-1" not in repr(result.to_wire())
