"""A backup or a restore is killed anywhere: no half of it looks whole, and the same command does it."""

from pathlib import Path

import pytest

from crash import backup_process
from crash.forked import Ended, run_forked
from wakeful.contracts.errors import StoreProblem
from wakeful.service.backups.restore import read_backup
from wakeful.settings.home_state import check_usable, read_state, write_state

POINTS = (2, 5, 9, 14, 20)


def wakeful(home: Path, *words: str) -> Ended:
    return run_forked(backup_process.say, home, *words)


def killed(home: Path, command: str, file: Path, folder: Path, point: int) -> Ended:
    return run_forked(backup_process.main, home, command, file, folder, point)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("kills") / "home"
    (home / "agents" / "ops" / "notes").mkdir(parents=True)
    for number in range(5):
        (home / "agents" / "ops" / "notes" / f"{number}.md").write_text("note " * number)
    assert wakeful(home, "run", "hello", "--model", "scripted:demo").returncode == 0
    return home


def test_a_backup_that_is_killed_leaves_no_file_that_looks_whole(home: Path, tmp_path: Path) -> None:
    kills = 0
    for point in POINTS:
        file = tmp_path / f"{point}.tar.gz"
        done = killed(home, "backup", file, home.parent if point % 2 else tmp_path, point)
        kills += done.returncode == -9
        assert done.returncode in (-9, 0), done.said
        if file.exists():
            read_backup(file)
        assert done.returncode == -9 or file.exists()
    assert kills >= 3
    last = tmp_path / "last.tar.gz"
    assert wakeful(home, "backup", str(last)).returncode == 0
    read_backup(last)
    assert not (home / "backup-staging").exists()


def test_a_restore_that_is_killed_is_refused_until_it_is_run_again(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    assert wakeful(home, "backup", str(file)).returncode == 0
    kills, refused = 0, 0
    for point in POINTS:
        new = tmp_path / f"new{point}"
        done = killed(new, "restore", file, new, point)
        assert done.returncode in (-9, 0), done.said
        kills += done.returncode == -9
        if read_state(new) is not None:
            refused += 1
            with pytest.raises(StoreProblem, match="half of a restore") as problem:
                check_usable(new)
            assert problem.value.hint == f"Run it again: wakeful restore {file}"
        again = wakeful(new, "restore", str(file))
        assert again.returncode == 0 or "is a home in use" in again.said, again.said
        assert read_state(new) is None
        assert (new / "agents" / "ops" / "notes" / "4.md").read_text() == "note " * 4
    assert kills >= 3
    assert refused >= 2
    assert "hello" in wakeful(new, "events").said


def test_a_home_that_is_half_restored_is_used_by_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    write_state(home, "restoring", tmp_path / "b.tar.gz")
    for words in (("run", "hello", "--model", "scripted:demo"), ("daemon", "start", "--listen", "none")):
        done = wakeful(home, *words)
        assert done.returncode != 0
        assert "half of a restore that was cut off" in done.said
    assert not (home / "wakeful.db").exists()
