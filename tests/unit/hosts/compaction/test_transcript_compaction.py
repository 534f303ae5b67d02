"""Folding transcripts: where they are cut, and what comes out."""

from typing import Any

import pytest

from wakeful.contracts import transcript
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.transcript import Message, check_pairing
from wakeful.hosts.compaction.transcript_compaction import archived, folded, skipped
from wakeful.hosts.compaction.transcript_cut import (
    ArchiveCut,
    NoCut,
    SummaryCut,
    TranscriptCompactionPolicy,
    plan,
)


def said(count: int, size: int = 1) -> tuple[Message, ...]:
    return tuple(transcript.text("user", f"{number:03}" + "x" * size) for number in range(count))


def asked(call_id: str) -> Message:
    return transcript.tool_call("a/b", {"q": call_id}, tool_call_id=call_id, turn=1)


def answered(call_id: str) -> Message:
    return transcript.tool_result("a/b", {"success": True}, tool_call_id=call_id, content="ok")


def policy(**more: Any) -> TranscriptCompactionPolicy:
    return TranscriptCompactionPolicy.normalise({"enabled": True, "max_messages": 6, "recent_messages": 2, **more})


def fold(messages: tuple[Message, ...], **more: Any) -> SummaryCut:
    planned = plan(messages, policy(**more))
    assert isinstance(planned, SummaryCut)
    return planned


@pytest.mark.spec("API-CMP-03")
def test_the_policy_has_its_fields_and_defaults_and_keeps_fewer_than_there_may_be() -> None:
    default = TranscriptCompactionPolicy().model_dump()
    assert default.pop("summary_prefix") and default.pop("overflow_stub_prefix")
    assert default == {
        "enabled": False,
        "max_messages": 40,
        "recent_messages": 12,
        "summary_role": "system",
        "summary_model": "",
        "summary_provider": "",
        "preserve_tool_boundaries": True,
        "conservation_enabled": False,
        "minimum_conserved_byte_ratio": 1.0,
        "fail_on_conservation_failure": True,
        "overflow_archive_enabled": False,
        "overflow_threshold_bytes": 0,
        "overflow_retained_messages": 0,
        "overflow_retained_bytes": 0,
        "overflow_archive_pointer": {},
        "overflow_stub_role": "system",
    }
    assert TranscriptCompactionPolicy.normalise({"max_messages": 5, "recent_messages": 5}).recent_messages == 4
    assert TranscriptCompactionPolicy.normalise({"max_messages": 5}).recent_messages == 4
    assert TranscriptCompactionPolicy.normalise({"max_messages": 5, "recent_messages": 3}).recent_messages == 3
    with pytest.raises(InvalidValue, match=r"^invalid_compaction_policy: max_message: "):
        TranscriptCompactionPolicy.normalise({"max_message": 5})


def test_a_transcript_that_is_short_or_not_to_be_folded_is_left_alone() -> None:
    assert plan(said(6), policy()) == NoCut(said(6), "within_max_messages", policy())
    assert isinstance(plan(said(7), policy()), SummaryCut)
    assert isinstance(plan(said(7), policy(enabled=False)), NoCut)
    assert isinstance(plan(said(7), policy(), summarises=False), NoCut)
    done = skipped(NoCut(said(6), "within_max_messages", policy()))
    assert (done.messages, done.status, done.events) == (said(6), "skipped", ())


@pytest.mark.spec("API-CMP-06")
def test_the_cut_never_parts_a_call_from_its_result() -> None:
    start = said(4)
    apart = (*start, asked("a"), asked("b"), answered("a"), transcript.text("user", "x"), answered("b"))
    for recent in range(1, 8):
        planned = plan(apart, policy(max_messages=8, recent_messages=recent))
        assert isinstance(planned, SummaryCut)
        check_pairing(planned.kept)
        check_pairing(planned.older)
        assert planned.at <= 4
    parted = fold(apart, max_messages=8, recent_messages=2, preserve_tool_boundaries=False)
    assert parted.at == 7, "without the rule the pair is cut"
    chained = (asked("a"), asked("b"), answered("a"), asked("c"), answered("b"), *said(1), answered("c"), *said(1))
    assert isinstance(plan(chained, policy()), NoCut), "all of it hangs together"


@pytest.mark.spec("API-CMP-11")
def test_what_waits_for_somebody_always_stays() -> None:
    question = transcript.normalise(
        {"type": "approval_required", "content": "may I?", "payload": {"action_id": "a1"}, "metadata": {}}
    )
    for waiting in (asked("open"), question):
        for preserve in (True, False):
            messages = (*said(3), waiting, *said(9))
            planned = fold(messages, preserve_tool_boundaries=preserve)
            assert (planned.at, waiting in planned.kept) == (3, True)
            first = plan((waiting, *said(9)), policy(preserve_tool_boundaries=preserve))
            assert isinstance(first, NoCut) and first.reason == "no_safe_boundary"
            large = {"overflow_archive_enabled": True, "overflow_threshold_bytes": 1}
            moved = plan(messages, policy(preserve_tool_boundaries=preserve, **large))
            assert isinstance(moved, ArchiveCut) and waiting in moved.kept
    # Once it has its answer it goes with everything else.
    approved = question.model_copy(update={"metadata": {"tool_call_id": "c"}})
    assert fold((asked("c"), approved, answered("c"), *said(9))).at == 10


