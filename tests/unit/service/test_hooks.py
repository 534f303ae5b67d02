"""The hook registry: kinds, order, entry points, and names that are refused."""

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from wakeful.contracts.errors import InvalidConfig
from wakeful.service.hooks import NAMES, HookRegistry, UnknownHook, hooks


def registry(**names: Any) -> HookRegistry:
    return HookRegistry(names or NAMES, find=list)


@pytest.mark.spec("API-HOOK-01")
async def test_the_three_kinds_do_what_their_name_says() -> None:
    here = registry(seen="observer", changed="value", found="resolver")
    told: list[Any] = []
    here.register("seen", lambda *arguments: told.append(arguments))
    assert await here.observe("seen", "turn_started", {"turn": 1}) == []
    assert told == [("turn_started", {"turn": 1})]

    async def doubled(value: int, by: int) -> int:
        return value * by

    here.register("changed", doubled)
    here.register("changed", lambda value, by: value + 1, priority=20)
    assert await here.value("changed", 3, 2) == 7

    here.register("found", lambda handler, what: "handler" if what == "mine" else None)
    assert await here.resolve("found", "mine") == "handler"
    assert await here.resolve("found", "yours") is None
    with pytest.raises(InvalidConfig, match="kind 'observer'"):
        await here.value("seen", 1)


@pytest.mark.spec("API-HOOK-01")
async def test_installed_packages_register_through_entry_points_on_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hook_plugin.py").write_text(
        "def greet(value):\n    return f'hello {value}'\n"
        "def shout(value):\n    return value.upper() + '!'\n"
        "def first(value):\n    return value + value\n"
        "first.priority = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    looked = []

    def find() -> list[EntryPoint]:
        looked.append(1)
        return [
            EntryPoint("changed.second", "hook_plugin:shout", "wakeful.hooks"),
            EntryPoint("changed", "hook_plugin:greet", "wakeful.hooks"),
            EntryPoint("changed.third", "hook_plugin:first", "wakeful.hooks"),
        ]

    here = HookRegistry({"changed": "value"}, find=find)
    assert not looked
    assert await here.value("changed", "you") == "HELLO YOUYOU!"
    assert await here.value("changed", "me") == "HELLO MEME!"
    assert looked == [1]


async def test_a_broken_entry_point_is_named_every_time() -> None:
    here = HookRegistry({"seen": "observer"}, find=lambda: [EntryPoint("seen", "no_such_module:x", "wakeful.hooks")])
    for _ in range(2):
        with pytest.raises(InvalidConfig, match="'seen' = 'no_such_module:x'"):
            await here.observe("seen")


@pytest.mark.spec("API-HOOK-02")
async def test_hooks_run_in_ascending_priority_then_in_order_of_registration() -> None:
    here = registry(changed="value")
    for name, priority in (("d", 30), ("b", 10), ("a", -1), ("c", 10)):
        here.register("changed", lambda value, name=name: value + name, priority=priority)
    here.register("changed", lambda value: value + "!")
    assert await here.value("changed", "") == "abc!d"


@pytest.mark.spec("API-HOOK-03")
async def test_the_first_handler_wins_and_later_ones_see_it() -> None:
    here = registry(found="resolver")
    seen: list[Any] = []

    def late(handler: Any) -> str:
        seen.append(handler)
        return "late"

    here.register("found", lambda handler: None, priority=1)
    here.register("found", lambda handler: "early", priority=2)
    here.register("found", late, priority=3)
    assert await here.resolve("found") == "early"
    assert seen == ["early"]


async def test_an_observer_that_raises_stops_nobody_and_is_reported() -> None:
    here = registry()
    told = []

    def broken(*_: Any) -> None:
        raise ValueError("mine")

    here.register("loop_event", broken)
    here.register("loop_event", lambda name, payload: told.append(name))
    failures = await here.observe("loop_event", "completed", {})
    assert told == ["completed"]
    assert [str(failure) for failure in failures] == ["mine"]


async def test_a_hook_can_be_taken_out_again() -> None:
    here = registry()
    remove = here.register("loop_event", print)
    assert here.has("loop_event")
    remove()
    remove()
    assert not here.has("loop_event")


async def test_what_a_hook_said_can_be_held_against_the_next() -> None:
    here = registry(changed="value")
    here.register("changed", lambda value: "first")
    here.register("changed", lambda value: None)
    assert await here.value("changed", None) is None
    assert await here.value("changed", None, hold=lambda before, after: before or after) == "first"


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownHook, match="no hook named 'loop_evnt'"):
        hooks.register("loop_evnt", print)
    with pytest.raises(InvalidConfig):
        registry().register("loop_event", "not callable")  # type: ignore[arg-type]
