"""Items of a compaction, and what has to be left of them."""

from typing import Any

import pytest

from wakeful.contracts import transcript
from wakeful.contracts.errors import InvalidValue
from wakeful.hosts.compaction.compaction_items import (
    CompactionItem,
    conservation,
    item_of,
    items_of,
    made,
    normalise_item,
    normalise_items,
    provenance,
)


@pytest.mark.spec("API-CNS-01")
def test_an_item_has_its_shape_and_an_id_that_follows_from_it() -> None:
    given: dict[str, Any] = {
        "type": "note",
        "content": {"text": "ä"},
        "metadata": {"a": 1},
        "group": "g",
        "boundary": "b",
    }
    item = normalise_item(given, 3)
    wire = item.to_wire()
    assert wire == {"schema": "wakeful.compaction-item", "version": 1, "id": item.id, **given}
    digits = item.id.removeprefix("item-")
    assert len(digits) == 16 and set(digits) <= set("0123456789abcdef")
    assert normalise_item(given, 3).id == item.id
    changes: list[dict[str, Any]] = [
        {"content": "x"},
        {"type": "x"},
        {"metadata": {}},
        {"group": "x"},
        {"boundary": "x"},
    ]
    ids = {normalise_item({**given, **change}, 3).id for change in changes} | {normalise_item(given, 4).id}
    assert len(ids) == 6 and item.id not in ids
    assert normalise_item(wire, 9) == item, "what has an id keeps it"
    assert "group" not in made("note", "x", 0).to_wire()
    for wrong in (
        {"type": " ", "content": ""},
        {"content": ""},
        {"type": "a", "content": {1}},
        {"type": "a", "content": "", "version": 2},
        {"type": "a", "content": "", "more": 1},
        "text",
    ):
        with pytest.raises(InvalidValue, match=r"^invalid_compaction_item: "):
            normalise_item(wrong)  # type: ignore[arg-type]


def test_items_from_outside_are_named_by_their_place() -> None:
    with pytest.raises(InvalidValue, match=r"^invalid_compaction_item: items\[1\]\.type: "):
        normalise_items([{"type": "a", "content": ""}, {"type": "", "content": ""}])
    with pytest.raises(InvalidValue, match="expected a list of items"):
        normalise_items("text")


@pytest.mark.spec("API-CNS-02")
def test_a_message_becomes_an_item_with_its_role_and_payload() -> None:
    call = transcript.tool_call("a/b", {"q": "x"}, tool_call_id="c", turn=1)
    item = item_of(call, 0)
    assert (item.type, item.content) == ("message:tool_call", "")
    assert item.metadata["message"] == {"role": "assistant", "payload": call.payload}
    assert item_of(transcript.text("user", "hello"), 1).type == "message:text"


def test_conservation_counts_items_and_bytes_of_everything_that_took_part() -> None:
    before = (made("t", "ää", 0), made("t", "bcd", 1), made("t", "e", 2))
    counted = provenance(before, (made("t", "S", 0),), before[2:], before[:1])
    assert counted.model_dump() == {
        "original": {"item_count": 3, "byte_count": 8},
        "compacted": {"item_count": 1, "byte_count": 1},
        "retained": {"item_count": 1, "byte_count": 1},
        "archived": {"item_count": 1, "byte_count": 4},
    }
    held = conservation(counted, enabled=True, ratio=0.75, fails=True)
    assert held.model_dump() == {
        "enabled": True,
        "minimum_conserved_byte_ratio": 0.75,
        "required_byte_count": 6,
        "conserved_byte_count": 6,
        "conserved_byte_ratio": 0.75,
        "passed": True,
        "failed_closed": False,
    }


@pytest.mark.parametrize(
    ("ratio", "enabled", "fails", "passed", "closed"),
    [
        (0.76, True, True, False, True),
        (0.76, True, False, False, False),
        (0.76, False, True, True, False),
        (0.75, True, True, True, False),
    ],
)
def test_what_is_required_is_rounded_up(ratio: float, enabled: bool, fails: bool, passed: bool, closed: bool) -> None:
    counted = provenance((made("t", "x" * 8, 0),), (), (made("t", "x" * 6, 0),))
    held = conservation(counted, enabled=enabled, ratio=ratio, fails=fails)
    assert (held.passed, held.failed_closed) == (passed, closed)


def test_nothing_is_conserved_whole() -> None:
    held = conservation(provenance(()), enabled=True, ratio=1.0, fails=True)
    assert (held.passed, held.conserved_byte_ratio) == (True, 1.0)


def test_the_payload_of_a_message_counts() -> None:
    small, large = (
        items_of([transcript.tool_result("a/b", {"result": words}, tool_call_id="c", content="")])[0]
        for words in ("x", "x" * 100)
    )
    assert isinstance(small, CompactionItem)
    assert large.byte_count - small.byte_count == 99
