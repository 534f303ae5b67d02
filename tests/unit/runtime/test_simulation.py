"""Random lives of agents on a virtual clock: nothing acknowledged is lost, nothing is done twice, nobody is stuck.

200 worlds here, more with `make worlds WORLDS=...`. A world that fails prints its seed and the command that repeats it.
"""

import asyncio
import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from kit.runs.runtime_world import live
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import MessageAdmitted, TaskEnded, TimerFired
from wakeful.ports import AdmissionAnswer, MessageRow, Store, WakeRow
from wakeful.testing.wrapped_store import WrappedStore

WORLDS = int(os.environ.get("WAKEFUL_SIMULATED_WORLDS", "200"))
FIRST = int(os.environ.get("WAKEFUL_FIRST_WORLD", "0"))
SHARES = 8
STANDSTILL_SECONDS = 300
"""Until a world counts as one that stands still; it takes a fifth of a second."""


@pytest.mark.parametrize("share", range(SHARES))
async def test_the_invariants_hold_in_every_world(share: int) -> None:
    with garbage_kept() as collect:
        for seed in range(FIRST + share, FIRST + WORLDS, SHARES):
            wrong = await lived(seed)
            assert wrong == [], f"world {seed}; once more: make worlds WORLDS=1 FIRST={seed}"
            collect()


async def lived(seed: int) -> list[str]:
    """What is wrong at the end of a world; one without an end is wrong, too."""
    try:
        async with asyncio.timeout(STANDSTILL_SECONDS):
            return await live(seed)
    except TimeoutError:
        return [f"it came to no end within {STANDSTILL_SECONDS} s"]


@contextmanager
def garbage_kept() -> Iterator[Callable[[], object]]:
    """Looks for garbage once a world instead of all the time: that takes a tenth of a world. What is found there still
    warns."""
    gc.disable()
    try:
        yield partial(gc.collect, 1)
    finally:
        gc.enable()


class Forgetful(WrappedStore):
    """Acknowledges each third message and keeps nothing of it."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.count = 0
        self.lost: dict[str, MessageRow] = {}

    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> AdmissionAnswer | None:
        event = facts[-1].event
        if isinstance(event, MessageAdmitted) and event.message_kind == "operator_prompt":
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


class Careless(WrappedStore):
    """Writes down that a task ended, and loses the message that tells of it."""

    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> AdmissionAnswer | None:
        if any(isinstance(fact.event, TaskEnded) for fact in facts):
            facts = [fact for fact in facts if not isinstance(fact.event, MessageAdmitted)]
        return await self.inner.admit(agent_id, facts, **options)


class Laundering(WrappedStore):
    """Forgets that what a parent tells its child, or a task its agent, comes from outside."""

    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> AdmissionAnswer | None:
        for fact in facts:
            if isinstance(fact.event, MessageAdmitted) and fact.event.task_id is not None:
                fact.event = fact.event.model_copy(update={"derived_from": None})
        return await self.inner.admit(agent_id, facts, **options)


class Skipping(WrappedStore):
    """Leaves out the due time that follows one that fires."""

    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> AdmissionAnswer | None:
        for fact in facts:
            if isinstance(fact.event, TimerFired) and fact.event.next_at is not None:
                later = 2 * fact.event.next_at - fact.event.due_at
                fact.event = fact.event.model_copy(update={"next_at": later})
        return await self.inner.admit(agent_id, facts, **options)


class Stubborn(WrappedStore):
    """Knows of nothing that a clock that was ahead has written."""

    async def wakes_set_after(self, now: int) -> list[WakeRow]:
        return []


async def found_in(worlds: int, words: str, **broken: Any) -> bool:
    """Is it found in one of so many worlds?"""
    for seed in range(worlds):
        if any(words in each for each in await live(seed, **broken)):
            return True
    return False


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (Forgetful, "was acknowledged and is not in the log once"),
        (Deaf, "of bob was acknowledged and is queued"),
        (Trusting, "was let in while"),
        (Careless, "ended 1 times and was told 0 times"),
        (Laundering, "hides that task"),
        (Skipping, "was the next"),
        (Stubborn, "was acknowledged and is queued"),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else "",
)
async def test_inversion_a_broken_store_is_caught(broken: type[WrappedStore], words: str) -> None:
    assert await found_in(120, words, wrap=broken)


async def test_inversion_a_tool_that_repeats_its_effect_is_caught() -> None:
    assert await found_in(60, "was made 2 times", fault="repeats")


async def test_inversion_a_model_that_costs_more_than_it_says_is_caught() -> None:
    assert await found_in(40, "were allowed", fault="understates")


async def test_inversion_a_turn_that_fails_by_more_than_the_weather_is_caught() -> None:
    assert await found_in(5, "failed: contract_error", fault="refuses")
