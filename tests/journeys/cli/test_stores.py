"""Stores that are not as they should be: each error says which, why, and what to type."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import Wakeful


def test_a_folder_that_is_not_there_is_not_made_and_the_command_is_told(wakeful: Wakeful) -> None:
    done = wakeful("run", "hello", "--store", "no/such/runs.db")
    assert (done.code, done.err) == (
        2,
        "error: there is no folder no/such to put the store runs.db in\n  mkdir -p no/such\n",
    )
    assert not Path("no").exists()


@pytest.mark.parametrize("command", [("run", "hello"), ("events",)])
def test_a_folder_is_no_store(wakeful: Wakeful, command: tuple[str, ...]) -> None:
    done = wakeful(*command, "--store", ".")
    assert done.code == 2
    assert ". is a folder, and a store is a file" in done.err


@pytest.mark.parametrize("command", ["events", "resume", "unknown", "replay", "cancel x", "debug latency"])
def test_a_command_that_reads_makes_no_store(wakeful: Wakeful, command: str) -> None:
    done = wakeful(*command.split(), "--store", "runs.db")
    assert (done.code, done.out) == (2, "")
    assert 'there is no store runs.db\n  this makes it: wakeful run "hello" --store runs.db' in done.err
    assert not Path("runs.db").exists()
    at_home = wakeful(*command.split())
    assert at_home.code == 2
    assert "nothing has been run here yet" in at_home.err


def test_what_is_no_database_is_said_and_doctor_says_it_too(wakeful: Wakeful, folder: Path) -> None:
    (folder / "runs.db").write_text("not a database " * 100)
    done = wakeful("run", "hello", "--store", "runs.db")
    assert done.code == 1
    assert "is not a database" in done.err
    assert "Traceback" not in done.err
    report = wakeful("doctor", "--store", "runs.db")
    assert report.code == 1
    assert "DAMAGED" in report.out


def damage(path: Path) -> None:
    """Change a stored event of the first agent, as a failing disk would."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            "UPDATE events SET body = zeroblob(length(body))"
            " WHERE id = (SELECT id FROM events ORDER BY id LIMIT 1 OFFSET 4)"
        )
    connection.close()


def test_damage_is_named_with_its_agent_and_other_agents_go_on(wakeful: Wakeful, folder: Path) -> None:
    first = json.loads(wakeful("run", "one", "--store", "runs.db", "--json").out)
    second = json.loads(wakeful("run", "two", "--store", "runs.db", "--json").out)
    fine = wakeful("doctor", "--store", "runs.db")
    assert fine.code == 0
    mode = json.loads(wakeful("doctor", "--store", "runs.db", "--json").out)["confinement"]
    assert mode in ("bubblewrap", "landlock", "not_enforced") and mode in fine.out.splitlines()[1]
    damage(folder / "runs.db")
    for command in (("events", first["turn_id"]), ("replay", first["turn_id"])):
        done = wakeful(*command, "--store", "runs.db")
        assert (done.code, done.out) == (1, "")
        assert first["agent_id"] in done.err
        assert "Other agents are not affected" in done.err
    assert wakeful("replay", second["turn_id"], "--store", "runs.db").code == 0
    doctor = wakeful("doctor", "--store", "runs.db", "--json")
    report = json.loads(doctor.out)
    assert (doctor.code, report["healthy"]) == (1, False)
    assert [found["agent_id"] for found in report["damage"]] == [first["agent_id"]]
    assert first["agent_id"] in wakeful("doctor", "--store", "runs.db").out
    validated = wakeful("events", "validate", "--store", "runs.db")
    assert validated.code == 1
    assert validated.out.startswith(f"{first['agent_id']}:5: ")


HOLD = """
import sqlite3, sys
connection = sqlite3.connect("runs.db")
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_store_that_somebody_keeps_locked_is_given_up_on_with_words(wakeful: Wakeful, folder: Path) -> None:
    assert wakeful("run", "hello", "--store", "runs.db").code == 0
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        done = wakeful("run", "hello", "--store", "runs.db")
        holder.communicate()
    assert (done.code, done.out) == (1, "")
    assert "another process keeps" in done.err
    assert "Close whatever holds it" in done.err


def test_doctor_reports_on_a_fresh_home_and_on_what_waits(process: Wakeful, wakeful: Wakeful) -> None:
    fresh = wakeful("doctor")
    assert fresh.code == 0
    assert "not there yet" in fresh.out
    ship = ("run", "Ship.", "--model", "scripted:ship.yaml", "--tools", "shop:ship", "--key", "k")
    process(*ship, crash=True)
    unfinished = wakeful("doctor")
    assert "turns        1, unfinished 1" in unfinished.out
    assert "next         wakeful resume\n" in unfinished.out
    wakeful(*ship)
    report = json.loads(wakeful("doctor", "--json").out)
    assert (report["healthy"], report["unknown_outcomes"], report["turns"]) == (True, 1, 1)
    assert report["store"]["schema_version"] == report["store"]["newest_schema_version"]
    assert (report["providers"][0]["name"], report["providers"][0]["status"]) == ("scripted", "available")
    assert "next         wakeful unknown\n" in wakeful("doctor").out