@pytest.mark.spec("API-CMP-08")
def test_a_summary_stands_in_the_place_of_the_older_part() -> None:
    planned = fold(said(8), summary_role="user", summary_prefix="So far: ", summary_model="m", summary_provider="p")
    assert planned.context == {
        "policy": planned.policy.model_dump(mode="json"),
        "total_messages": 8,
        "compact_count": 6,
        "retained_count": 2,
        "boundary": {"compact_until": 5, "retain_from": 6},
    }
    item = {"type": "message:text", "content": "kept elsewhere"}
    for answer in ("much was said", {"summary": "much was said", "archived_items": [item]}):
        done = folded(planned, answer)
        assert done.status == "compacted"
        summary, *kept = done.messages
        assert tuple(kept) == said(8)[6:]
        assert (summary.role, summary.content) == ("user", "So far: much was said")
        assert summary.metadata["compaction"] == {
            "total_messages": 8,
            "compact_count": 6,
            "retained_count": 2,
            "summary_provider": "p",
            "summary_model": "m",
        }
    assert [kept.content for kept in done.archive_items] == ["kept elsewhere"]


@pytest.mark.parametrize("answer", ["", "  ", None, 7, {"summary": ""}, {}, {"summary": "x", "archived_items": [{}]}])
def test_an_answer_that_is_no_summary_leaves_the_transcript_as_it_was(answer: Any) -> None:
    done = folded(fold(said(8)), answer)
    assert (done.status, done.messages) == ("failed", said(8))
    assert [event["type"] for event in done.events] == ["compaction_started", "compaction_failed"]
    assert done.events[-1]["metadata"]["error"]


@pytest.mark.spec("API-CNS-03")
def test_what_a_compaction_says_about_itself_is_counted_and_names_its_summarizer() -> None:
    planned = fold(said(8), summary_prefix="", summary_model="m", summary_provider="p", conservation_enabled=True)
    item = {"type": "note", "content": "x" * 1_000}
    about = folded(planned, {"summary": "short", "archived_items": [item]}).metadata["compaction"]
    each = len('{"role":"user","payload":{}}') + len("000x")
    assert about["provenance"] == {
        "original": {"item_count": 8, "byte_count": 8 * each},
        "compacted": {"item_count": 1, "byte_count": 5},
        "retained": {"item_count": 2, "byte_count": 2 * each},
        "archived": {"item_count": 1, "byte_count": 1_000},
    }
    assert about["summarizer"] == {"provider": "p", "model": "m"}
    conserved = 5 + 2 * each + 1_000
    assert about["conservation"] == {
        "enabled": True,
        "minimum_conserved_byte_ratio": 1.0,
        "required_byte_count": 8 * each,
        "conserved_byte_count": conserved,
        "conserved_byte_ratio": round(conserved / (8 * each), 6),
        "passed": True,
        "failed_closed": False,
    }


