"""Results that are kept for the same objects."""

from wakeful.decisions.kept_results import KeptResults


def test_the_same_objects_are_worked_out_once() -> None:
    kept: KeptResults[list[str]] = KeptResults()
    policy, tool = object(), object()
    first = kept.of((policy, tool), lambda: ["first"])
    assert kept.of((policy, tool), lambda: ["second"]) is first
    assert kept.of((policy,), lambda: ["another"]) == ["another"]


def test_equal_objects_are_not_the_same() -> None:
    kept: KeptResults[str] = KeptResults()
    assert [kept.of(([],), lambda: "one"), kept.of(([],), lambda: "two")] == ["one", "two"]


def test_the_oldest_is_forgotten_first() -> None:
    kept: KeptResults[int] = KeptResults(most=2)
    given = [object(), object(), object()]
    for number, each in enumerate(given):
        kept.of((each,), lambda number=number: number)  # type: ignore[misc]
    assert kept.of((given[1],), lambda: 10) == 1
    assert kept.of((given[0],), lambda: 10) == 10
