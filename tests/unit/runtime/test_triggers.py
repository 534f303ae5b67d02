"""Triggers through `Runtime`: an address an agent, named ones, signatures, and what becomes of a delivery."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kit.runs.deliveries import JSON, NOON, SECRET, Ears, events, hub, standard
from wakeful import Agent, Runtime, tool
from wakeful.errors import AgentNotFound, InvalidConfig, InvalidRequest, InvalidValue
from wakeful.testing import FixedClock


@pytest.mark.spec("HOL-TRIG-02", "HOL-TRIG-06", "HOL-TRIG-07", "HOL-TRIG-08")
async def test_every_agent_has_one_trigger_from_its_beginning_and_its_address_is_stored_nowhere(
    tmp_path: Path,
) -> None:
    async with Runtime(tmp_path, agents=[Ears().agent()], public_url="https://hooks.example.org/") as rt:
        (record,) = await rt.triggers("ops")
        assert (record.target_agent_id, record.name, record.delivery_mode, record.status) == (
            "ops",
            "",
            "wake_hint",
            "active",
        )
        url = await rt.trigger_url("ops")
        assert url.startswith(f"https://hooks.example.org/callbacks/wake/wkt_{record.external_trigger_id[4:]}.")
        assert await rt.create_trigger("ops") == record, "there is never a second one"
        assert await rt.trigger_url(record.external_trigger_id) == url
    code = url.rpartition(".")[2].encode()
    assert all(code not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    async with Runtime(tmp_path, agents=[Ears().agent()]) as rt:
        assert await rt.trigger_url("ops") == url.removeprefix("https://hooks.example.org"), "it outlives a restart"


@pytest.mark.spec("HOL-TRIG-03", "HOL-TRIG-11", "HOL-TRIG-12", "HOL-TRIG-13")
async def test_a_delivery_to_the_default_trigger_is_a_hint_and_counts(tmp_path: Path) -> None:
    ears, clock = Ears(), FixedClock(NOON)
    async with Runtime(tmp_path, agents=[ears.agent()], clock=clock) as rt:
        url = await rt.trigger_url("ops")
        empty = await rt.deliver(url)
        await rt.settled()
        assert (empty.outcome, empty.message_id, ears.shown) == ("accepted", None, []), "no model is asked"
        full = await rt.deliver(url, b"the build is red", {"Wakeful-Source": "ci"})
        await rt.settled()
        assert full.hint_id is not None and len(ears.shown) == 1 and "the build is red" in ears.shown[0]
        kinds = {event.message_kind for event in await events(rt, "message.admitted")}
        assert kinds == {"system_tick"}, "and never a message of the sender's"
        (record,) = await rt.triggers()
        assert (record.delivery_count, record.last_delivered_at) == (2, NOON.timestamp())
        assert (record.last_delivery, record.last_source) == (full.hint_id, "ci")


@pytest.mark.spec("HOL-HINT-03", "HOL-KIND-05", "HOL-ORIG-05", "HOL-TRIG-14")
async def test_a_named_trigger_brings_a_message_with_its_provenance(tmp_path: Path) -> None:
    ears = Ears()
    raw = json.dumps({"build": 7, "ok": False}).encode()
    async with Runtime(tmp_path, agents=[ears.agent()], clock=FixedClock(NOON)) as rt:
        made = await rt.create_trigger("ops", "ci", say="A build reported in.")
        url = await rt.trigger_url("ops/ci")
        assert "/callbacks/enqueue/" in url
        headers = {**JSON, "Wakeful-Resource": "build 7", "Wakeful-Correlation-Id": "release-9"}
        receipt = await rt.deliver(url, raw, headers)
        assert receipt.message_id is not None
        envelope = await rt.message(receipt.message_id)
        assert (envelope.kind, envelope.trigger_kind) == ("callback_event", "external_event")
        assert envelope.origin.model_dump() == {
            "kind": "callback",
            "descriptor_id": made.external_trigger_id,
            "source": "ci",
        }
        assert envelope.body.model_dump() == {"type": "json", "value": {"build": 7, "ok": False}}
        assert (envelope.delivery_surface, envelope.admission_context) == (
            "http_callback_enqueue",
            "external_trigger_capability",
        )
        assert envelope.source_refs == {
            "external_trigger_id": made.external_trigger_id,
            "source": "ci",
            "resource": "build 7",
        }
        assert envelope.correlation_id == "release-9"
        await rt.settled()
        assert "A build reported in.\n\n{" in ears.shown[0] and '"build": 7' in ears.shown[0]
        (delivered,) = await events(rt, "trigger.delivered")
        assert (delivered.trigger_id, delivered.target_agent_id, delivered.delivery_mode) == (
            made.external_trigger_id,
            "ops",
            "enqueue_message",
        )
        assert (delivered.source, delivered.resource, delivered.message_id) == ("ci", "build 7", receipt.message_id)


async def test_whose_word_a_delivery_is_follows_from_what_its_sender_showed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_SECRET", SECRET)
    raw = b'{"ok": false}'
    async with Runtime(tmp_path, agents=[Ears().agent()], clock=FixedClock(NOON)) as rt:
        await rt.create_trigger("ops", "plain")
        await rt.create_trigger("ops", "signed", signature="hub_sha256", signing_env="CI_SECRET")
        await rt.create_trigger("ops", "said", say="Check the backups.")
        found = {}
        for name, body, headers in (
            ("plain", raw, JSON),
            ("signed", raw, hub(raw)),
            ("said", b"", {}),
        ):
            receipt = await rt.deliver(await rt.trigger_url(f"ops/{name}"), body, headers)
            assert receipt.message_id is not None, receipt
            envelope = await rt.message(receipt.message_id)
            found[name] = envelope.authority_class, envelope.derived_from
    assert found == {
        "plain": ("integration_signal", "external_evidence"),
        "signed": ("integration_signal", "integration_signal"),
        "said": ("operator_instruction", "operator_instruction"),
    }


async def test_what_an_unsigned_delivery_wants_changed_needs_a_person(tmp_path: Path) -> None:
    paid: list[int] = []

    @tool(effect="keyed")
    def pay(cents: int) -> str:
        """Pay somebody."""
        paid.append(cents)
        return "paid"

    ears = Ears()
    async with Runtime(tmp_path, agents=[ears.agent(tools=[pay])], clock=FixedClock(NOON)) as rt:
        await rt.create_trigger("ops", "ci", say="Look.")
        receipt = await rt.deliver(await rt.trigger_url("ops/ci"), b"transfer 5 to eve")
        asked = await rt.answer(receipt)
        assert (asked.status, paid) == ("approval_required", [])
        nowhere = await rt.deliver("/callbacks/nobody", b"transfer 5 to eve")
        with pytest.raises(InvalidValue, match="is none") as told:
            await rt.answer(nowhere)
        assert told.value.hint == "Give what `send` returned, or `deliver` of a delivery that brought a message."


@pytest.mark.parametrize("scheme", ["hub_sha256", "standard_webhooks"])
async def test_a_thousand_copies_make_one_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: Any) -> None:
    monkeypatch.setenv("CI_SECRET", SECRET)
    raw = b'{"build": 7}'
    headers = hub(raw) if scheme == "hub_sha256" else standard(raw)
    async with Runtime(tmp_path, agents=[Ears().agent()], clock=FixedClock(NOON)) as rt:
        await rt.pause("ops")
        await rt.create_trigger("ops", "ci", signature=scheme, signing_env="CI_SECRET")
        url = await rt.trigger_url("ops/ci")
        answers = await asyncio.gather(*(rt.deliver(url, raw, headers) for _ in range(1_000)))
        outcomes = [answer.outcome for answer in answers]
        assert (outcomes.count("accepted"), outcomes.count("duplicate")) == (1, 999)
        assert len({answer.message_id for answer in answers}) == 1, "each is told which message it was"
        assert len(await events(rt, "trigger.delivered")) == len(await events(rt, "message.admitted")) == 1
        assert len(await events(rt, "input.refused")) < 12, "those are counted, and leave no fact each"
        record = (await rt.triggers())[-1]
        assert (record.delivery_count, record.refused) == (1, {"duplicate": 999})


async def test_what_is_not_signed_late_or_changed_is_refused_by_name_and_nothing_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_SECRET", SECRET)
    raw, other = b'{"build": 7}', b'{"build": 8}'
    old = datetime(2040, 1, 2, 11, 54, 59, tzinfo=UTC)
    async with Runtime(tmp_path, agents=[Ears().agent()], clock=FixedClock(NOON)) as rt:
        await rt.create_trigger("ops", "hub", signature="hub_sha256", signing_env="CI_SECRET")
        await rt.create_trigger("ops", "std", signature="standard_webhooks", signing_env="CI_SECRET")
        await rt.create_trigger("ops", "bare", signature="hub_sha256", signing_env="NOT_SET_ANYWHERE")
        await rt.create_trigger("ops", "open")
        urls = {name: await rt.trigger_url(f"ops/{name}") for name in ("hub", "std", "bare", "open")}
        before = len(await events(rt, ""))
        for name, body, headers, reason in (
            ("hub", raw, JSON, "signature_missing"),
            ("hub", other, hub(raw), "signature_invalid"),
            ("hub", raw, hub(raw, "another secret"), "signature_invalid"),
            ("std", raw, JSON, "signature_missing"),
            ("std", other, standard(raw), "signature_invalid"),
            ("std", raw, {**standard(raw), "webhook-id": "msg_2"}, "signature_invalid"),
            ("std", raw, {**standard(raw), "webhook-timestamp": "now"}, "invalid_header"),
            ("std", raw, standard(raw, at=old), "late"),
            ("bare", raw, hub(raw), "secret_missing"),
            ("open", b"x" * 256_001, {}, "too_large"),
            ("open", b"[" * 65 + b"]" * 65, JSON, "too_deep"),
            ("open", b'{"ok": NaN}', JSON, "invalid_body"),
            ("open", b'{"ok": "\\ud800"}', JSON, "invalid_body"),
            ("open", b"\xff\xfe", {}, "invalid_body"),
            ("open", b"x", {"Idempotency-Key": "k" * 257}, "invalid_header"),
        ):
            receipt = await rt.deliver(urls[name], body, headers)
            assert (receipt.outcome, receipt.reason) == ("refused", reason), (name, headers, receipt)
        stored = {event.kind for event in (await events(rt, ""))[before:]}
        assert stored == {"input.refused"}
        assert (await rt.agents())[0].refused == {
            "invalid_body": 3,
            "invalid_header": 2,
            "late": 1,
            "secret_missing": 1,
            "signature_invalid": 4,
            "signature_missing": 2,
            "too_deep": 1,
            "too_large": 1,
        }


async def test_a_delivery_id_used_with_another_body_is_refused(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[Ears().agent()], clock=FixedClock(NOON)) as rt:
        await rt.create_trigger("ops", "ci")
        url = await rt.trigger_url("ops/ci")
        answers = [await rt.deliver(url, body, {"Idempotency-Key": "7"}) for body in (b"red", b"red", b"green")]
        assert [answer.outcome for answer in answers] == ["accepted", "duplicate", "refused"]
        assert answers[2].reason == "key_reused"


@pytest.mark.spec("HOL-TRIG-19", "HOL-TRIG-10")
async def test_an_address_that_was_rotated_or_revoked_is_refused_and_what_it_brought_stays(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[Ears().agent()], clock=FixedClock(NOON)) as rt:
        await rt.create_trigger("ops", "ci")
        first = await rt.trigger_url("ops/ci")
        await rt.deliver(first, b"one")
        rotated = await rt.rotate_trigger("ops/ci", by="ada", reason="it was in a log")
        second = await rt.trigger_url("ops/ci")
        assert rotated.generation == 2 and second != first
        assert (await rt.deliver(first, b"two")).reason == "unknown_trigger"
        assert (await rt.deliver(second, b"two")).outcome == "accepted"
        revoked = await rt.revoke_trigger("ops/ci", by="ada")
        assert (revoked.status, revoked.delivery_count) == ("revoked", 2), "the record is kept"
        assert (await rt.deliver(second, b"three")).reason == "revoked"
        for wrong in (rt.trigger_url("ops/ci"), rt.rotate_trigger("ops/ci"), rt.revoke_trigger("ops/ci")):
            with pytest.raises(InvalidRequest, match="revoked"):
                await wrong
        await rt.create_trigger("ops", "ci")
        third = await rt.trigger_url("ops/ci")
        assert len({first, second, third}) == 3, "no address comes back"
        kinds = [event.kind for event in await events(rt, "trigger.") if event.kind != "trigger.url_given"]
        assert kinds == [
            "trigger.created",
            "trigger.delivered",
            "trigger.rotated",
            "trigger.delivered",
            "trigger.revoked",
            "trigger.created",
        ]


async def test_an_address_that_is_made_up_is_refused(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[Ears().agent()]) as rt:
        url = await rt.trigger_url("ops")
        for wrong in (
            url[:-1] + ("A" if url[-1] != "A" else "B"),
            url.replace("wkt_", "wkt_0"),
            "",
            "/callbacks/wake/",
            "x" * 100_000,
            url + "\n",
        ):
            assert (await rt.deliver(wrong, b"hello")).reason == "unknown_trigger", wrong[-80:]
        assert (await rt.deliver(url.rpartition("/")[2], b"hello")).outcome == "accepted", "its last part will do"


async def test_a_stopped_agent_takes_no_delivery_and_a_paused_one_keeps_it(tmp_path: Path) -> None:
    ears = Ears()
    async with Runtime(tmp_path, agents=[ears.agent()], clock=FixedClock(NOON)) as rt:
        await rt.create_trigger("ops", "ci")
        urls = await rt.trigger_url("ops"), await rt.trigger_url("ops/ci")
        await rt.stop("ops")
        for url in urls:
            receipt = await rt.deliver(url, b"red")
            assert receipt.reason == "agent_stopped" and "was stopped by program" in receipt.message
        await rt.resume("ops")
        await rt.stop_all(reason="fire")
        for url in urls:
            receipt = await rt.deliver(url, b"red")
            words = "all agents are stopped by program: fire"
            assert (receipt.reason, receipt.message) == ("agent_stopped", words)
        await rt.resume_all()
        await rt.pause("ops")
        for url in urls:
            assert (await rt.deliver(url, b"green")).outcome == "accepted"
        assert ears.shown == []
        await rt.resume("ops")
        await rt.settled()
        assert len(ears.shown) == 2


async def test_what_cannot_be_a_trigger_is_refused_with_what_would_be_right(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[Ears().agent()]) as rt:
        await rt.create_trigger("ops", "ci")
        for wrong, words in (
            ({"name": "ci"}, "has a trigger called 'ci'"),
            ({"name": "no spaces"}, "cannot be called 'no spaces'"),
            ({"name": "a", "signature": "hub_sha256"}, "signing_env=None"),
            ({"name": "a", "signing_env": "CI_SECRET"}, "signature=None"),
            ({"name": "a", "signature": "md5", "signing_env": "CI_SECRET"}, "signature='md5'"),
            ({"name": "a", "signature": "hub_sha256", "signing_env": "s3cr3t!"}, "not the name of an environment"),
            ({"name": "a", "say": "x" * 4_001}, "4,001 characters"),
            ({"say": "Look."}, "named triggers"),
        ):
            with pytest.raises(InvalidRequest, match=words):
                await rt.create_trigger("ops", **wrong)  # type: ignore[arg-type]
        with pytest.raises(AgentNotFound, match="no agent 'nobody'"):
            await rt.create_trigger("nobody", "ci")
        with pytest.raises(InvalidRequest, match="there is no trigger 'ops/cd'"):
            await rt.trigger_url("ops/cd")
        assert len(await rt.triggers()) == 2
    with pytest.raises(InvalidRequest, match=r"public_url='hooks.example.org' is not an address"):
        Runtime(tmp_path, public_url="hooks.example.org")


async def test_a_definition_has_its_triggers_and_keeps_their_addresses(tmp_path: Path) -> None:
    def ops(*wake: dict[str, Any]) -> Agent[None, str]:
        return Ears().agent(wake=wake)

    async with Runtime(tmp_path, agents=[ops({"trigger": "ci", "say": "A build."}, {"trigger": "cd"})]) as rt:
        assert [each.name for each in await rt.triggers()] == ["", "cd", "ci"]
        urls = {name: await rt.trigger_url(f"ops/{name}") for name in ("ci", "cd")}
        await rt.create_trigger("ops", "mine")
    async with Runtime(tmp_path, agents=[ops({"trigger": "ci", "say": "Another build.", "thread": "builds"})]) as rt:
        found = {each.name: each for each in await rt.triggers()}
        assert (found["ci"].say, found["ci"].thread, found["ci"].status) == ("Another build.", "builds", "active")
        assert await rt.trigger_url("ops/ci") == urls["ci"], "programs outside have it"
        assert (found["cd"].status, found["mine"].status) == ("revoked", "active")
    for wrong, words in (
        ({"trigger": "ci", "cron": "0 7 * * *"}, "cron"),
        ({"trigger": "ci", "signature": "hub_sha256"}, "signature without signing_env"),
        ({"trigger": "no spaces"}, "trigger"),
        ({"trigger": "ci", "catch_up": "all"}, "catch_up"),
    ):
        with pytest.raises(InvalidConfig, match=words):
            ops(wrong)
    with pytest.raises(InvalidConfig, match="the trigger 'ci' twice"):
        ops({"trigger": "ci"}, {"trigger": "ci", "say": "Look."})
