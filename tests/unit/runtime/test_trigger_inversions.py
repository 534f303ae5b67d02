"""What goes wrong where a check of deliveries is not there: each is what keeps the other test of it true."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kit.runs.deliveries import JSON, NOON, Ears, events, hub, standard
from wakeful import Runtime
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import TriggerRotated
from wakeful.decisions.waking.trigger_addresses import trigger_id_of
from wakeful.testing import FixedClock


async def test_inversion_without_a_signature_the_same_forged_body_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_SECRET", "a secret of the CI")
    forged = b'{"build": 8}'
    async with Runtime(tmp_path, agents=[Ears().agent()], clock=FixedClock(NOON)) as rt:
        await rt.create_trigger("ops", "signed", signature="hub_sha256", signing_env="CI_SECRET")
        await rt.create_trigger("ops", "open")
        headers = hub(b'{"build": 7}')
        signed = await rt.deliver(await rt.trigger_url("ops/signed"), forged, headers)
        taken = await rt.deliver(await rt.trigger_url("ops/open"), forged, headers)
        assert (signed.reason, taken.outcome) == ("signature_invalid", "accepted")
        assert taken.message_id is not None
        assert (await rt.message(taken.message_id)).derived_from == "external_evidence", "and nobody vouches for it"


async def test_the_default_trigger_takes_a_signature_and_keeps_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_SECRET", "a secret of the CI")
    async with Runtime(tmp_path, agents=[Ears().agent()], clock=FixedClock(NOON)) as rt:
        url = await rt.trigger_url("ops")
        assert (await rt.deliver(url, b"hello")).outcome == "accepted", "the inversion: without it anybody may hint"
        for _ in range(2):
            made = await rt.create_trigger("ops", signature="hub_sha256", signing_env="CI_SECRET")
            assert (made.signature, made.signing_env) == ("hub_sha256", "CI_SECRET")
        assert await rt.trigger_url("ops") == url
        assert (await rt.deliver(url, b"hello")).reason == "signature_missing"
        assert (await rt.deliver(url, b"{}", hub(b"{}"))).outcome == "accepted"
        assert (await rt.create_trigger("ops")).signature == "hub_sha256", "asked for again, it stays as it is"
        assert len(await events(rt, "trigger.revised")) == 1


async def test_inversion_without_an_id_each_copy_counts(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[Ears().agent()], clock=FixedClock(NOON)) as rt:
        await rt.create_trigger("ops", "open")
        url = await rt.trigger_url("ops/open")
        outcomes = [(await rt.deliver(url, b"red")).outcome for _ in range(3)]
        assert outcomes == ["accepted"] * 3
        assert len(await events(rt, "trigger.delivered")) == 3


async def test_inversion_with_the_clock_at_its_time_an_old_delivery_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_SECRET", "a secret of the CI")
    old = datetime(2040, 1, 2, 11, 54, tzinfo=UTC)
    headers = standard(b"{}", at=old)
    clock = FixedClock(NOON)
    async with Runtime(tmp_path, agents=[Ears().agent()], clock=clock) as rt:
        await rt.create_trigger("ops", "std", signature="standard_webhooks", signing_env="CI_SECRET")
        url = await rt.trigger_url("ops/std")
        assert (await rt.deliver(url, b"{}", headers)).reason == "late"
    async with Runtime(tmp_path, agents=[Ears().agent()], clock=FixedClock(old + timedelta(minutes=4))) as rt:
        assert (await rt.deliver(url, b"{}", headers)).outcome == "accepted"
        assert (await rt.deliver(url, b"{}", {**headers, **JSON})).outcome == "duplicate"


async def test_inversion_without_a_salt_the_next_address_follows_from_an_older_copy(tmp_path: Path) -> None:
    live, copy = tmp_path / "live", tmp_path / "copy"
    async with Runtime(live, agents=[Ears().agent()]) as rt:
        await rt.create_trigger("ops", "ci")
        await rt.create_trigger("ops", "build")
    shutil.copytree(live, copy)
    saltless = [
        Fact(TriggerRotated(trigger_id=trigger_id_of("ops", name), generation=2, rotated_by="ada"), 1)
        for name in ("ci", "build")
    ]
    async with opened_store(str(live / "wakeful.db")) as store:
        await store.admit("ops", saltless[:1])
    async with Runtime(live, agents=[Ears().agent()]) as rt:
        await rt.rotate_trigger("ops/build")
        async with opened_store(str(copy / "wakeful.db")) as store:
            await store.admit("ops", saltless)
        async with Runtime(copy, agents=[Ears().agent()]) as stolen:
            found = {name: await stolen.trigger_url(f"ops/{name}") for name in ("ci", "build")}
        assert (await rt.deliver(found["ci"], b"planted")).outcome == "accepted"
        assert (await rt.deliver(found["build"], b"planted")).reason == "unknown_trigger"
