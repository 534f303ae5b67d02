"""A turn that a provider lost, through `Runtime`: its people are told, and what happened is on record with it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from wakeful import Agent, Runtime
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import KINDS_BY_NAME
from wakeful.contracts.models import ModelGlimpse, Reply, TokenUsage
from wakeful.ports import ModelRequest
from wakeful.testing import FixedClock, scripted
from wakeful.views.transcript import RuntimeFailure, Transcript


@pytest.mark.spec("HOL-CLOSE-13", "HOL-CLOSE-14", "HOL-CLOSE-15")
async def test_a_turn_that_providers_lost_is_told_to_its_people_with_every_attempt(tmp_path: Path) -> None:
    lost = [{"fail": [{"kind": "contract_error", "message": "no such parameter"}]}]
    spare = [{"fail": [{"kind": "unsupported_transport", "message": "no such wire"}]}]
    agent = Agent("ops", scripted(lost), fallbacks=[scripted(spare)], work_items=True)
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock()) as rt:
        sent = await rt.send("ops", "Check the backups.")
        result = await rt.answer(sent)
        assert (result.status, result.stop_reason) == ("failed", "provider_error")
        assert (await rt.closure("ops")).outcome == "failed"
        (brief,) = await rt.briefs("ops")
        assert (brief.kind, brief.related_message_id, brief.turn_id) == ("failure", sent.message_id, result.turn_id)
        assert brief.text == "The model's provider did not answer."
        facts = await rt._here.engine.store.read("ops", turn_id=result.turn_id)
        (failed,) = [entry.fact.event for entry in facts if entry.fact.event.kind in KINDS_BY_NAME["runtime_error"]]
        view = Transcript()
        (entry,) = [each for each in map(view.feed, facts) if isinstance(each, RuntimeFailure)]
        assert failed.message == entry.data.message == "scripted:inline after 2 attempts: no such wire"
        assert entry.data.provider_attempt_timeline == failed.timeline
        assert failed.timeline is not None and len(failed.timeline.attempts) == 2


class Metered:
    """A model whose lost attempts say what they cost."""

    ref = "mine:m"

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        used = TokenUsage(input_tokens=10, output_tokens=2, total_tokens=12)
        raise ModelFailure("it broke off", kind="invalid_response", stage="decode", usage=used)
        yield Reply(item=AssistantItem())


@pytest.mark.spec("HOL-CLOSE-16")
async def test_what_lost_attempts_cost_stands_in_the_entry_and_in_the_event(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[Agent("ops", Metered())]) as rt:
        result = await rt.answer(await rt.send("ops", "Check the backups."))
        facts = await rt._here.engine.store.read("ops", turn_id=result.turn_id)
        (failed,) = [entry.fact.event for entry in facts if entry.fact.event.kind in KINDS_BY_NAME["runtime_error"]]
        (entry,) = [each for each in map(Transcript().feed, facts) if isinstance(each, RuntimeFailure)]
        for timeline in (failed.timeline, entry.data.provider_attempt_timeline):
            assert timeline is not None and timeline.aggregated_token_usage is not None
            assert timeline.aggregated_token_usage.total_tokens == 24
            assert [attempt.token_usage is not None for attempt in timeline.attempts] == [True, True]
