"""`wakeful backup` and `wakeful restore`, as a person types them: while a daemon runs, into an empty home, to move."""

import asyncio
import contextlib
import gzip
import json
import os
import sqlite3
import tarfile
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from kit.surfaces.served_home import AGENTS, served
from wakeful import Agent, Runtime
from wakeful.bootstrap.stores import opened_store
from wakeful.service.serving.options import ServeOptions
from wakeful.testing import scripted

LARGE = b"a large word " * 200_000


@pytest.fixture
def backed_up(folder: Path, wakeful: Wakeful) -> Path:
    """A home with a run, files of agents, secrets, a link; and its backup."""
    home = folder / "home"
    (home / "agents" / "ops" / "memory").mkdir(parents=True)
    (home / "agents" / "ops" / "memory" / "notes.md").write_text("backups run at two")
    program = home / "agents" / "ops" / "check.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (home / "agents" / "ops" / "elsewhere").symlink_to("/etc/passwd")
    (home / "agents" / "ops.yaml").write_text(
        "name: ops\nmodel: anthropic:claude-opus-4-7\ninstructions: Check.\ntools: [refund]\n"
    )
    (home / "wakeful.toml").write_text("[budget]\nper_day = {usd = 5}\n")
    (home / "secrets.env").write_text("ANTHROPIC_API_KEY=sk-never-shown\n")
    (home / "secrets.env").chmod(0o600)
    (home / "mcp.json").write_text('{"mcpServers": {"hub": {"command": "x", "env": {"HUB_TOKEN": "t0p-never"}}}}')
    assert wakeful("token", "create", "phone").code == 0
    assert wakeful("run", "hello", "--model", "scripted:demo").code == 0
    return home


def restored(wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch, home: Path, file: Path) -> dict[str, object]:
    monkeypatch.setenv("WAKEFUL_HOME", str(home))
    found: dict[str, object] = json.loads(wakeful("restore", str(file), "--json").out)
    return found


