"""Would the kills find it? The same suite, with one rule of the engine taken out at a time."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from crash import scenarios
from crash.sweeps import sweep
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import ModelRequested, PermissionEvaluated, ToolStarted
from wakeful.ports import Claim, Store
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import KillPoint, Ledger, kill_everywhere
from wakeful.testing.wrapped_store import WrappedStore


class WithoutIntents(WrappedStore):
    """Intents of calls are written with whatever is written next: after the effect, not before it."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._held: list[Fact] = []

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        due = [*self._held, *(fact for fact in facts if not self._is_intent(fact))]
        self._held = [fact for fact in facts if self._is_intent(fact)]
        return await super().append(claim, due, barrier=barrier, rest=rest, last=last)

    @staticmethod
    def _is_intent(fact: Fact) -> bool:
        return isinstance(fact.event, PermissionEvaluated) or (
            isinstance(fact.event, ToolStarted) and fact.event.dispatched
        )


class WithoutRequests(WithoutIntents):
    """The same for the model."""

    @staticmethod
    def _is_intent(fact: Fact) -> bool:
        return isinstance(fact.event, ModelRequested)


async def without_intents(path: Path) -> Store:
    return WithoutIntents(await SqliteStore.open(path))


async def without_requests(path: Path) -> Store:
    return WithoutRequests(await SqliteStore.open(path))


def one_letter(store: Store, ledger: Ledger) -> None:
    """The smallest run with an irreversible effect; what the engine promises is left to the suite to check."""
    steps = [scenarios.calls("shred"), "done"]
    scenarios.run_sync(scenarios.agent(ledger, steps), "go", deps=ledger, store=store, key="k")


def test_with_its_intents_the_run_passes() -> None:
    sweep(one_letter)


def test_without_the_intent_the_kills_find_effects_that_are_lost_and_repeated() -> None:
    with pytest.raises(AssertionError) as found:
        kill_everywhere(one_letter, open_store=without_intents)
    assert "repeated: killed after ledger 1: shred" in str(found.value)
    assert "happened and its intent is not in the log" in str(found.value)


def test_without_the_models_intent_a_request_is_found_that_the_log_knows_nothing_of() -> None:
    inside_the_model = KillPoint("here", 1, "before")
    with pytest.raises(AssertionError, match=r"round 1: 2 requests and 1 intents"):
        kill_everywhere(scenarios.taken_up_by_another, open_store=without_requests, points=[inside_the_model])


async def repaid(store: Store, ledger: Ledger) -> None:
    """A program that does not resume: it starts again from nothing."""
    steps = [scenarios.calls("refund"), "done"]
    await scenarios.run(scenarios.agent(ledger, steps), "go", deps=ledger, store=store)


def test_a_program_that_starts_anew_instead_of_resuming_is_found_out() -> None:
    with pytest.raises(AssertionError, match=r"wedged: killed after admit 1: 1 turns without the kill and 2 with it"):
        kill_everywhere(partial(repaid), points=[KillPoint("admit", 1, "after")])
