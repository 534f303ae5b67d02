"""What a terminal would obey is shown as text, and stays readable to programs."""

import json

import pytest

from wakeful.surfaces.cli.shown_values import (
    arguments_text,
    duration,
    json_text,
    local_times,
    moment,
    one_line,
    plain,
    size,
)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b31m", "\\x9b31m"),
        ("bell\x07 back\x08", "bell\\x07 back\\x08"),
        ("over\rwritten", "over\\x0dwritten"),
        ("turned \u202egnp.exe", "turned \\u202egnp.exe"),
        ("half \ud83d", "half \\ud83d"),
        ("tab\tline\nend äöü 漢字 🙂", "tab\tline\nend äöü 漢字 🙂"),
    ],
)
def test_control_characters_are_spelled_out_and_words_are_left_alone(raw: str, shown: str) -> None:
    assert plain(raw) == shown


def test_json_is_safe_to_show_and_means_the_same() -> None:
    data = {"text": "\x1b \x9b \u202e \ud83d ä\n"}
    text = json_text(data)
    assert not set("\x1b\x9b\u202e\ud83d\n") & set(text)
    assert "ä" in text
    assert json.loads(text) == data


def test_a_line_is_one_line_and_not_too_long() -> None:
    assert one_line("a\n b\t c") == "a b c"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"
    assert arguments_text({"order": "A\n17", "cents": 3}) == 'order="A\\n17", cents=3'
    assert arguments_text(None) == ""


def test_amounts_are_told_as_people_say_them() -> None:
    assert [duration(ms) for ms in (0.44, 12.3, 3120)] == ["0.4 ms", "12 ms", "3.1 s"]
    assert [size(count) for count in (12, 3400, 5_600_000, 7_800_000_000)] == ["12 bytes", "3.4 kB", "5.6 MB", "7.8 GB"]


def test_times_of_the_log_are_shown_as_the_readers_own() -> None:
    own = moment(1_795_071_600_000_000)
    assert local_times("due at 2026-11-19T07:00:00.000Z, or 2026-11-19T07:00:00Z.") == f"due at {own}, or {own}."
    assert local_times("ops-20261119T035728Z, 2026-11-19") == "ops-20261119T035728Z, 2026-11-19"
