"""What a tool returned, as the model is shown it."""

import enum
import json
import math
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_serializer

from wakeful.contracts.content import File, Image, Text
from wakeful.tools.results import MAX_SHOWN_BYTES, ResultRefused, cut_text, limit, parts_from, show

PICTURE = Image(data=b"\x89PNG", media_type="image/png")


class Colour(enum.StrEnum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: str


class Answer(BaseModel):
    order: str
    when: date


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ("words", "words"),
        (None, "(no output)"),
        ("", "(no output)"),
        (b"", "(no output)"),
        (7, "7"),
        (True, "true"),
        (1.5, "1.5"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (["a", "b"], '["a","b"]'),
        (Point(1, "é"), '{"x":1,"y":"é"}'),
        (Answer(order="A", when=date(2026, 1, 2)), '{"order":"A","when":"2026-01-02"}'),
        (Colour.RED, '"red"'),
        ({1: {2}}, '{"1":[2]}'),
        (b"bytes", "bytes"),
        (bytearray(b"more"), "more"),
        ({"data": b"\xff"}, '{"data":"_w=="}'),
    ],
)
def test_values_as_text(returned: Any, text: str) -> None:
    assert parts_from(returned) == (Text(text),)


def test_parts_stay_parts() -> None:
    document = File(name="a.pdf", data=b"%PDF")
    assert parts_from(PICTURE) == (PICTURE,)
    assert parts_from([Text("see"), "this", PICTURE, document]) == (Text("see"), Text("this"), PICTURE, document)


def test_binary_data_is_described_and_attached() -> None:
    text, attached = parts_from(b"\xff\x00\xfe")
    assert text == Text("[3 bytes of binary data, attached as a file]")
    assert isinstance(attached, File) and attached.data == b"\xff\x00\xfe"


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ("a\x00b", "a\ufffdb"),
        ({"k": Point(1, "\udfff")}, '{"k":{"x":1,"y":"\ufffd"}}'),
        ({"n": math.nan, "i": -math.inf}, '{"n":"NaN","i":"-Infinity"}'),
    ],
)
def test_what_utf8_json_or_a_database_cannot_hold_is_replaced(returned: Any, text: str) -> None:
    assert parts_from(returned) == (Text(text),)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_data_becomes_text_that_can_be_stored(value: Any) -> None:
    for part in parts_from(value):
        assert isinstance(part, Text)
        stored = json.dumps(part.text).encode()
        assert "\x00" not in part.text and json.loads(stored) == part.text


def _cycle() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


@pytest.mark.parametrize("returned", [object(), _cycle(), {"f": lambda: None}, {"nested": [object()]}])
def test_what_has_no_json_form_is_refused_and_named(returned: Any) -> None:
    with pytest.raises(ResultRefused, match=f"returned a {type(returned).__qualname__} that has no JSON form"):
        show(returned)


class Broken(BaseModel):
    x: int = 1

    @field_serializer("x")
    def _fail(self, value: int) -> int:
        raise ZeroDivisionError("mine")


def test_a_serialiser_that_raises_is_refused_and_not_a_crash() -> None:
    with pytest.raises(ResultRefused, match=r"returned a Broken .*mine"):
        show(Broken())


def test_a_short_result_is_shown_whole() -> None:
    shown = show("x" * MAX_SHOWN_BYTES)
    assert shown == ((Text("x" * MAX_SHOWN_BYTES),), None, MAX_SHOWN_BYTES)


@pytest.mark.parametrize("letter", ["x", "é", "漢", "\U0001f600"])
def test_a_long_result_is_cut_between_characters_and_says_how_much_there_was(letter: str) -> None:
    text = letter * MAX_SHOWN_BYTES * 2
    (part,), whole, size = show(text)
    assert isinstance(part, Text)
    kept, notice = part.text.split("\n")
    assert set(kept) == {letter}
    assert len(part.text.encode()) <= MAX_SHOWN_BYTES
    assert len(part.text.encode()) > MAX_SHOWN_BYTES - 4
    assert notice == f"[cut here: {MAX_SHOWN_BYTES:,} of {len(text.encode()):,} bytes are shown]"
    assert (whole, size) == (text.encode(), len(text.encode()))


def test_the_limit_holds_for_all_texts_of_a_result_together_and_pictures_stay() -> None:
    shown = limit([Text("a" * 60), PICTURE, Text("b" * 60), Text("c" * 60)], most=100)
    texts = [part.text for part in shown.parts if isinstance(part, Text)]
    assert sum(len(text) for text in texts) <= 100
    assert texts[0].startswith("a" * 40) and "of 180 bytes" in texts[-1]
    assert PICTURE in shown.parts
    assert shown.whole == b"\n".join([b"a" * 60, b"b" * 60, b"c" * 60])
    assert shown.size == 184


def test_a_hundred_megabytes_are_cut_like_anything_else() -> None:
    (part,), whole, size = show("x" * 100_000_000)
    assert isinstance(part, Text) and len(part.text) == MAX_SHOWN_BYTES
    assert whole is not None and len(whole) == size == 100_000_000


@given(st.one_of(st.integers(), st.text(max_size=2_000), st.booleans(), st.none(), st.floats()))
def test_the_short_way_shows_the_same_as_the_long_one(value: Any) -> None:
    assert show(value) == limit(parts_from(value))


def test_a_text_is_cut_between_characters() -> None:
    assert [cut_text("aäb", most) for most in range(5)] == ["", "a", "a", "aä", "aäb"]
