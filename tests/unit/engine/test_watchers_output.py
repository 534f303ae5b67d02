"""Lines from pieces: whole ones, and the beginning of one that is too long, without half a secret."""

from hypothesis import given
from hypothesis import strategies as st

from wakeful.engine.watchers import LEFT_OUT, LINE_CHARS, OutputLines

KEY = "sk-proj-4f9a1c7e2b8d6035af91c7e2"


def hide(text: str) -> str:
    return text.replace(KEY, "[redacted]")


@given(st.lists(st.text(alphabet="ab\n", max_size=8)))
def test_pieces_come_to_the_lines_that_are_whole(pieces: list[str]) -> None:
    lines = OutputLines(hide)
    said = [lines.take(piece) for piece in pieces]
    whole = "".join(pieces)
    assert "".join(said) == whole[: whole.rfind("\n") + 1]
    assert all(each == "" or each.endswith("\n") for each in said)


def test_of_a_line_that_is_too_long_the_beginning_is_shown_and_no_half_of_a_secret() -> None:
    lines = OutputLines(hide)
    before = "x" * (LINE_CHARS - 10)  # the secret begins where the line is cut
    said = [lines.take(piece) for piece in (before + KEY[:20], KEY[20:], "y" * 2 * LINE_CHARS, "z" * 5, "z\nnext\n")]
    assert said == ["", "", f"{before}[redacted]{LEFT_OUT}", "", "next\n"]
