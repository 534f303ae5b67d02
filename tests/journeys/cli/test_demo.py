"""The demos: offline, without a key, without a question."""

import os
import subprocess
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful, command_line

pytestmark = pytest.mark.timeout(300)  # each starts up to ten processes, one after another


@pytest.mark.journey("demo crash")
def test_the_crash_demo_kills_finishes_and_pays_once(folder: Path) -> None:
    (folder / "temporary").mkdir()
    done = subprocess.run(
        command_line("demo", "crash"),
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "temporary")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert [line for line in lines if line.startswith("$ ") and "cat" not in line] == [
        "$ CRASH=1 python refund.py",
        "$ python refund.py",
        "$ python refund.py",
        "$ CRASH=1 python once.py",
        "$ python once.py",
        "$ wakeful unknown --store once.db",
        '$ wakeful resolve call_2_1 --happened "refunded 4200" --store once.db',
    ]
    assert lines.count("killed (signal 9)") == 2
    assert lines.count("Order A17 is refunded.") == 3
    (left,) = (folder / "temporary").iterdir()
    for bank in ("bank.txt", "once.txt"):
        assert len((left / bank).read_text().splitlines()) == 1
    assert f"cd {left}" in lines


@pytest.mark.journey("demo approve")
def test_the_approval_demo_is_killed_while_it_waits_and_pays_what_was_approved_once(folder: Path) -> None:
    (folder / "temporary").mkdir()
    done = subprocess.run(
        command_line("demo", "approve"),
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "temporary")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines()]
    approval = next(word for line in lines for word in line.split() if word.startswith("appr_"))
    assert [line for line in lines if line.startswith("$ ") and "cat" not in line] == [
        "$ CRASH=1 python refund.py",
        "$ wakeful approvals --store runs.db",
        f"$ wakeful approvals approve {approval} --note checked --store runs.db",
        "$ python refund.py",
        "$ wakeful why call_2_1 --store runs.db",
        f'$ wakeful approvals reject {approval} "too late" --store runs.db',
    ]
    assert lines.count("killed (signal 9)") == 1
    assert lines.count("Order A17 is refunded.") == 1
    assert any("was decided before: approved by you" in line for line in lines)
    (left,) = (folder / "temporary").iterdir()
    (payment,) = (left / "bank.txt").read_text().splitlines()
    assert payment.endswith(" A17 4200")


@pytest.mark.journey("demo")
def test_the_list_of_demos_names_all_five(wakeful: Wakeful) -> None:
    listed = wakeful("demo")
    assert listed.code == 0
    assert [line.split()[2] for line in listed.out.splitlines()] == ["crash", "approve", "budget", "wake", "replay"]
    assert wakeful("demo", "dance").code == 2


def test_the_demo_cleans_up_when_it_is_told_to(folder: Path) -> None:
    (folder / "temporary").mkdir()
    done = subprocess.run(
        command_line("demo", "crash", "--no-keep"),
        env={**os.environ, "TMPDIR": str(folder / "temporary")},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert list((folder / "temporary").iterdir()) == []
    assert "What to try next" not in done.stdout, "there is no folder to try it in"


@pytest.mark.journey("demo budget")
def test_the_budget_demo_is_killed_among_its_subtasks_and_keeps_to_its_limit(folder: Path) -> None:
    (folder / "temporary").mkdir()
    done = subprocess.run(
        command_line("demo", "budget"),
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "temporary")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert [line for line in lines if line.startswith("$ ")] == [
        "$ CRASH=1 python report.py 12",
        "$ python report.py 12",
        "$ wakeful tree --store runs.db",
    ]
    assert lines.count("killed (signal 9)") == 1
    assert "completed (natural): 12 of 12 model calls" in lines
    assert sum("run_subtask" in line for line in lines) == 3


@pytest.mark.journey("demo wake")
def test_the_wake_demo_is_woken_by_webhooks_across_a_kill_of_the_daemon(folder: Path) -> None:
    done = _demo(folder, "wake")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines()]
    typed = [line for line in lines if line.startswith("$ ")]
    assert [line.split("http")[0].rstrip("0123456789") for line in typed if "export" not in line] == [
        "$ wakeful daemon start --port ",
        "$ wakeful why ops",
        "$ python webhook.py ",
        "$ wakeful tail ops",
        "$ wakeful why ops",
        "$ kill -9 ",
        "$ wakeful daemon start --port ",
        "$ python webhook.py ",
        "$ wakeful tail ops",
        "$ wakeful trigger list ops",
    ]
    assert lines.count("202 Accepted") == 2
    assert sum("The build failed" in line for line in lines) == 3  # one, then both


@pytest.mark.journey("demo replay")
def test_the_replay_demo_recomputes_a_run_and_notices_a_changed_bit(folder: Path) -> None:
    done = _demo(folder, "replay")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert any(line.startswith("identical: ") for line in lines)
    assert any("is not what was written" in line for line in lines)
    assert any(line.endswith("every row is as it was written") for line in lines)


@pytest.mark.parametrize("name", ["crash", "approve", "budget", "wake", "replay"])
def test_a_demo_neither_reads_nor_writes_what_is_the_users(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, store = folder / "home", folder / "mine.db"
    home.mkdir()
    (home / "wakeful.toml").write_text("[budget]\nper_day = {usd = 0.000001}\n")
    for variable, value in {
        "WAKEFUL_STORE": store,
        "WAKEFUL_CONNECT": folder / "nowhere.sock",
        "WAKEFUL_CONFIG": folder / "no-such.toml",
        "WAKEFUL_AGENT_ID": "mine",
    }.items():
        monkeypatch.setenv(variable, str(value))
    done = _demo(folder, name)
    assert (done.returncode, done.stderr) == (0, "")
    assert not store.exists()
    assert [path.name for path in home.iterdir()] == ["wakeful.toml"]


def test_what_to_type_next_takes_away_what_leads_to_the_users_own_store(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("WAKEFUL_STORE", str(folder / "mine.db"))
    done = _demo(folder, "replay", "--keep")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("  unset ")]
    assert "WAKEFUL_STORE" in line.split() and "WAKEFUL_HOME" not in line.split()


def _demo(folder: Path, name: str, keep: str = "--no-keep") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command_line("demo", name, keep),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
