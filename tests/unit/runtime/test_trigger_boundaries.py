"""Where a trigger ends: it owns no wait and no work, and tells its address only to who asks. It knows no sender."""

import json
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, Runtime, open_store
from wakeful.ports import ModelRequest
from wakeful.testing import FixedClock, scripted
from wakeful.views.trigger_records import TriggerRecord


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("WAKEFUL_HOME", str(folder))
    return folder


def ops(*replies: Any, **options: Any) -> tuple[Agent[None, str], list[ModelRequest]]:
    """An agent that says these in turn, and what its model was asked."""
    left, asked = list(replies), list[ModelRequest]()

    def answer(request: ModelRequest) -> Any:
        asked.append(request)
        found = left.pop(0) if left else "noted"
        return found(request) if callable(found) else found

    return Agent("ops", scripted(answer), **options), asked


async def events(rt: Runtime, prefix: str) -> list[Any]:
    found = [entry.fact.event for entry in await rt._here.engine.store.read("ops")]
    return [event for event in found if event.kind.startswith(prefix)]


@pytest.mark.spec("HOL-TRIG-15")
async def test_a_delivery_needs_no_wait_and_makes_none(tmp_path: Path) -> None:
    agent, _ = ops()
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        await rt.create_trigger("ops", "ci")
        for name in ("ops", "ops/ci"):
            assert (await rt.deliver(await rt.trigger_url(name), b"red")).outcome == "accepted"
        await rt.settled()
        assert await events(rt, "wait.") == []


@pytest.mark.spec("HOL-TRIG-04", "HOL-TRIG-17", "HOL-TRIG-18")
async def test_a_wait_may_speak_of_a_trigger_and_ends_without_it(tmp_path: Path) -> None:
    def wait(request: ModelRequest) -> Any:
        terms = {"reason": "the build", "wake": "external", "resource": "build 7", "work_item_id": "wi_1"}
        return calls(("wait_for", terms))

    def cancel(request: ModelRequest) -> Any:
        return calls(("cancel_wait", {"wait_id": waited}))

    agent, _ = ops(wait, wait, cancel)
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        url = await rt.trigger_url("ops")
        await rt.answer(await rt.send("ops", "Wait for the build."))
        receipt = await rt.deliver(url, b"", {"Wakeful-Resource": "build 7"})
        assert receipt.outcome == "accepted"
        await rt.settled()
        (wait_made,) = await events(rt, "wait.created")
        assert (wait_made.reason, wait_made.resource, wait_made.work_item_id) == ("the build", "build 7", "wi_1")
        (delivered,) = await events(rt, "trigger.delivered")
        assert (delivered.wait_ids, delivered.work_item_ids) == ((wait_made.wait_id,), ("wi_1",))
        assert len(await rt._here.engine.store.open_waits("ops")) == 1, "an empty hint ends nothing"
        await rt.deliver(url, b"it is red", {"Wakeful-Resource": "build 7"})
        await rt.settled()
        (ended,) = await events(rt, "wait.resolved")
        assert ended.wait_id == wait_made.wait_id, "the turn that read it ended the wait, and made another"
        (row,) = await rt._here.engine.store.open_waits("ops")
        waited = row.wait_id
        await rt.answer(await rt.send("ops", "Never mind."))
        assert await rt._here.engine.store.open_waits("ops") == []
        assert [each.status for each in await rt.triggers("ops")] == ["active"]
        assert await rt.trigger_url("ops") == url, "no wait owned it"
    assert not {"work_item_id", "wait_id"} & set(TriggerRecord.model_fields)


@pytest.mark.spec("HOL-TRIG-16", "HOL-TRIG-20")
async def test_a_delivery_frees_no_blocker_and_the_end_of_work_revokes_no_trigger(tmp_path: Path) -> None:
    made: list[str] = []

    def create(request: ModelRequest) -> Any:
        return calls(("create_work_item", {"objective": "Mend the build."}))

    def block(request: ModelRequest) -> Any:
        made.append(json.loads(request.history[-1].text)["work_item_id"])
        return calls(("update_work_item", {"work_item_id": made[0], "blocked_by": "the new machine"}))

    def complete(request: ModelRequest) -> Any:
        return {"text": "It is green.", **calls(("complete_work_item", {"work_item_id": made[0]}))}

    agent, _ = ops(create, block, "Blocked.", "I saw it.", complete, "Done.", work_items=True)
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        url = await rt.trigger_url("ops")
        await rt.answer(await rt.send("ops", "Mend the build."))
        await rt.deliver(url, b"the machine is there")
        await rt.settled()
        (item,) = await rt.work_items("ops")
        assert (item.blocked_by, item.state) == ("the new machine", "open"), "the agent decides about that"
        await rt.answer(await rt.send("ops", "Go on."))
        assert await rt.work_items("ops") == []
        assert [each.status for each in await rt.triggers("ops")] == ["active"]
        assert (await rt.deliver(url, b"again")).outcome == "accepted"


