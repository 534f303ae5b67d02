"""Random lives of agents on a virtual clock: nothing acknowledged is lost, nothing is done twice, nobody is stuck.

200 worlds here, more with `make worlds WORLDS=...`. A world that fails prints its seed; one seed alone:
`WAKEFUL_SIMULATED_WORLDS=1 WAKEFUL_FIRST_WORLD=SEED pytest tests/unit/runtime/test_simulation.py`.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kit.runs.runtime_world import live
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import MessageAdmitted
from wakeful.ports import AdmissionAnswer, MessageRow, Store, WakeRow
from wakeful.testing.wrapped_store import WrappedStore

WORLDS = int(os.environ.get("WAKEFUL_SIMULATED_WORLDS", "200"))
FIRST = int(os.environ.get("WAKEFUL_FIRST_WORLD", "0"))
SHARES = 8


@pytest.mark.parametrize("share", range(SHARES))
async def test_the_invariants_hold_in_every_world(share: int) -> None:
    for seed in range(FIRST + share, FIRST + WORLDS, SHARES):
        assert await live(seed) == [], f"world {seed}"


class Forgetful(WrappedStore):
    """Acknowledges each third message and keeps nothing of it."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.count = 0
        self.lost: dict[str, MessageRow] = {}

    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> AdmissionAnswer | None:
        event = facts[-1].event
        if isinstance(event, MessageAdmitted):
            self.count += 1
            if self.count % 3 == 0 or event.message_id in self.lost:
                row = self.lost[event.message_id] = MessageRow(
                    event.message_id, agent_id, facts[-1].thread_id or "", "queued", 2, "operator_prompt",
                    "operator_instruction", event.key, "", 1, 1, None, None,
                )  # fmt: skip
                return AdmissionAnswer(None, True, queued=row)
        return await self.inner.admit(agent_id, facts, **options)

    async def message(self, message_id: str) -> MessageRow | None:
        return self.lost.get(message_id) or await self.inner.message(message_id)


class Deaf(WrappedStore):
    """Never tells a scheduler of what is due for one of the agents."""

    async def due_wakes(self, now: int, *, limit: int, after: WakeRow | None = None) -> list[WakeRow]:
        rows = await self.inner.due_wakes(now, limit=limit, after=after)
        return [row for row in rows if row.agent_id != "bob"]


class Trusting(WrappedStore):
    """Takes every message for the runtime's own."""

    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> AdmissionAnswer | None:
        for fact in facts:
            if isinstance(fact.event, MessageAdmitted):
                fact.event = fact.event.model_copy(update={"admission_context": "runtime_owned"})
        return await self.inner.admit(agent_id, facts, **options)


async def found_in(worlds: int, *, wrap: Callable[[Store], Any] | None = None, repeats: bool = False) -> str:
    found: list[str] = []
    for seed in range(worlds):
        found += await live(seed, repeats=repeats, **({} if wrap is None else {"wrap": wrap}))
    return "\n".join(found)


async def test_inversion_a_store_that_loses_messages_is_caught() -> None:
    assert "was acknowledged and is not in the log once" in await found_in(3, wrap=Forgetful)


async def test_inversion_a_scheduler_that_never_hears_of_an_agent_is_caught() -> None:
    assert "of bob was acknowledged and is queued" in await found_in(3, wrap=Deaf)


async def test_inversion_a_stopped_agent_that_takes_messages_is_caught() -> None:
    assert "was let in while" in await found_in(10, wrap=Trusting)


async def test_inversion_a_tool_that_repeats_its_effect_is_caught() -> None:
    assert "was made 2 times" in await found_in(40, repeats=True)
