"""Who may take a lease, and whose claim still counts."""

import pytest

from wakeful.contracts.errors import OwnerFenced
from wakeful.ports import Claim
from wakeful.store.leases import Lease, check, elapsed, take

ME, THEM = "own_me", "own_them"


def test_a_free_lease_is_taken_and_every_change_of_hands_raises_the_epoch() -> None:
    free = Lease(None, 4, 0.0)
    assert take(free, ME, 100.0, 30.0, lambda _: True) == Lease(ME, 5, 130.0)
    mine = Lease(ME, 5, 130.0)
    assert take(mine, ME, 110.0, 30.0, lambda _: True) == Lease(ME, 5, 140.0)
    assert take(mine, ME, 999.0, 30.0, lambda _: True) == Lease(ME, 5, 1029.0)  # ours still: nobody took it


@pytest.mark.parametrize(
    ("now", "alive", "taken"), [(99.0, True, False), (99.0, False, True), (100.0, True, True), (100.0, False, True)]
)
def test_anothers_lease_is_taken_when_its_owner_is_dead_or_it_ran_out(now: float, alive: bool, taken: bool) -> None:
    lease = take(Lease(THEM, 4, 100.0), ME, now, 30.0, lambda _: alive)
    assert lease == (Lease(ME, 5, now + 30.0) if taken else None)


def test_a_claim_counts_while_owner_epoch_and_turn_are_the_newest() -> None:
    claim = Claim("agent_1", "main", "turn_1", ME, lease_epoch=5, turn_epoch=2, seen=0)
    check(claim, Lease(ME, 5, 0.0), 2)
    for lease, turn_epoch in (
        (Lease(THEM, 5, 0.0), 2),
        (Lease(None, 5, 0.0), 2),
        (Lease(ME, 6, 0.0), 2),
        (Lease(ME, 5, 0.0), 3),
    ):
        with pytest.raises(OwnerFenced, match="turn_1"):
            check(claim, lease, turn_epoch)


def test_the_clock_of_leases_only_grows() -> None:
    assert elapsed() <= elapsed()
