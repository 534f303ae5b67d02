"""A row of the last list stands for its id; what was not shown, or long ago, stands for nothing."""

import json
import time
from pathlib import Path

import pytest

from wakeful.surfaces.cli.last_list import remember, with_ids
from wakeful.surfaces.cli.problems import WrongRequest


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WAKEFUL_STORE", raising=False)
    return tmp_path


def test_a_number_is_the_row_that_was_shown() -> None:
    remember("approvals", ["appr_one", "appr_two"], None)
    assert with_ids("approvals", ["2", "no", "thanks"]) == ["appr_two", "no", "thanks"]
    assert with_ids("approvals", ["--as", "anna"]) == ["--as", "anna"]


def test_each_store_has_its_own_lists(tmp_path: Path) -> None:
    remember("approvals", ["appr_here"], None)
    remember("approvals", ["appr_there"], tmp_path / "runs.db")
    assert with_ids("approvals", ["1"]) == ["appr_here"]
    assert with_ids("approvals", ["1", "--store", str(tmp_path / "runs.db")])[0] == "appr_there"
    assert with_ids("approvals", ["1", f"--store={tmp_path / 'runs.db'}"])[0] == "appr_there"


def test_a_beginning_that_means_one_row_is_its_id() -> None:
    remember("tasks", ["task_01aaaa", "task_01abbb"], None)
    assert with_ids("tasks", ["task_01aa"]) == ["task_01aaaa"]
    assert with_ids("tasks", ["task_01a"]) == ["task_01a"]


@pytest.mark.parametrize(("word", "why"), [("3", "the last list had 2 rows"), ("0", "the last list had 2 rows")])
def test_a_row_that_was_not_there_is_refused(word: str, why: str) -> None:
    remember("approvals", ["appr_one", "appr_two"], None)
    with pytest.raises(WrongRequest, match=why) as problem:
        with_ids("approvals", [word])
    assert problem.value.hint == "list them again: wakeful approvals"


def test_without_a_list_and_with_one_of_yesterday_a_number_means_nothing(state: Path) -> None:
    with pytest.raises(WrongRequest, match="None was shown yet"):
        with_ids("timers", ["1"])
    remember("timers", ["timer_1"], None)
    (file,) = (state / "wakeful").iterdir()
    lists = json.loads(file.read_text())
    lists["timers"]["at"] = time.time() - 90_000
    file.write_text(json.dumps(lists))
    with pytest.raises(WrongRequest, match="older than a day"):
        with_ids("timers", ["1"])
    file.write_text("{")
    with pytest.raises(WrongRequest, match="None was shown yet"):
        with_ids("timers", ["1"])


def test_a_key_that_is_a_number_stays_a_key() -> None:
    assert with_ids("turns", ["981"]) == ["981"]
    remember("turns", ["turn_a", "turn_b"], None, ["1", "ticket"])
    assert with_ids("turns", ["1"]) == ["1"]
    assert with_ids("turns", ["2"]) == ["turn_b"]


def test_the_file_is_its_owners_alone(state: Path) -> None:
    remember("approvals", ["appr_one"], None)
    (file,) = (state / "wakeful").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
