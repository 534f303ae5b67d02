"""`wakeful trigger`: addresses for programs outside, from a terminal."""

import asyncio
import json
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from wakeful import Agent, Runtime, open_store
from wakeful.errors import InvalidRequest
from wakeful.testing import scripted


@pytest.fixture
def home(folder: Path) -> Path:
    """A home in which a runtime was at work once."""

    async def once() -> None:
        async with Runtime(folder / "home", agents=[Agent("ops", scripted(["fine"]))]):
            pass

    asyncio.run(once())
    return folder / "home"


def test_a_trigger_is_made_used_rotated_and_revoked(wakeful: Wakeful, home: Path) -> None:
    made = wakeful("trigger", "create", "ops", "ci", "--say", "A build reported in.")
    assert made.out == "trigger ops/ci is active\nits address: wakeful trigger url ops/ci\n", made.err
    url = wakeful("trigger", "url", "ops/ci", "--base", "https://hooks.example.org", "--purpose", "for the CI").out
    assert url.startswith("https://hooks.example.org/callbacks/enqueue/wkt_")
    token = url.strip().rpartition("/")[2]
    told = wakeful("trigger", "deliver", token, "--body", "build 7 is red", "-H", "Idempotency-Key: 7")
    assert told.code == 0 and told.out.startswith("accepted: msg_") and told.out.endswith("for agent ops\n")
    again = wakeful("trigger", "deliver", url.strip(), "--body", "build 7 is red", "-H", "Idempotency-Key: 7")
    assert again.code == 0 and again.out.startswith("duplicate: it was delivered before, as msg_")
    other = wakeful("trigger", "deliver", token, "--body", "build 7 is green", "-H", "Idempotency-Key: 7")
    assert other.code == 1 and "refused (key_reused)" in other.out
    assert "has a new address (number 2)" in wakeful("trigger", "rotate", "ops/ci").out
    old = json.loads(wakeful("trigger", "deliver", token, "--json").out)
    assert (old["outcome"], old["reason"]) == ("refused", "unknown_trigger")
    assert wakeful("trigger", "revoke", "ops/ci", "--reason", "not used").out == "trigger ops/ci is revoked\n"
    lines = wakeful("trigger", "list", "ops").out.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["TRIGGER", "STATE", "MODE"],
        ["ops", "active", "hint"],
        ["ops/ci", "revoked", "message"],
    ]
    found = json.loads(wakeful("trigger", "--json").out)
    assert (found[1]["delivery_count"], found[1]["refused"]) == (1, {"duplicate": 1, "key_reused": 1})


def test_what_cannot_be_done_is_said_and_changes_nothing(wakeful: Wakeful, home: Path) -> None:
    wakeful("trigger", "create", "ops", "ci")
    for line, words in (
        (("create", "ops", "ci"), "has a trigger called 'ci'"),
        (("create", "opps", "ci"), "the runtime has no agent 'opps'"),
        (("create", "ops", "cd", "--signature", "hub_sha256"), "give both: --signature hub_sha256 --signing-env"),
        (("create", "ops", "cd", "--signing-env", "CI_SECRET"), "--signing-env was given alone"),
        (("url", "ops/cd"), "there is no trigger 'ops/cd'"),
        (("deliver", "wkt_1", "-H", "nothing"), "is not a header"),
    ):
        refused = wakeful("trigger", *line)
        assert refused.code != 0 and words in refused.err, (line, refused)
    assert len(json.loads(wakeful("trigger", "list", "--json").out)) == 2


def test_a_program_asks_the_store_for_all_of_it_while_no_runtime_is_at_work(wakeful: Wakeful, home: Path) -> None:
    store = open_store(home / "wakeful.db")
    made = store.create_trigger("ops", "ci", say="A build reported in.", by="ada")
    assert (made.name, made.status, made.created_by) == ("ci", "active", "ada")
    address = store.trigger_url("ops/ci", base="https://hooks.example.org", purpose="for the CI")
    assert address == wakeful("trigger", "url", "ops/ci", "--base", "https://hooks.example.org").out.strip()
    told = [store.deliver(address, b"build 7 is red", {"Idempotency-Key": "7"}) for _ in range(2)]
    assert [receipt.outcome for receipt in told] == ["accepted", "duplicate"]
    assert store.rotate_trigger("ops/ci", reason="it was in a mail").generation == 2
    assert store.deliver(address).reason == "unknown_trigger"
    assert store.revoke_trigger("ops/ci", reason="not used").status == "revoked"
    assert [record.model_dump(mode="json") for record in store.triggers("ops")] == json.loads(
        wakeful("trigger", "list", "ops", "--json").out
    )
    with pytest.raises(InvalidRequest, match="there is no trigger 'ops/cd'"):
        store.trigger_url("ops/cd")
