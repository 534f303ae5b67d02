"""A share of the soak of `benchmarks/soak.py`: orders, outages and two kills."""

from benchmarks.soak import Plan, soak

from kit.gates.confined_commands import place_outside


def test_a_daemon_that_is_killed_while_its_provider_is_away_answers_every_order_and_does_nothing_twice() -> None:
    with place_outside() as folder:
        found = soak(Plan(messages=60, kills=2, outage=4, kinds=("503",)), folder)
    assert found.complaints == []
    assert (found.acknowledged, dict(found.turns)) == (60, {"completed": 60})
    assert found.effects["bump"] == found.effects["pay"] == 30
    assert 30 - found.unknown <= found.effects["mail"] <= 30
