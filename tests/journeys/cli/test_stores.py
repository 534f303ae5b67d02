"""Stores that are not as they should be: each error says which, why, and what to type."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from kit.surfaces.command_line import Wakeful
from unit.store.sqlite.test_anchor import forge, forge_record


def test_a_folder_that_is_not_there_is_not_made_and_the_command_is_told(wakeful: Wakeful) -> None:
    done = wakeful("run", "hello", "--store", "no/such/runs.db")
    assert (done.code, done.err) == (
        2,
        "Error: there is no folder no/such to put the store runs.db in\nHint: mkdir -p no/such\n",
    )
    assert not Path("no").exists()


@pytest.mark.parametrize("command", [("run", "hello"), ("events",)])
def test_a_folder_is_no_store(wakeful: Wakeful, command: tuple[str, ...]) -> None:
    done = wakeful(*command, "--store", ".")
    assert done.code == 2
    assert ". is a folder, not a store" in done.err


@pytest.mark.parametrize("command", ["events", "resume", "unknown", "replay", "cancel x", "debug latency"])
def test_a_command_that_reads_makes_no_store(wakeful: Wakeful, command: str) -> None:
    done = wakeful(*command.split(), "--store", "runs.db")
    assert (done.code, done.out) == (2, "")
    assert 'there is no store runs.db\nHint: this creates it: wakeful run "hello" --store runs.db' in done.err
    assert not Path("runs.db").exists()
    at_home = wakeful(*command.split())
    assert at_home.code == 2
    assert "nothing was run yet" in at_home.err


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
            "UPDATE appends SET body = zeroblob(length(body))"
            " WHERE id = (SELECT id FROM appends ORDER BY id LIMIT 1 OFFSET 2)"
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
        assert "other agents are not affected" in done.err
    assert wakeful("replay", second["turn_id"], "--store", "runs.db").code == 0
    doctor = wakeful("doctor", "--store", "runs.db", "--json")
    report = json.loads(doctor.out)
    assert (doctor.code, report["healthy"]) == (1, False)
    assert [found["agent_id"] for found in report["damage"]] == [first["agent_id"]]
    assert first["agent_id"] in wakeful("doctor", "--store", "runs.db").out
    validated = wakeful("events", "validate", "--store", "runs.db")
    assert validated.code == 1
    assert validated.out.startswith(f"{first['agent_id']}:3: "), "the first event of the append that is damaged"


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
    assert "close whatever holds it" in done.err


@pytest.mark.journey("doctor", "doctor --json")
def test_doctor_reports_on_a_fresh_home_and_on_what_waits(process: Wakeful, wakeful: Wakeful) -> None:
    fresh = wakeful("doctor")
    assert fresh.code == 0
    assert "not created yet" in fresh.out
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


# --- the end of the log -----------------------------------------------------------------------------------------------


@pytest.mark.journey("doctor --store", "store forget --json")
def test_a_store_that_is_older_than_it_was_is_refused_until_it_is_taken_as_it_is(
    wakeful: Wakeful, folder: Path
) -> None:
    wakeful("run", "one", "--store", "runs.db")
    older = (folder / "runs.db").read_bytes()
    wakeful("run", "two", "--store", "runs.db")
    (folder / "runs.db").write_bytes(older)
    for command in (("run", "three"), ("events",), ("unknown",), ("resume",)):
        done = wakeful(*command, "--store", "runs.db")
        assert done.code == 1
        assert "has lost the end of its log" in done.err and "wakeful store forget" in done.err
    report = wakeful("doctor", "--store", "runs.db")
    assert report.code == 1 and "DAMAGED" in report.out and "wakeful store forget" in report.out
    forgotten = json.loads(wakeful("store", "forget", "runs.db", "--json").out)
    assert forgotten == {"store": "runs.db", "forgotten": True, "agents": 2}
    assert wakeful("run", "three", "--store", "runs.db").code == 0
    assert wakeful("doctor", "--store", "runs.db").code == 0


@pytest.mark.parametrize("command", ["run hello", "events", "doctor"])
def test_a_store_that_is_gone_is_not_made_anew_unasked(wakeful: Wakeful, folder: Path, command: str) -> None:
    wakeful("run", "one", "--store", "runs.db")
    (folder / "runs.db").unlink()
    done = wakeful(*command.split(), "--store", "runs.db")
    assert done.code == 1
    assert "runs.db is gone" in done.err + done.out
    assert not (folder / "runs.db").exists()
    assert "accepted as it is now" in wakeful("store", "forget", "runs.db").out
    assert wakeful("run", "two", "--store", "runs.db").code == 0


@pytest.mark.journey("store forget")
def test_forgetting_says_what_it_did_and_leaves_a_store_in_use_alone(wakeful: Wakeful, folder: Path) -> None:
    assert "nothing to do" in wakeful("store", "forget", "runs.db").out
    assert json.loads(wakeful("store", "forget", "--json").out)["agents"] == 0
    assert wakeful("store", "forget", ".").code == 2
    assert "Accept a store that you deleted or restored" in wakeful("store", "forget", "--help").out
    assert "store forget" in wakeful("store", "--help").out
    wakeful("run", "one", "--store", "runs.db")
    holding = (
        "import asyncio\nfrom wakeful.store.sqlite import SqliteStore\n"
        "async def main():\n    await SqliteStore.open('runs.db')\n    print('open', flush=True)\n    input()\n"
        "asyncio.run(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holding], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "open\n"
        busy = wakeful("store", "forget", "runs.db")
        assert busy.code == 1 and f"in use by process {other.pid}" in busy.err
        other.kill()
    assert (folder / "runs.db-anchor").exists()


def test_in_a_home_a_log_that_was_written_anew_with_its_chain_and_anchor_is_found_by_doctor(
    wakeful: Wakeful, folder: Path
) -> None:
    (folder / "home").mkdir()
    wakeful("run", "what is 1 + 1?", "--store", "runs.db")
    wakeful("run", "two", "--store", "runs.db")
    assert (folder / "home" / "secret").stat().st_mode & 0o777 == 0o600
    assert wakeful("doctor", "--store", "runs.db").code == 0
    connection = apsw.Connection(str(folder / "runs.db"))
    agent_id = connection.execute("SELECT agent_id FROM agents WHERE id = 1").get
    connection.close()
    forge(folder / "runs.db", 1, agent_id)
    forge_record(folder / "runs.db", 1)
    report = json.loads(wakeful("doctor", "--store", "runs.db", "--json").out)
    assert [found["agent_id"] for found in report["damage"]] == [agent_id]
    assert "no valid seal of this home" in report["problems"][0]


def test_where_nobody_can_make_a_secret_the_store_works_without(wakeful: Wakeful, folder: Path) -> None:
    (folder / "home").mkdir()
    (folder / "home" / "secret").write_text("this is something else")
    assert wakeful("run", "hello", "--store", "runs.db").code == 0
    assert wakeful("doctor", "--store", "runs.db").code == 0
    assert (folder / "home" / "secret").read_text() == "this is something else"


def test_where_a_home_was_set_up_the_hint_is_to_start_its_daemon(wakeful: Wakeful, folder: Path) -> None:
    assert 'this creates it: wakeful run "hello"' in wakeful("status").err
    (folder / "home").mkdir()
    (folder / "home" / "wakeful.toml").write_text("[budget]\nper_day = {usd = 5}\n")
    for command in ("status", "agent"):
        assert "this creates it: wakeful daemon start" in wakeful(command).err
    assert "this creates it: wakeful run" in wakeful("status", "--store", "other.db").err
