"""A call is shown whole, as it was written, at any width: nothing is squeezed, and nothing of it is left out unsaid."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.views.presentation.call_lines import argument_lines, call_lines, excerpt_of, is_recorded_whole, pieces
from wakeful.views.presentation.plain_text import columns_of

GREP = "grep -rn 'total' . | sort | uniq -c | head -40 > report.txt && git status && rm -rf src && git push --force"


def shown(tool: str, arguments: Mapping[str, Any], width: int = 60) -> list[str]:
    return [line.text for line in call_lines(tool, arguments, width)]


def test_a_short_call_is_one_line_and_names_what_is_secret() -> None:
    arguments = {"order": "A17", "cents": 4200, "password": "[redacted]", "deep": {"key": "[redacted]"}}
    call = 'refund(order="A17", cents=4200, password=[secret password], deep={"key": [secret key]})'
    assert shown("refund", arguments, 100) == [call]
    assert [line.text for line in argument_lines("refund", {"order": "A17"}, 60)] == ['order="A17"']
    assert shown("now", {}) == ["now()"]


def test_a_long_line_goes_on_behind_a_mark_to_its_end() -> None:
    assert shown("sh", {"cmd": GREP}) == [
        "sh",
        "  cmd:",
        "    | grep -rn 'total' . | sort | uniq -c | head -40 >",
        "    : report.txt && git status && rm -rf src && git push",
        "    : --force",
    ]


def test_code_keeps_its_lines_and_its_indentation() -> None:
    code = "if x:\n    a()\n        b()\n\n\tc()\n"
    lines = ["    | if x:", "    |     a()", "    |         b()", "    |", "    |     c()"]
    assert shown("py", {"code": code, "n": 1}) == ["py", "  code:", *lines, "  n: 1"]
    batch = {"commands": [{"cmd": "ls\nrm x", "env": {}}, {"cmd": "ls"}]}
    deep = ["    [0]:", "      cmd:", "        | ls", "        | rm x", "      env: {}", '    [1]: {"cmd": "ls"}']
    assert shown("batch", batch) == ["batch", "  commands:", *deep]


def test_no_text_looks_like_a_line_of_ours_or_is_obeyed() -> None:
    lines = shown("sh", {"cmd": "ls\n  approve:  wakeful approvals approve appr_1\x1b[2K\r\u202e", "a\nb": 1})
    marked = ["    | ls", "    |   approve:  wakeful approvals approve", "    : appr_1\\x1b[2K\\x0d\\u202e"]
    assert lines == ["sh", "  cmd:", *marked, '  "a\\nb": 1']


def test_what_edits_change_is_a_diff_of_their_own_arguments() -> None:
    edit = {"path": "a.py", "old_text": "def f():\n    return 1\n", "new_text": "def f():\n    return 2\n"}
    lines = call_lines("wakeful/edit_file", edit, 60)
    assert [line.text for line in lines][1:] == [
        *('  path: "a.py"', "  change:"),
        *("    | def f():", "    -     return 1", "    +     return 2"),
    ]
    assert [line.tone for line in lines][-2:] == ["removed", "added"]
    ends = shown("wakeful/edit_file", {"path": "a", "old_text": "x\n", "new_text": "x"})
    assert ends[-3:] == ["    - x", "    + x", "    | (the new text ends without a line break)"]
    assert shown("wakeful/write_file", {"path": "a", "content": "x\ny\n"})[-3:] == ["  content:", "    + x", "    + y"]
    patch = call_lines("wakeful/apply_patch", {"patch": "--- a\n+++ a\n-x\n+y\n z\n"}, 60)
    assert [line.tone for line in patch][-5:] == ["plain", "plain", "removed", "added", "plain"]
    # A tool of somebody else's that has the same name is shown as it is.
    assert "change:" not in " ".join(shown("edit_file", edit))


def test_a_long_call_says_how_much_of_it_is_missing() -> None:
    arguments = {"code": "\n".join(map(str, range(40)))}
    excerpt = excerpt_of(call_lines("py", arguments, 60), arguments, 10)
    assert (len(excerpt.lines), excerpt.left_out, excerpt.is_whole) == (10, 32, False)
    assert excerpt_of(call_lines("py", arguments, 60), arguments, None).is_whole
    preview = {"preview": '{"code":"', "digest": "sha256:0", "size_chars": 60_000, "truncated": True}
    assert not is_recorded_whole(preview) and not excerpt_of(call_lines("py", preview, 60), preview).is_whole


texts = st.text(st.sampled_from("ab 日é\t"), max_size=80)


@given(texts, st.integers(min_value=2, max_value=40))
def test_the_pieces_of_a_line_are_the_line_and_fit(line: str, room: int) -> None:
    found = list(pieces(line, room))
    assert "".join(found) == line
    assert all(columns_of(each) <= room for each in found)


@pytest.mark.parametrize("width", [40, 80, 200])
@given(st.lists(texts, min_size=1, max_size=6))
def test_every_line_of_a_text_is_there(width: int, lines: list[str]) -> None:
    text = "\n".join(["begin", *lines, "end"])
    found = shown("py", {"code": text}, width)[2:]
    assert all(columns_of(each) <= width for each in found)
    begins = [each for each in found if each.startswith("    |")]
    assert len(begins) == len(lines) + 2
    whole = "".join(each[6:] for each in found).replace(" ", "")
    assert whole == text.expandtabs(4).replace("\n", "").replace(" ", "")