@pytest.mark.spec("HOL-TRIG-05")
async def test_labels_of_senders_stand_in_the_provenance_and_make_no_trigger_of_their_own(tmp_path: Path) -> None:
    agent, _ = ops()
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        url = await rt.trigger_url("ops")
        for source in ("ci", "mail"):
            await rt.deliver(url, b"", {"wakeful-source": source})
        assert [event.source for event in await events(rt, "trigger.delivered")] == ["ci", "mail"]
        (record,) = await rt.triggers("ops")
        assert (record.delivery_count, record.last_source, await rt.trigger_url("ops")) == (2, "mail", url)


@pytest.mark.spec("HOL-TRIG-09")
async def test_a_model_gets_its_address_by_a_call_that_is_on_record_and_readers_do_not_see_it(tmp_path: Path) -> None:
    agent, asked = ops(calls(("trigger_url", {"purpose": "the CI calls it"})), "configured")
    place = tmp_path / "rt"
    async with Runtime(place, agents=[agent], clock=FixedClock(), public_url="https://hooks.example.org") as rt:
        done = await rt.answer(await rt.send("ops", "Configure the CI."))
        assert done.status == "completed"
        url = await rt.trigger_url("ops")
        told = json.loads(asked[1].history[-1].text)
        assert (told["trigger_url"], told["delivery_mode"], told["status"]) == (url, "wake_hint", "active")
        assert "Do not repeat, store or forward it" in told["warning"]
        assert "external trigger" in asked[0].instructions and url not in asked[0].instructions, (
            "the prompt has the capability"
        )
        (given, _) = await events(rt, "trigger.url_given")
        assert (given.given_to, given.turn_id, given.purpose) == ("agent", done.turn_id, "the CI calls it")
    secret = url.rpartition("/")[2]
    async with open_store(place / "wakeful.db") as store:
        shown = [event.model_dump_json() async for event in store.events(done.turn_id)]
        assert shown and all(secret not in line for line in shown)
        assert secret not in (await store.tree(done.turn_id)).model_dump_json()


async def test_where_nobody_reaches_the_runtime_no_model_is_offered_an_address(tmp_path: Path) -> None:
    agent, asked = ops()
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        await rt.answer(await rt.send("ops", "Hello."))
    offered = {each.name for each in asked[0].tools}
    assert not any("trigger" in name for name in offered)


@pytest.mark.spec("HOL-TRIG-01")
def test_the_public_word_is_trigger_and_no_provider_is_known_to_the_core(root: Path) -> None:
    source = root / "src" / "wakeful"
    for name in (
        "service/commands/triggers.py",
        "runtime/triggers.py",
        "decisions/waking/webhook_signatures.py",
        "decisions/waking/trigger_addresses.py",
        "contracts/triggers.py",
        "store/tables/triggers.py",
    ):
        words = (source / name).read_text().lower()
        assert not [each for each in ("github", "gitlab", "slack", "stripe", "jira") if each in words], name
    said = (source / "service/commands/trigger_control.py").read_text() + (
        source / "surfaces/cli/triggers.py"
    ).read_text()
    assert "callback" not in said.lower(), "a callback is an address of HTTP, and no word for people or models"


async def test_a_delivery_to_an_agent_that_was_put_away_or_deleted_is_refused_by_name(tmp_path: Path) -> None:
    definition = {"name": "made", "model": "scripted:demo"}
    async with Runtime(tmp_path, agents=[Agent("ops", scripted(["noted"]))], clock=FixedClock()) as rt:
        await rt.create(definition)
        for agent in ("ops", "made"):
            await rt.create_trigger(agent, "ci")
        kept, gone = await rt.trigger_url("ops/ci"), await rt.trigger_url("made/ci")
        await rt.archive("ops")
        refused = await rt.deliver(kept, b"")
        assert (refused.outcome, refused.reason) == ("refused", "agent_stopped")
        assert "ops" in refused.message
        await rt.delete("made")
        refused = await rt.deliver(gone, b"")
        assert (refused.outcome, refused.reason) == ("refused", "revoked")


@pytest.mark.parametrize("body", [b"null", b" null ", b"0", b'""', b"[]", b"{}"])
async def test_data_that_is_next_to_nothing_is_kept_and_read_again(tmp_path: Path, body: bytes) -> None:
    agent, asked = ops()
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        await rt.create_trigger("ops", "ci", say="Look.")
        told = await rt.deliver(await rt.trigger_url("ops/ci"), body, {"Content-Type": "application/json"})
        assert told.outcome == "accepted"
        await rt.settled()
        assert len(asked) == 1
        (admitted,) = await events(rt, "message.admitted")
        assert admitted.body.value == json.loads(body)
    async with Runtime(tmp_path / "rt", agents=[ops()[0]], clock=FixedClock()) as rt:
        assert (await rt.answer(await rt.send("ops", "Are you there?"))).output == "noted"


async def test_a_number_that_json_has_not_is_refused(tmp_path: Path) -> None:
    agent, asked = ops()
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        await rt.create_trigger("ops", "ci", say="Look.")
        for body in (b"[1e999]", b"[NaN]", b"[-Infinity]"):
            told = await rt.deliver(await rt.trigger_url("ops/ci"), body, {"Content-Type": "application/json"})
            assert (told.outcome, told.reason) == ("refused", "invalid_body")
        await rt.settled()
        assert asked == []
