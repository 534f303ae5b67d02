"""Output of a task in files: its beginning and its end, bounded."""

import os
from pathlib import Path

import pytest

from wakeful.processes.output_segments import OutputPiece, OutputSegments, StoredOutput, read_output, read_piece


def moved(segments: OutputSegments, folder: Path) -> OutputSegments:
    segments.move_to(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
    return segments


@pytest.mark.parametrize("promoted_after", [0, 3, 9, 100])
def test_the_beginning_and_the_end_are_kept_whenever_it_became_a_task(tmp_path: Path, promoted_after: int) -> None:
    segments = OutputSegments(head_bytes=4, segment_bytes=3)
    for count, byte in enumerate(b"abcdefghijklmnopqrstuvw"):
        if count == promoted_after:
            moved(segments, tmp_path)
        segments.take(bytes([byte]))
    if promoted_after == 100:
        moved(segments, tmp_path)
    assert segments.total_bytes == 23
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output", "output.19", "output.22"]
    assert read_output(str(tmp_path), 100) == StoredOutput(b"abcd", b"tuvw", 15)
    assert read_output(str(tmp_path), 2) == StoredOutput(b"ab", b"vw", 19)


@pytest.mark.parametrize(("said", "most", "read"), [
    (b"", 9, StoredOutput(b"", b"", 0)),
    (b"abc", 9, StoredOutput(b"abc", b"", 0)),
    (b"abcdef", 9, StoredOutput(b"abcd", b"ef", 0)),
    (b"abcdef", 2, StoredOutput(b"ab", b"ef", 2)),
    (b"abcd", 1, StoredOutput(b"a", b"d", 2)),
    (b"abcdefgh", 3, StoredOutput(b"abc", b"fgh", 2)),
])  # fmt: skip
def test_a_reader_is_shown_both_ends_and_how_much_is_between(
    tmp_path: Path, said: bytes, most: int, read: StoredOutput
) -> None:
    segments = moved(OutputSegments(head_bytes=4, segment_bytes=3), tmp_path)
    segments.take(said)
    assert read_output(str(tmp_path), most) == read
    assert read.total_bytes == len(said)


@pytest.mark.parametrize(("place", "most", "piece"), [
    (0, 99, OutputPiece(0, b"abcdefg")),
    (2, 3, OutputPiece(2, b"cde")),
    (4, 99, OutputPiece(4, b"efg")),
    (7, 99, OutputPiece(7, b"")),
])  # fmt: skip
def test_a_piece_goes_on_in_the_next_file(tmp_path: Path, place: int, most: int, piece: OutputPiece) -> None:
    moved(OutputSegments(head_bytes=4, segment_bytes=3), tmp_path).take(b"abcdefg")
    assert read_piece(str(tmp_path), place, most) == piece


def test_a_piece_ends_where_something_was_dropped_and_says_so(tmp_path: Path) -> None:
    moved(OutputSegments(head_bytes=4, segment_bytes=3), tmp_path).take(b"abcdefghijklmnop")
    assert read_piece(str(tmp_path), 1, 99) == OutputPiece(1, b"bcd", ends_at_gap=True)
    assert read_piece(str(tmp_path), 4, 99) == OutputPiece(10, b"klmnop")


def test_where_nothing_was_written_there_is_no_output(tmp_path: Path) -> None:
    assert read_output(str(tmp_path), 10) is None
    assert read_output(str(tmp_path / "missing"), 10) is None


def test_what_cannot_be_written_is_dropped_and_told(tmp_path: Path) -> None:
    segments = OutputSegments(head_bytes=4, segment_bytes=3)
    (tmp_path / "output").mkdir()
    moved(segments, tmp_path).take(b"abc")
    assert (segments.total_bytes, segments.problem != "") == (3, True)
