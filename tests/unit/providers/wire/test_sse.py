"""Server-sent events: what comes out does not depend on where the bytes were cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.providers.wire import sse
from wakeful.providers.wire.sse import EventTooLarge, SseEvent, SseParser

MIXED = (
    b'\xef\xbb\xbf: hello\n\nevent: start\ndata: {"a": 1}\n\n'
    b"data: one\ndata:two\ndata\n\nid: 7\nretry: 10\nevent:named\ndata:  padded\n\n"
    b"event: no data\n\n\n\ndata: \xc3\xa9\n\ndata: [DONE]\n\n"
)
EXPECTED = [
    SseEvent("start", b'{"a": 1}'),
    SseEvent("message", b"one\ntwo\n"),
    SseEvent("named", b" padded"),
    SseEvent("message", b"\xc3\xa9"),
    SseEvent("message", b"[DONE]"),
]


def parsed(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_all_line_ends_and_field_forms_are_understood(end: bytes) -> None:
    assert parsed(MIXED.replace(b"\n", end)) == EXPECTED


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_cut_at_any_byte_changes_nothing(end: bytes) -> None:
    whole = MIXED.replace(b"\n", end)
    for at in range(len(whole) + 1):
        assert parsed(whole[:at], whole[at:]) == EXPECTED, at
    assert parsed(*(whole[at : at + 1] for at in range(len(whole)))) == EXPECTED


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_is_there_with_the_last_byte_of_its_empty_line_at_the_latest(end: bytes) -> None:
    parser = SseParser()
    assert parser.feed(b"data: 1" + end) == []
    assert parser.feed(end) == [SseEvent("message", b"1")]


@pytest.mark.parametrize("cut", [b"data: 1", b"data: 1\n", b"event: x\n", b"data: 1\r\n"])
def test_an_event_that_was_not_closed_does_not_exist(cut: bytes) -> None:
    assert parsed(cut) == []


@given(st.lists(st.sampled_from([b"data: ", b"event: e", b"x", b"\n", b"\r", b"\r\n", b":", b" ", b"\xff"])), st.data())
def test_any_bytes_in_any_pieces_give_the_same_events(pieces: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    ends = [*cuts, len(whole)]
    assert parsed(*(whole[a:b] for a, b in zip([0, *cuts], ends, strict=True))) == parsed(whole)


def test_a_long_line_in_many_pieces_is_joined_once() -> None:
    parser = SseParser()
    piece = b"x" * 1000
    assert parser.feed(b"data: ") == []
    for _ in range(1000):
        assert parser.feed(piece) == []
    assert parser.feed(b"\n\n") == [SseEvent("message", piece * 1000)]


def test_an_event_without_an_end_is_refused_before_it_fills_the_memory() -> None:
    parser = SseParser()
    chunk = b"x" * (sse.MAX_EVENT_BYTES // 4)
    for _ in range(4):
        parser.feed(chunk)
    with pytest.raises(EventTooLarge, match="without an end"):
        parser.feed(chunk)