@pytest.mark.journey("backup", "restore --json")
def test_a_home_comes_back_whole_paused_and_says_what_it_lacks(
    folder: Path, wakeful: Wakeful, backed_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = json.loads(wakeful("events", "--json").out)
    taken = wakeful("backup", "home.tar.gz")
    assert taken.code == 0, taken.err
    file = folder / "home.tar.gz"
    assert "ANTHROPIC_API_KEY (in secrets.env)" in taken.out
    assert "token phone" in taken.out
    assert "mcp.json, because it holds a secret itself" in taken.out
    assert "agents/ops/elsewhere: a link" in taken.out
    assert file.stat().st_mode & 0o777 == 0o600
    unpacked = gzip.decompress(file.read_bytes())
    assert b"sk-never-shown" not in unpacked
    assert b"t0p-never" not in unpacked
    told = restored(wakeful, monkeypatch, folder / "new", file)
    new = folder / "new"
    assert json.loads(wakeful("events", "--json").out) == turns
    assert (new / "agents" / "ops" / "memory" / "notes.md").read_text() == "backups run at two"
    assert os.access(new / "agents" / "ops" / "check.sh", os.X_OK)
    assert not (new / "agents" / "ops" / "elsewhere").exists()
    assert (new / "wakeful.toml").read_bytes() == (backed_up / "wakeful.toml").read_bytes()
    assert "ANTHROPIC_API_KEY (in secrets.env)" in str(told["missing_secrets"])
    assert "refund" in str(told["problems"])
    again = wakeful("restore", str(file))
    assert again.code == 2
    assert "is a home in use" in again.err


def test_a_log_that_was_damaged_before_is_told_and_keeps_no_other_from_coming_back(
    folder: Path, wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, whole = (json.loads(wakeful("run", each, "--model", "scripted:demo", "--json").out) for each in "ab")
    with contextlib.closing(sqlite3.connect(folder / "home" / "wakeful.db")) as store, store:  # as a failing disk would
        store.execute(
            "UPDATE appends SET body = zeroblob(length(body)) WHERE id >> 40 ="
            " (SELECT id FROM agents WHERE agent_id = ?)",
            (broken["agent_id"],),
        )
    taken = wakeful("backup", "home.tar.gz")
    assert taken.code == 0, taken.err
    assert "damaged in this home" in taken.out and f"agent {broken['agent_id']}, event 1" in taken.out
    told = restored(wakeful, monkeypatch, folder / "new", folder / "home.tar.gz")
    assert told["damaged"] == [f"agent {broken['agent_id']}, event 1"]
    assert wakeful("replay", whole["turn_id"]).code == 0
    assert "is not what was written" in wakeful("replay", broken["turn_id"]).err


def test_a_backup_is_taken_while_the_daemon_works_and_its_large_contents_are_in_it(
    folder: Path, wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = folder / "busy"
    with served(home, ServeOptions(port=0, tools=(AGENTS,))) as process:
        first = process.client.post("/agents/clerk/messages", {"text": "good day", "key": "first"}).body
        process.client.until_ended(first)
        digest = asyncio.run(_put(home / "wakeful.db"))
        monkeypatch.setenv("WAKEFUL_HOME", str(home))
        process.client.post("/agents/keeper/messages", {"text": "wait", "key": "w"})
        assert wakeful("backup", "busy.tar.gz").code == 0
        refused = wakeful("backup", "final.tar.gz", "--final")
        assert refused.code != 0
        assert "another runtime runs" in refused.err and "wakeful daemon stop" in refused.err
        assert not (folder / "final.tar.gz").exists()
        assert process.client.post("/agents/clerk/messages", {"text": "still here", "key": "s"}).status == 200
    told = restored(wakeful, monkeypatch, folder / "new", folder / "busy.tar.gz")
    assert set(told["agents"]) >= {"clerk", "keeper"}  # type: ignore[call-overload]
    assert json.loads(wakeful("store", "verify", "--json").out)["is_whole"] is True
    assert asyncio.run(_get(folder / "new" / "wakeful.db", digest)) == LARGE
    assert "good day" in wakeful("transcript", "clerk").out
    why = wakeful("why", "clerk").out
    assert "paused" in why
    assert "wakeful resume --all" in why


async def _put(store: Path) -> str:
    async with opened_store(str(store)) as opened:
        return (await opened.put_blob(LARGE, "text/plain")).digest


async def _get(store: Path, digest: str) -> bytes:
    async with opened_store(str(store), reading=True) as opened:
        return await opened.get_blob(digest)


@pytest.mark.journey("backup --json", "restore")
def test_a_final_backup_retires_the_home(
    folder: Path, wakeful: Wakeful, backed_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = json.loads(wakeful("backup", "before.tar.gz", "--json").out)
    assert Path(before["file"]).name == "before.tar.gz" and before["files"] > 0
    taken = wakeful("backup", "move.tar.gz", "--final")
    assert taken.code == 0, taken.err
    assert "it cannot start again" in taken.out
    for words in (("run", "hello", "--model", "scripted:demo"), ("send", "ops", "hi"), ("backup", "again.tar.gz")):
        refused = wakeful(*words)
        assert refused.code != 0
        assert "was retired by a final backup" in refused.err
    started = wakeful("daemon", "start", "--listen", "none")
    assert started.code != 0
    assert "was retired by a final backup" in started.err
    assert "hello" in wakeful("events").out  # it can be read
    monkeypatch.setenv("WAKEFUL_HOME", str(folder / "moved"))
    moved = wakeful("restore", "move.tar.gz")
    assert moved.code == 0 and str(folder / "moved") in moved.out, moved
    assert "hello" in wakeful("events").out


def test_addresses_that_are_made_after_a_backup_do_not_follow_from_it(
    folder: Path, wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever got the file has the secret of the store, and can do with the copy what its owner does here."""

    def at_work(*agents: str) -> None:
        async def once() -> None:
            async with Runtime(os.environ["WAKEFUL_HOME"], agents=[Agent(name, scripted(["fine"])) for name in agents]):
                pass

        asyncio.run(once())

    def addresses(*agents: str) -> list[str]:
        triggers = [wakeful("trigger", "url", name).out.strip() for name in ("ops", "ops/ci", "ops/build", *agents)]
        return [*triggers, json.loads(wakeful("channel", "pair", "phone", "--json").out)["subscribe"]]

    def renewed() -> list[str]:
        """Every address replaced, and an agent made that was not there."""
        for line in ("trigger rotate ops", "trigger rotate ops/ci", "trigger revoke ops/build"):
            assert wakeful(*line.split()).code == 0
        for line in ("trigger create ops build", "channel remove phone", "channel add ntfy phone"):
            assert wakeful(*line.split()).code == 0
        at_work("ops", "later")
        return addresses("later")

    at_work("ops")
    for line in ("trigger create ops ci", "trigger create ops build", "channel add ntfy phone"):
        assert wakeful(*line.split()).code == 0
    before = addresses()
    assert wakeful("backup", "home.tar.gz").code == 0
    live = renewed()
    assert not {*live} & {*before}
    restored(wakeful, monkeypatch, folder / "stolen", folder / "home.tar.gz")
    assert addresses() == before, "a restored home keeps its addresses"
    made_there = renewed()
    assert not {*live} & {*made_there}
    monkeypatch.setenv("WAKEFUL_HOME", str(folder / "home"))
    for address in (*before[:-1], *made_there[:-1]):
        assert "unknown_trigger" in wakeful("trigger", "deliver", address).out
    assert wakeful("trigger", "deliver", live[0]).out.startswith("accepted")


@pytest.mark.parametrize("made", ["text", "nothing", "folder", "other_tar"])
def test_a_wrong_file_is_named_and_changes_nothing(folder: Path, wakeful: Wakeful, made: str) -> None:
    file = folder / "wrong"
    if made == "text":
        file.write_text("hello")
    elif made == "folder":
        file.mkdir()
    elif made == "other_tar":
        with tarfile.open(file, "w:gz") as tar:
            tar.add(folder / "shop.py", "shop.py")
    done = wakeful("restore", str(file))
    assert done.code == 2
    assert str(file) in done.err
    assert "Hint:" in done.err
    assert not (folder / "home").exists() or not any((folder / "home").iterdir())


def test_a_backup_without_a_store_says_how_one_is_made(wakeful: Wakeful) -> None:
    done = wakeful("backup")
    assert done.code == 2
    assert "there is no store" in done.err