@pytest.mark.spec("API-CNS-04")
def test_a_compaction_that_loses_too_much_is_none_unless_that_was_allowed() -> None:
    messages = said(8, 100)
    strict = {"conservation_enabled": True, "minimum_conserved_byte_ratio": 0.5}
    lost = folded(fold(messages, **strict), "short")
    assert (lost.status, lost.messages) == ("failed", messages)
    about = lost.metadata["compaction"]
    counts = {name: about["provenance"][name]["byte_count"] for name in ("compacted", "retained", "archived")}
    assert about["conservation"]["conserved_byte_count"] == sum(counts.values())
    assert about["conservation"]["required_byte_count"] == -(-about["provenance"]["original"]["byte_count"] // 2)
    assert about["conservation"]["failed_closed"] is True
    kept = [{"type": "message:text", "content": message.content} for message in messages[:6]]
    enough = folded(fold(messages, **strict), {"summary": "short", "archived_items": kept})
    assert (enough.status, enough.metadata["compaction"]["conservation"]["passed"]) == ("compacted", True)
    lax = folded(fold(messages, **strict, fail_on_conservation_failure=False), "short")
    assert (lax.status, lax.metadata["compaction"]["conservation"]["passed"]) == ("compacted", False)
    assert folded(fold(messages, minimum_conserved_byte_ratio=1.0), "short").status == "compacted"


@pytest.mark.spec("API-CMP-10")
def test_an_overflow_is_moved_out_without_anybody_being_asked() -> None:
    opted = {"overflow_archive_enabled": True, "overflow_threshold_bytes": 500}
    assert isinstance(plan(said(5, 100), policy(overflow_threshold_bytes=500)), NoCut), "it has to be asked for"
    assert isinstance(plan(said(4, 80), policy(**opted)), NoCut), "not above the threshold"
    planned = plan(said(5, 100), policy(**opted, overflow_archive_pointer={"where": "vault"}), summarises=False)
    assert isinstance(planned, ArchiveCut)
    done, again = archived(planned), archived(planned)
    assert done == again
    stub, *kept = done.messages
    assert (done.status, tuple(kept)) == ("archived", said(5, 100)[3:])
    assert [item.content for item in done.archive_items] == [message.content for message in said(5, 100)[:3]]
    noted = stub.metadata["compaction"]
    assert (noted["archived_count"], noted["archive_pointer"]) == (3, {"where": "vault"})
    assert noted["archive_id"] in str(stub.content)
    assert [event["type"] for event in done.events] == ["compaction_overflow_archived"]
    other = plan((transcript.text("user", "other"), *said(5, 100)[1:]), policy(**opted))
    assert isinstance(other, ArchiveCut)
    assert archived(other).messages[0].metadata["compaction"]["archive_id"] != noted["archive_id"]
    fewer = plan(said(5, 100), policy(**opted, overflow_retained_messages=4, overflow_retained_bytes=250))
    assert isinstance(fewer, ArchiveCut)
    assert fewer.kept == said(5, 100)[4:], "two of them would be more than 250 bytes"
    whole = plan(said(1, 600), policy(**opted))
    assert isinstance(whole, NoCut)
    about = skipped(whole).metadata["compaction"]
    assert (about["status"], about["reason"]) == ("skipped", "overflow_input_unsplittable")


def test_what_comes_out_is_json() -> None:
    wire = folded(fold(said(8)), "so far").to_wire()
    assert set(wire) == {"messages", "metadata", "events"}
    opted = policy(overflow_archive_enabled=True, overflow_threshold_bytes=5)
    planned = plan(said(5), opted)
    assert isinstance(planned, ArchiveCut)
    assert [item["type"] for item in archived(planned).to_wire()["archive_items"]] == ["message:text"] * 3


# --- what was asked last ---------------------------------------------------------------------------------------------


def asking_and_working(calls: int) -> tuple[Message, ...]:
    """An old question with its answer, and the newest one with what was done about it since."""
    work = (message for number in range(calls) for message in (asked(f"c{number}"), answered(f"c{number}")))
    return (transcript.text("user", "old"), transcript.text("assistant", "done"), transcript.text("user", "new"), *work)


def test_the_newest_message_of_the_user_is_never_folded() -> None:
    messages = asking_and_working(4)
    planned = fold(messages, recent_messages=2)
    assert (planned.at, planned.pinned, messages[2] in planned.older) == (9, 2, False)
    assert planned.context["boundary"] == {"compact_until": 8, "retain_from": 9, "pinned": 2}
    assert (planned.context["compact_count"], planned.context["retained_count"]) == (8, 3)
    done = folded(planned, "much was done")
    assert [message.content for message in done.messages[1:]] == ["new", "", "ok"]
    check_pairing(done.messages)
    # The next fold keeps it too, and what stands for older messages is folded before it.
    again = folded(fold((*done.messages, *asking_and_working(3)[3:]), recent_messages=2), "more was done")
    assert [message.content for message in again.messages[1:]] == ["new", "", "ok"]
    # Of an archive likewise.
    large = {"overflow_archive_enabled": True, "overflow_threshold_bytes": 1, "overflow_retained_bytes": 1}
    moved = plan(messages, policy(**large))
    assert isinstance(moved, ArchiveCut)
    assert archived(moved).messages[1] == messages[2]
    assert messages[2].content not in [item.content for item in archived(moved).archive_items]


def test_an_older_message_of_the_user_goes_before_the_newest() -> None:
    planned = fold((*asking_and_working(3), transcript.text("user", "newest"), asked("z"), answered("z")))
    assert (planned.pinned, planned.kept[0].content) == (9, "newest")
    assert [message.content for message in planned.older if message.role == "user"] == ["old", "new"]


def test_what_the_loop_says_in_the_users_place_is_no_message_of_the_user() -> None:
    nudge = transcript.text("user", "try something else", metadata={"origin": "runtime"})
    planned = fold((*asking_and_working(2), nudge, *asking_and_working(1)[3:]))
    assert planned.pinned == 2 and nudge in planned.older


def test_a_summary_alone_is_not_folded_again() -> None:
    first = folded(fold(asking_and_working(3)), "much was done")
    open_call = (
        *first.messages[:2],
        asked("open"),
        *said(0),
        *(transcript.text("assistant", str(n)) for n in range(9)),
    )
    planned = plan(open_call, policy())
    assert isinstance(planned, NoCut) and planned.reason == "no_safe_boundary"
