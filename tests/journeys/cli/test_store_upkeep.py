"""`wakeful store stats`, `compact` and `verify` on a store whose turns are a year old."""

import asyncio
import json
from pathlib import Path

import apsw
import pytest

from kit.surfaces.command_line import Wakeful
from wakeful import Agent, Runtime, run_sync, tool
from wakeful.store.sqlite.anchor import HEADER_BYTES, RECORD_BYTES, anchor_path
from wakeful.testing import FixedClock, scripted


@tool(effect="pure")
def look() -> str:
    """A long look."""
    return "a line of a log\n" * 8_000


@pytest.fixture
def store(wakeful: Wakeful) -> str:
    async def live() -> None:
        agent = Agent("shop", scripted([{"calls": [{"name": "look", "arguments": {}}]}, "done"]), tools=[look])
        async with Runtime("home", agents=[agent], clock=FixedClock(1_600_000_000_000_000)) as rt:
            await rt.answer(await rt.send("shop", "look", thread="chat"))

    asyncio.run(live())
    run_sync(Agent("calc", scripted(["two"])), "1 + 1?", store="home/wakeful.db", thread="today")
    return "home/wakeful.db"


def test_stats_shows_sizes_and_what_could_be_freed_and_compact_frees_it(wakeful: Wakeful, store: str) -> None:
    shown = wakeful("store", "stats", "--store", store)
    assert shown.code == 0
    assert max(map(len, shown.out.splitlines())) <= 80
    for words in ("TABLE", "appends", "LOG OF", "shop", "calc", "details of turns", "long outputs", "would be freed"):
        assert words in shown.out
    as_data = json.loads(wakeful("store", "stats", "--store", store, "--json").out)
    assert as_data["turns"] == 2
    assert list(as_data["tables"].values()) == sorted(as_data["tables"].values(), reverse=True)
    assert as_data["retention"]["turns"] == 30
    dry = json.loads(wakeful("store", "compact", "--dry-run", "--store", store, "--json").out)
    assert dry == as_data["would_free"]
    assert (dry["dry_run"], dry["turns"], dry["outputs"]) == (True, 1, 1)
    done = wakeful("store", "compact", "--store", store)
    assert done.code == 0
    assert "details of turns" in done.out and "were freed" in done.out
    again = wakeful("store", "compact", "--store", store)
    assert again.out == "nothing was removed: nothing has expired\n"
    assert json.loads(wakeful("store", "stats", "--store", store, "--json").out)["size_bytes"] < as_data["size_bytes"]


def test_a_turn_whose_details_expired_is_shown_and_replay_says_so(wakeful: Wakeful, store: str) -> None:
    wakeful("store", "compact", "--store", store)
    listed = wakeful("events", "--store", store).out
    turn = next(line.split()[0] for line in listed.splitlines() if "shop" in line)
    replayed = wakeful("replay", turn, "--store", store)
    assert replayed.code == 0
    assert "expired: retention removed the details of" in replayed.out
    for command in ("events", "tree", "artifacts", "context", "debug latency", "cost"):
        named = () if command == "cost" else (turn,)
        assert wakeful(*command.split(), *named, "--store", store).code == 0, command
    (artifact,) = json.loads(wakeful("artifacts", turn, "--store", store, "--json").out)
    digest = artifact["artifact_id"]
    gone = wakeful("artifacts", "show", digest, "--store", store)
    assert gone.code != 0
    assert "has expired" in gone.err


def test_verify_names_what_is_not_what_was_written_and_ends_with_1(wakeful: Wakeful, store: str) -> None:
    whole = wakeful("store", "verify", "--store", store)
    assert (whole.code, whole.out) == (0, "2 logs of home/wakeful.db: every row is as it was written\n")
    connection = apsw.Connection(str(Path(store)))
    connection.execute(
        "UPDATE appends SET body = zeroblob(40) WHERE id = (SELECT max(id) FROM appends WHERE id >> 40 = 1)"
    )
    connection.close()
    broken = wakeful("store", "verify", "--store", store, "--json")
    assert broken.code == 1
    report = json.loads(broken.out)
    assert (report["is_whole"], [each["agent"] for each in report["damage"]]) == (False, ["shop"])
    told = wakeful("store", "verify", "--store", store)
    assert "agent shop, event" in told.out and "1 found" in told.out


def test_a_log_whose_record_a_power_cut_took_is_a_note_and_a_missing_end_is_not(wakeful: Wakeful, store: str) -> None:
    anchor = anchor_path(Path(store))
    whole = anchor.read_bytes()
    first = whole[HEADER_BYTES : HEADER_BYTES + RECORD_BYTES]
    assert any(first), "the first agent has a record"
    anchor.write_bytes(whole.replace(first, bytes(RECORD_BYTES)))
    told = wakeful("store", "verify", "--store", store)
    assert (told.code, "has no record in" in told.out) == (0, True)
    assert told.out.endswith("every row is as it was written\n")
    report = json.loads(wakeful("store", "verify", "--store", store, "--json").out)
    assert (report["is_whole"], report["damage"], len(report["notes"])) == (True, [], 1)
    examined = wakeful("doctor", "--store", store)
    assert (examined.code, "backup" in examined.out) == (0, False)
    assert "has no record in" in " ".join(examined.out.split())
    anchor.write_bytes(whole)
    connection = apsw.Connection(store)
    connection.execute("DELETE FROM appends WHERE id = (SELECT max(id) FROM appends WHERE id >> 40 = 1)")
    connection.close()
    lost = wakeful("store", "verify", "--store", store)
    assert (lost.code != 0, "every row is as it was written" in lost.out) == (True, False)
