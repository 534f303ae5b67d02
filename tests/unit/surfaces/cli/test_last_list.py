"""A row of the last list stands for its id; what was not shown, or long ago, or elsewhere, stands for nothing."""

import json
import time
from inspect import signature
from pathlib import Path

import pytest

from wakeful.service.serving.daemon_client import DaemonAddress
from wakeful.surfaces.cli.command_table import COMMANDS, ROWS
from wakeful.surfaces.cli.last_list import LISTS, id_of, is_number, remember
from wakeful.surfaces.cli.main import app_of
from wakeful.surfaces.cli.places import StoreAddress
from wakeful.surfaces.cli.problems import WrongRequest

HERE = StoreAddress("/homes/anna/wakeful.db", True)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_a_number_is_the_row_that_was_shown() -> None:
    remember("approvals", ["appr_one", "appr_two"], HERE)
    assert id_of("2", ["approvals"], HERE) == "appr_two"
    assert [is_number(word) for word in ("2", "0981", "12345", "one", "", "²", None, 2)] == [True] * 2 + [False] * 6


def test_each_place_has_its_own_lists(tmp_path: Path) -> None:
    file, link = tmp_path / "runs.db", tmp_path / "link.db"
    link.symlink_to(file)
    far, other = (DaemonAddress(f"http://{name}:7717", flag=f" --connect {name}") for name in ("nas", "office"))
    remember("approvals", ["appr_here"], HERE)
    remember("approvals", ["appr_file"], StoreAddress(str(file), False))
    remember("approvals", ["appr_far"], StoreAddress("", False, far))
    near = DaemonAddress("/homes/anna/wakeful.sock")
    assert id_of("1", ["approvals"], StoreAddress(HERE.path, True, near)) == "appr_here"
    assert id_of("1", ["approvals"], StoreAddress(str(link), False)) == "appr_file"
    assert id_of("1", ["approvals"], StoreAddress("", False, far)) == "appr_far"
    with pytest.raises(WrongRequest, match="No list was shown yet"):
        id_of("1", ["approvals"], StoreAddress("", False, other))


@pytest.mark.parametrize(("word", "why"), [("3", "the last list had 2 rows"), ("0", "the last list had 2 rows")])
def test_a_row_that_was_not_there_is_refused(word: str, why: str) -> None:
    remember("approvals", ["appr_one", "appr_two"], HERE)
    with pytest.raises(WrongRequest, match=why) as problem:
        id_of(word, ["approvals"], HERE)
    assert problem.value.hint == "list them again: wakeful approvals"


def test_without_a_list_and_with_one_of_yesterday_a_number_means_nothing(state: Path) -> None:
    with pytest.raises(WrongRequest, match="No list was shown yet"):
        id_of("1", ["timers"], HERE)
    remember("timers", ["timer_1"], HERE)
    (file,) = (state / "wakeful").iterdir()
    lists = json.loads(file.read_text())
    lists["timers"]["at"] = time.time() - 90_000
    file.write_text(json.dumps(lists))
    with pytest.raises(WrongRequest, match="older than a day"):
        id_of("1", ["timers"], HERE)
    file.write_text("{")
    with pytest.raises(WrongRequest, match="No list was shown yet"):
        id_of("1", ["timers"], HERE)


def test_a_key_that_is_a_number_stays_a_key() -> None:
    assert id_of("981", ["turns"], HERE) == "981"
    remember("turns", ["turn_a", "turn_b"], HERE, ["1", "ticket"])
    assert id_of("1", ["turns"], HERE) == "1"
    assert id_of("2", ["turns"], HERE) == "turn_b"


def test_digits_that_are_no_row_may_be_the_beginning_of_an_id() -> None:
    remember("artifacts", ["sha256:4021aa"], HERE)
    assert id_of("4021", ["artifacts"], HERE) == "4021"
    with pytest.raises(WrongRequest, match="there is no row 402: the last list had 1 row"):
        id_of("402", ["artifacts"], HERE)


def test_of_several_kinds_the_list_that_was_shown_last_is_meant() -> None:
    kinds = ("notices", "timers", "turns")
    remember("notices", ["ntc_1"], HERE)
    remember("timers", ["timer_1"], HERE)
    assert id_of("1", kinds, HERE) == "timer_1"
    remember("notices", ["ntc_2"], HERE)
    assert id_of("1", kinds, HERE) == "ntc_2"


def test_rows_of_one_agent_are_not_those_of_another() -> None:
    remember("memory entries", ["mem_1"], HERE, of="ops")
    assert id_of("1", ["memory entries"], HERE, agent="ops") == "mem_1"
    with pytest.raises(WrongRequest, match="The last one was about agent ops") as problem:
        id_of("1", ["memory entries"], HERE, agent="shop")
    assert problem.value.hint == "list them again: wakeful memory list shop"


def test_the_file_is_its_owners_alone(state: Path) -> None:
    remember("approvals", ["appr_one"], HERE)
    (file,) = (state / "wakeful").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ROWS)
def test_rows_stand_for_parameters_that_the_command_has(name: str) -> None:
    takes = signature(next(iter(app_of(name).registered_commands)).callback or len).parameters
    assert set(ROWS[name]) <= set(takes)
    for kind in (kind for kinds in ROWS[name].values() for kind in kinds):
        listing = LISTS[kind].removeprefix("wakeful ")
        assert listing.removesuffix(" AGENT") in COMMANDS
        assert "agent" in takes or not listing.endswith(" AGENT")
