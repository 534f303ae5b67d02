"""The goldens themselves: none is left over, a difference is noticed, and what varies is replaced and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pins.goldens import FOLDER, RECORDING, check_golden, difference, recorded
from pins.journeys import JOURNEYS
from pins.placeholders import Placeholders
from pins.scenarios import SCENARIOS
from pins.shapes import shape_of


def test_no_golden_is_left_over_from_something_that_is_gone() -> None:
    """Those of a journey's JSON, of schemas and of the terminal UI are looked after where they are made."""
    made = {f"events/{name}.json" for name in SCENARIOS} | {f"cli/{name}.txt" for name in (*JOURNEYS, "help")}
    made |= {f"screen/{name}.txt" for name in JOURNEYS}
    made |= {"addresses.txt", "json/run-result.txt"}
    elsewhere = tuple(f"json/{name}/" for name in JOURNEYS)
    for name in sorted(recorded() - made):
        if not name.startswith((*elsewhere, "schemas/", "tui/")):
            if RECORDING:
                (FOLDER / name).unlink()
            else:
                pytest.fail(f"tests/pins/goldens/{name} is made by nothing: make pins")


@pytest.mark.skipif(RECORDING, reason="this one would be recorded")
def test_what_differs_from_its_golden_is_told_with_what_to_do() -> None:
    with pytest.raises(AssertionError, match="make pins, read the diff"):
        check_golden("cli/help.txt", "something else\n")
    told = difference("x.txt", "one\ntwo\n", "one\nthree\n")
    assert "-two\n+three" in told and "tests/pins/goldens/x.txt" in told


def test_twenty_scenarios_at_least_are_recorded() -> None:
    assert len(SCENARIOS) >= 20


def test_what_is_new_in_each_run_is_replaced_and_what_is_the_same_stays_the_same(tmp_path: Path) -> None:
    one, two = "turn_01M7JX2HREQBFWB8ZHWEMHD9HW", "turn_01M7JX2HREQBFWB9ZHWEMHD9HW"
    keep = Placeholders(folder=tmp_path)
    assert keep.text(f"{one} {two} {one} call_1_1") == "<turn 1> <turn 2> <turn 1> call_1_1"
    assert keep.text(f"{tmp_path}/a.txt at 2026-01-01T10:00:00.123Z") == "<folder>/a.txt at <time>"
    assert keep.words("took 12 ms, then 1.5 s; doubling to 8 s") == "took <took>, then <took>; doubling to 8 s"
    assert keep.value({"duration_ms": 1.5, "timeout_ms": 30, "started_at": 17.0, "attempt": 2, "late": True}) == {
        "duration_ms": "<ms>",
        "timeout_ms": 30,
        "started_at": "<time>",
        "attempt": 2,
        "late": True,
    }


def test_a_shape_has_every_field_and_no_value() -> None:
    assert shape_of([{"a": [{"b": 1}, {"b": None}], "c": {}}, {"a": [], "d": True}]) == [
        "(the document): object",
        "a: array",
        "a[]: object",
        "a[].b: null | number",
        "c: object",
        "d: boolean",
    ]


@pytest.mark.skipif(RECORDING, reason="it would record again")
def test_recording_writes_what_was_found(tmp_path: Path) -> None:
    """In a process of its own, with goldens of its own."""
    program = (
        "import sys; from pathlib import Path; from pins import goldens\n"
        "goldens.FOLDER = Path(sys.argv[1])\n"
        "(goldens.FOLDER / 'json').mkdir(); (goldens.FOLDER / 'json/old.txt').write_text('old')\n"
        "goldens.check_goldens({'json/new.txt': 'new'}, alone_in='json')\n"
    )
    environ = {**os.environ, "WAKEFUL_RECORD_PINS": "1", "PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], env=environ, check=True)
    assert {path.name: path.read_text() for path in (tmp_path / "json").iterdir()} == {"new.txt": "new"}
