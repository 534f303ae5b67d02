"""The list of what `make weather` treats apart names what there is."""

import re
from pathlib import Path

from kit.weather.expected import COUNTING, EXPECTED_FAILURES, FILES_LEFT_OUT, FINE, FREE, SHORT, file_left_out

JOURNEYS = Path(__file__).resolve().parents[1] / "journeys"
NAMED = [*COUNTING, *EXPECTED_FAILURES, *FINE, *FREE, *SHORT]


def test_every_file_and_every_test_of_the_list_is_there() -> None:
    assert [name for name in FILES_LEFT_OUT if not (JOURNEYS / f"{name}.py").exists()] == []
    tests = [
        name
        for path in JOURNEYS.rglob("test_*.py")
        if str(path.relative_to(JOURNEYS)).removesuffix(".py") not in FILES_LEFT_OUT
        for name in re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text(), re.M)
    ]
    gone = [name for name in NAMED if not any(each.endswith(name.partition("[")[0]) for each in tests)]
    assert gone == [], "they have other names now, or their file is left out"


def test_no_test_is_treated_in_two_ways() -> None:
    assert len(NAMED) == len(set(NAMED))


def test_a_file_is_left_out_with_all_its_tests() -> None:
    assert file_left_out("tests/journeys/test_money.py::test_three_subtasks_of_one_dollar_all_run[good]")
    assert file_left_out("tests/journeys/cli/test_every_verb.py::test_every_command_has_a_journey")
    assert file_left_out("tests/journeys/test_readme.py::test_every_program_runs") is None
