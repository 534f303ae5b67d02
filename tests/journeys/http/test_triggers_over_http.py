"""Triggers over HTTP: an address that opens one thing, deliveries that count once, signatures over the raw bytes."""

import hashlib
import hmac
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from kit.surfaces.served_home import Answer, HomeClient, ServedHome


@pytest.fixture(autouse=True, scope="module")
def secret() -> Iterator[None]:
    """Known to the process that is served."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CI_SECRET", "hush")
        yield


def address_of(client: HomeClient, trigger: str) -> str:
    shown = client.post(f"/control/triggers/{trigger}/url", {"purpose": "for the build server"})
    assert shown.status == 200, shown
    return urlsplit(shown.body["trigger_url"]).path


def deliver(client: HomeClient, address: str, body: bytes, **headers: str) -> Answer:
    return client.ask("POST", address, body, headers={"content-type": "text/plain", **headers})


@pytest.mark.spec("HOL-TRIG-06", "HOL-TRIG-07", "HOL-TRIG-13", "HOL-TRIG-14")
def test_every_agent_has_an_address_that_wakes_it(client: HomeClient, stranger: HomeClient) -> None:
    (before,) = client.get("/triggers?agent=keeper").body
    shown = client.post(f"/control/triggers/{before['external_trigger_id']}/url", {}).body
    assert set(shown) == {"external_trigger_id", "trigger_url", "target_agent_id", "delivery_mode", "status"}
    assert (shown["delivery_mode"], shown["status"]) == ("wake_hint", "active")
    address = address_of(client, before["external_trigger_id"])
    assert address == urlsplit(shown["trigger_url"]).path, "asked again, it is the same"
    told = deliver(stranger, address, b"anything", **{"x-wakeful-source": "ci"})
    assert (told.status, told.body["outcome"]) == (202, "accepted"), "the address is the secret; no token is needed"
    (after,) = client.get("/triggers?agent=keeper").body
    assert after["delivery_count"] == before["delivery_count"] + 1 and after["last_delivered_at"] is not None
    events = client.get("/agents/keeper/events?limit=1000").body
    (delivered,) = [each["payload"] for each in events if each["envelope"]["kind"] == "trigger.delivered"]
    assert delivered["trigger_id"] == before["external_trigger_id"]
    assert (delivered["target_agent_id"], delivered["delivery_mode"]) == ("keeper", "wake_hint")


@pytest.mark.spec("HOL-TRIG-11", "HOL-TRIG-19")
def test_a_delivery_counts_once_and_a_revoked_address_takes_nothing(
    home: ServedHome, client: HomeClient, stranger: HomeClient
) -> None:
    made = client.post("/control/agents/clerk/triggers", {"name": "ci", "say": "A build reported in."})
    trigger = made.body["external_trigger_id"]
    address = address_of(client, trigger)
    first = deliver(stranger, address, b"build 7 is red", **{"idempotency-key": "7"})
    again = deliver(stranger, address, b"build 7 is red", **{"idempotency-key": "7"})
    assert (first.status, again.status, again.body["outcome"]) == (202, 200, "duplicate")
    assert first.body["message_id"] == again.body["message_id"]
    other = deliver(stranger, address, b"build 7 is green", **{"idempotency-key": "7"})
    assert (other.status, other.code) == (409, "key_reused")
    assert client.post(f"/control/triggers/{trigger}/rotate", {}).body["generation"] == 2
    old = deliver(stranger, address, b"build 8 is red")
    assert (old.status, old.code) == (404, "unknown_trigger")
    fresh = address_of(client, trigger)
    assert fresh != address and deliver(stranger, fresh, b"build 8 is red").status == 202
    client.post(f"/control/triggers/{trigger}/revoke", {"reason": "unused"})
    gone = deliver(stranger, fresh, b"build 9 is red")
    assert (gone.status, gone.code) == (410, "revoked")
    (record,) = [each for each in client.get("/triggers?agent=clerk").body if each["external_trigger_id"] == trigger]
    assert (record["status"], record["delivery_count"]) == ("revoked", 2), "what it brought stays on record"
    for each in (address, fresh):
        assert each.rpartition("/")[2] not in home.said.read_text(), "no address reaches a log"


def test_a_signature_is_over_the_bytes_that_came(client: HomeClient, stranger: HomeClient) -> None:
    body = {"name": "signed", "signature": "hub_sha256", "signing_env": "CI_SECRET"}
    made = client.post("/control/agents/clerk/triggers", body)
    assert made.status == 200, made
    address = address_of(client, made.body["external_trigger_id"])
    raw = b'{"a":  1}'  # with two spaces: parsed and written again it would be something else
    signed = "sha256=" + hmac.new(b"hush", raw, hashlib.sha256).hexdigest()
    missing = deliver(stranger, address, raw)
    assert (missing.status, missing.code) == (401, "signature_missing")
    for wrong in (b'{"a": 1}', raw + b"\n", b""):
        refused = deliver(stranger, address, wrong, **{"x-hub-signature-256": signed})
        assert refused.status == 401, refused
    taken = deliver(stranger, address, raw, **{"x-hub-signature-256": signed})
    assert (taken.status, taken.body["outcome"]) == (202, "accepted")
    guessed = deliver(stranger, address[:-5] + "AAAAA", raw)
    assert (guessed.status, guessed.code) == (404, "unknown_trigger")
    refused = client.get("/control/runtime/status").body["refused"]
    assert refused["signature_missing"] >= 1 and refused["signature_invalid"] >= 3 and refused["unknown_trigger"] >= 1


def test_the_time_of_a_turn_is_told(client: HomeClient) -> None:
    sent = client.post("/agents/clerk/messages", {"text": "hello", "thread": "timed"})
    turn = client.until_ended(sent.body)["turn_id"]
    found = client.get(f"/turns/{turn}/latency").body
    assert found["turn_id"] == turn and found["turn_ms"] > 0
    assert {"queue_wait_ms", "context_build_ms", "provider_ms", "tools_ms"} <= set(found)
