"""A process killed around background responses: what the provider makes is asked for again, and not made again."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from crash.background_scenarios import cancelled, two_rounds, world_of
from crash.storms import storm
from crash.sweeps import sweep
from kit.wires.background_server import BackgroundServer, background_server, bill
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import ModelResponseAccepted
from wakeful.ports import Claim, Store
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import KillPoint, Ledger, kill_everywhere
from wakeful.testing.wrapped_store import WrappedStore


@pytest.fixture(scope="module")
def server() -> Iterator[BackgroundServer]:
    with background_server(tool="refund") as running:
        yield running


@pytest.mark.parametrize("name", ["steady", "cut", "polled"])
def test_a_run_that_is_killed_anywhere_has_no_accepted_response_made_again(server: BackgroundServer, name: str) -> None:
    server.worlds.clear()
    sweep(partial(two_rounds, server.url, name), more_than=20)
    reattached = sum(any(asked.startswith("GET") for asked in world.asked) for world in server.worlds.values())
    assert reattached > 1, "killed while an accepted response was waited for"
    # One kill at most for each world: only one that came between the request and its fact may cost a second response.
    for world in server.worlds.values():
        assert 2 <= len(world.created) <= 3


def test_a_run_on_background_responses_that_is_killed_again_and_again_finishes(
    server: BackgroundServer, tmp_path: Path
) -> None:
    assert storm(partial(two_rounds, server.url, "cut"), 1, tmp_path) == []


def test_a_turn_that_is_stopped_tells_the_provider_wherever_the_process_dies() -> None:
    with background_server() as endless:
        sweep(partial(cancelled, endless.url, "endless"), more_than=8)
        for world in endless.worlds.values():
            # A response whose id never reached the log can be told nothing; every other one was.
            told = [response for response in world.responses.values() if response.cancelled]
            assert len(world.responses) - len(told) <= 1
            assert told


class Forgetful(WrappedStore):
    """Keeps no id of what a provider has accepted."""

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        kept = [fact for fact in facts if not isinstance(fact.event, ModelResponseAccepted)]
        return await super().append(claim, kept, barrier=barrier, rest=rest, last=last)


async def forgetful(path: Path) -> Store:
    return Forgetful(await SqliteStore.open(path))


async def creates_once(url: str, name: str, store: Store, ledger: Ledger) -> None:
    """The same run; a third response for its two rounds is one too many."""
    await two_rounds(url, name, store, ledger)
    made = bill(url, world_of(ledger))
    assert len(made) == 2, f"{len(made)} responses were paid for two rounds"


IN_THE_ANSWER = KillPoint("here", 3, "before")
"""After the first pieces of the first answer: its response was accepted long ago."""


def test_with_the_id_in_the_log_a_kill_within_an_answer_costs_nothing(server: BackgroundServer) -> None:
    report = kill_everywhere(partial(creates_once, server.url, "steady"), points=[IN_THE_ANSWER])
    assert report.kills == 1


def test_without_the_id_in_the_log_the_same_kill_pays_twice(server: BackgroundServer) -> None:
    with pytest.raises(AssertionError, match="3 responses were paid for two rounds"):
        kill_everywhere(
            partial(creates_once, server.url, "steady"), open_store=forgetful, points=[IN_THE_ANSWER], tries=1
        )
