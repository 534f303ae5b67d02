"""Generated exact replacements: byte for byte right, or refused with a count and lines that are true."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.gates.edit_corpus import edits
from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import ToolError
from wakeful.tools.local.exact_replacement import replace_exactly

CORPUS = edits(300, first=1_000)


def refusal(data: bytes, old: str, new: str) -> ToolError:
    with pytest.raises(ToolReported) as raised:
        replace_exactly("f", data, old, new)
    error = raised.value.error
    assert error.recovery_hint and error.details and error.details["field"] in ("old_text", "new_text")
    return error


def test_a_piece_of_a_file_is_replaced_byte_for_byte() -> None:
    """The piece is cut out of the raw file and shown to the tool with LF, as a model sees it."""
    counted: Counter[str] = Counter()
    for edit in CORPUS:
        rng = random.Random(edit.seed)
        start = rng.randrange(len(edit.before))
        stop = min(len(edit.before), start + rng.randint(1, 4))
        head, piece, tail = ("".join(edit.before[a:b]) for a, b in ((0, start), (start, stop), (stop, None)))
        ends = {line[len(line.rstrip("\r\n")) :] for line in edit.before[start:stop]} - {""}
        whole = (head + piece + tail).replace("\r\n", "\n")
        if len(ends) > 1:
            continue  # what the new lines should end with is a matter of taste there
        old = piece.replace("\r\n", "\n")
        new = f"new\n  lines 日本 {edit.seed}\n" if old.endswith("\n") else f"new\nlast {edit.seed}"
        if not ends:  # no line end in the piece: that of the file
            crlf = edit.old.count(b"\r\n")
            ends = {"\r\n" if crlf * 2 > edit.old.count(b"\n") else "\n"}
        expected = (head + new.replace("\n", next(iter(ends))) + tail).encode()
        times = sum(whole.startswith(old, at) for at in range(len(whole)))
        if times == 1:
            replaced = replace_exactly("f", edit.old, old, new)
            assert replaced.data == expected, edit.seed
            assert replaced.lines == [start + 1]
            counted["replaced"] += 1
        else:
            error = refusal(edit.old, old, new)
            assert error.kind == "several_matches" and error.details
            assert error.details["count"] == times and str(times) in error.message
            assert start + 1 in error.details["lines"] or times > 8
            counted["refused"] += 1
    assert counted["replaced"] >= 150 and counted["refused"] >= 20, counted


FILES = st.lists(st.sampled_from(["a", "b", "\n", "\r\n"]), max_size=30).map("".join)


@given(FILES, st.text("ab\n", min_size=1, max_size=4), st.text("xy\n", max_size=4))
@settings(max_examples=400, deadline=None)
def test_only_the_replaced_piece_differs(text: str, old: str, new: str) -> None:
    data = text.encode()
    seen = text.replace("\r\n", "\n")
    times = sum(seen.startswith(old, at) for at in range(len(seen)))
    if times == 1 and old != new:
        replaced = replace_exactly("f", data, old, new).data.decode()
        assert replaced.replace("\r\n", "\n") == seen.replace(old, new)
        at = seen.index(old)
        before, after = seen[:at], seen[at + len(old) :]
        assert _endings(replaced)[: before.count("\n")] == _endings(text)[: before.count("\n")]
        count = after.count("\n")
        assert count == 0 or _endings(replaced)[-count:] == _endings(text)[-count:]
    elif times > 1 and old != new:
        assert refusal(data, old, new).kind == "several_matches"
        everywhere = replace_exactly("f", data, old, new, everywhere=True).data.decode()
        assert everywhere.replace("\r\n", "\n") == seen.replace(old, new)
    elif times == 0:
        assert refusal(data, old, new).kind in ("no_match", "no_change")


def _endings(text: str) -> list[bool]:
    return [line.endswith("\r") for line in text.split("\n")[:-1]]


def test_a_file_that_is_not_utf_8_keeps_its_other_bytes() -> None:
    assert replace_exactly("f", b"caf\xe9\r\nab\xff", "ab", "xy").data == b"caf\xe9\r\nxy\xff"
    assert replace_exactly("f", "\ufeffone\r\ntwo".encode(), "one\ntwo", "1\n2").data == "\ufeff1\r\n2".encode()


def test_a_text_that_is_not_there_is_told_with_the_nearest_line() -> None:
    data = b"def total(items):\n    return sum(items)\n\ndef other():\n    pass\n"
    tabs = refusal(data, "def total(items):\n\treturn sum(items)", "x")
    assert (tabs.kind, tabs.details and tabs.details["nearest_line"]) == ("no_match", 2)
    assert "line 2, '    return sum(items)', where '\\treturn sum(items)' is expected (only white space" in tabs.message
    typo = refusal(data, "def totale(items):", "x")
    assert "Nearest: line 1, 'def total(items):'" in typo.message
    nothing = refusal(data, "zzzzzz", "x")
    assert "no line of it is like 'zzzzzz'" in nothing.message
    ending = refusal(b"a\nb", "b\n", "c\n")
    assert "the last line of the file has none" in ending.message


def test_an_edit_that_says_nothing_is_refused() -> None:
    assert refusal(b"a", "", "x").kind == "invalid_parameters"
    assert refusal(b"a", "a", "a").kind == "no_change"
    assert refusal(b"aaa", "aa", "x").message == "old_text stands 2 times in 'f', at lines 1, 1"


def test_a_replacement_that_would_fill_the_memory_is_refused() -> None:
    with pytest.raises(ToolReported) as raised:
        replace_exactly("f", b"a" * 100_000, "a", "x" * 10_000, everywhere=True)
    assert raised.value.error.kind == "too_large"
    assert "1,000 times or more" in refusal(b"a" * 100_000, "a", "b").message
