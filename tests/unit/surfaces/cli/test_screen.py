"""Tables fit the screen, and ids are shortened to what still means one record."""

import io

import pytest
from rich.cells import cell_len

from wakeful.surfaces.cli.screen import coloured, columns, folded, short, width
from wakeful.system import UniqueIds

LONG = "turn_01M7MFGSFH6JBKDE"


def test_columns_are_as_wide_as_they_need_to_be() -> None:
    assert columns([("long one", "x"), ("b", "\x1b")], ("A", "B")) == ["A         B", "long one  x", "b         \\x1b"]


@pytest.mark.parametrize("screen", ["80", "120"])
def test_a_table_is_cut_to_the_screen_and_names_stay_whole(monkeypatch: pytest.MonkeyPatch, screen: str) -> None:
    monkeypatch.setenv("COLUMNS", screen)
    rows = [(LONG, "suspended", "3 min", "a-rather-long-name-of-an-agent", "words " * 40)]
    titles = ("TURN", "STATE", "AGE", "AGENT", "PROMPT")
    cut = columns(rows, titles)
    assert max(map(len, cut)) == int(screen)
    assert cut[1].startswith(f"{LONG}  suspended  3 min  ") and cut[1].endswith("…")
    whole = columns(rows, titles, wide=True)
    assert whole[1].endswith(("words " * 40).rstrip())


def test_the_widest_column_gives_way_before_the_last_one_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (_, line) = columns([(LONG, "m" * 60, "n" * 60)], ("TURN", "MODEL", "WHY"))
    assert len(line) == 80
    assert line.count("…") == 2 and line.startswith(LONG)


def test_a_long_name_is_cut_in_its_middle_and_leaves_room_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = [
        (f"a-very-long-name-of-an-agent-for-the-shop-number-{n}", "paused", "2026-11-19 07:00", "0") for n in (1, 2)
    ]
    _, first, second = columns([(*row, "1 to decide") for row in rows], ("AGENT", "STATE", "NEXT WAKE", "USD", "NEEDS"))
    assert max(len(first), len(second)) <= 80
    assert first.startswith("a-very-long") and "…" in first and first.split()[0] != second.split()[0]
    assert "paused  2026-11-19 07:00  0    1 to decide" in first


def test_letters_that_take_two_columns_are_counted_as_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    cut = columns([("漢字", "e\u0301", "漢" * 40), ("abcd", "x", "y")], ("A", "B", "C"))
    assert [cell_len(line) for line in cut] == [10, 40, 10]
    assert cut[1].startswith("漢字  e\u0301  漢") and cut[1].endswith("…")


def test_a_screen_that_nobody_knows_has_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert width() == 80 or width() > 0
    monkeypatch.setenv("COLUMNS", "132")
    assert width() == 132


def test_an_id_is_shortened_and_other_names_are_not() -> None:
    whole = UniqueIds().new("turn")
    assert whole.startswith(short(whole)) and len(short(whole)) == len("turn_") + 16
    assert [short(name) for name in ("ticket-981", "call_1_1", "toolu_01abc", "")] == [
        "ticket-981", "call_1_1", "toolu_01abc", "",
    ]  # fmt: skip


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_is_folded_below_its_last_column_on_a_terminal_and_whole_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    line = "  near     one-name, two-names, three-names"
    assert folded(line, Tty()) == "  near     one-name, two-names,\n           three-names"
    assert folded(line, io.StringIO()) == line
    command = "  next     wakeful models test a-model-with-a-long-name"
    assert folded(command, Tty()) == command, "it can be copied"


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert coloured("Error:", Tty()) == "\x1b[1;31mError:\x1b[0m"
    assert coloured("Error:", io.StringIO()) == "Error:"
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("Error:", Tty()) == "Error:"
