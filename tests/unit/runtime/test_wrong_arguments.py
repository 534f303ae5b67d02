"""What a program may get wrong when it calls a `Runtime`: refused by name, with what would be right, and not kept."""

from collections.abc import Callable, Coroutine
from inspect import getmembers, isfunction
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Runtime
from wakeful.errors import AgentNotFound, ForTheCaller, InvalidRequest, InvalidValue, UnknownProvider
from wakeful.testing import FixedClock, scripted

Call = Callable[[Any], Coroutine[Any, Any, Any]]

WRONG_TYPES: dict[str, tuple[str, Call]] = {
    "a name that is a list": ("agent", lambda rt: rt.send(["ops"], "hi")),
    "a number as a thread": ("thread", lambda rt: rt.send("ops", "hi", thread=5)),
    "a list as a priority": ("priority", lambda rt: rt.send("ops", "hi", priority=["normal"])),
    "a number as a sender": ("sender", lambda rt: rt.send("ops", "hi", sender=5)),
    "a text as a time": ("expires", lambda rt: rt.send("ops", "hi", expires="2040-01-01")),
    "a text as a context": ("context", lambda rt: rt.send("ops", "hi", context="x")),
    "a number as a channel": ("channel", lambda rt: rt.receive("ops", "hi", channel=5)),
    "a word for verified": ("verified", lambda rt: rt.receive("ops", "hi", webhook="ci", verified="no")),
    "bytes as a body": ("body", lambda rt: rt.receive("ops", b"hi", channel="mail")),
    "a number as metadata": ("metadata", lambda rt: rt.receive("ops", "hi", channel="mail", metadata=5)),
    "a text as fields": ("fields", lambda rt: rt.receive("ops", "hi", channel="mail", fields="x")),
    "a number as a reason": ("reason", lambda rt: rt.wake("ops", 5)),
    "a number as a hint": ("body", lambda rt: rt.wake("ops", body=5)),
    "a text as a timer's time": ("at", lambda rt: rt.arm_timer("ops", "Look.", at="tomorrow")),
    "a number as a cron line": ("cron", lambda rt: rt.arm_timer("ops", "Look.", cron=5)),
    "no words for a timer": ("say", lambda rt: rt.arm_timer("ops", None, cron="0 7 * * *")),
    "a number as an objective": ("objective", lambda rt: rt.enqueue("ops", 5)),
    "a text as seconds": ("seconds", lambda rt: rt.pause("ops", seconds="5")),
    "a number as a template": ("template", lambda rt: rt.create({"name": "new", "model": "scripted:demo"}, template=5)),
    "a number as a model": ("model", lambda rt: rt.set_model("ops", 5)),
    "a number as a folder": ("path", lambda rt: rt.attach_workspace("ops", 5)),
    "a number as a trigger": ("name", lambda rt: rt.create_trigger("ops", 5)),
    "a number as an address": ("address", lambda rt: rt.deliver(5, b"")),
    "a text as a delivery": ("body", lambda rt: rt.deliver("x", "hi")),
    "a list of headers": ("headers", lambda rt: rt.deliver("x", b"", [("a", "b")])),
    "a number as a query": ("find", lambda rt: rt.memory("ops").list(5)),
    "True as a number": ("limit", lambda rt: rt.briefs("ops", limit=True)),
}

WRONG_VALUES: dict[str, tuple[str, Call]] = {
    "no prompt": ("prompt", lambda rt: rt.send("ops", None)),
    "a mapping as a prompt": ("prompt", lambda rt: rt.send("ops", {"text": "hi"})),
    "bytes as a prompt": ("prompt", lambda rt: rt.send("ops", b"hi")),
    "a number among parts": ("prompt", lambda rt: rt.send("ops", ["hi", 3])),
    "a blank key": ("key", lambda rt: rt.send("ops", "hi", key="")),
    "a key that no file could hold": ("key", lambda rt: rt.send("ops", "hi", key="\ud800")),
    "a blank sender": ("sender", lambda rt: rt.send("ops", "hi", sender=" ")),
    "a thread with a long name": ("thread", lambda rt: rt.send("ops", "hi", thread="x" * 5_000)),
    "a thread without a name": ("thread", lambda rt: rt.send("ops", "hi", thread=" ")),
    "more text than a message has": ("prompt", lambda rt: rt.send("ops", "x" * 1_000_001)),
    "a context that is no JSON": ("context", lambda rt: rt.send("ops", "hi", context={"a": float("nan")})),
    "a set in a context": ("context", lambda rt: rt.send("ops", "hi", context={"a": {1, 2}})),
    "a blank channel": ("channel", lambda rt: rt.receive("ops", "hi", channel="")),
    "a blank webhook": ("webhook", lambda rt: rt.receive("ops", "hi", webhook=" ")),
    "a body that is no number": ("body", lambda rt: rt.receive("ops", float("nan"), channel="mail")),
    "a body with something else in it": ("body", lambda rt: rt.receive("ops", [object()], channel="mail")),
    "half a character": ("body", lambda rt: rt.receive("ops", {"a": "\ud800"}, channel="mail")),
    "a number as a message": ("message", lambda rt: rt.answer(5)),
}

NOWHERE: dict[str, tuple[type[ForTheCaller], Call]] = {
    "an empty prompt": (InvalidRequest, lambda rt: rt.send("ops", "")),
    "blanks as a prompt": (InvalidRequest, lambda rt: rt.send("ops", [" ", "\n"])),
    "no parts": (InvalidRequest, lambda rt: rt.send("ops", [])),
    "a timer that says nothing": (InvalidRequest, lambda rt: rt.arm_timer("ops", " ", cron="0 7 * * *")),
    "a timer in no thread": (InvalidRequest, lambda rt: rt.arm_timer("ops", "Look.", cron="0 7 * * *", thread="")),
    "a pause that is over": (InvalidRequest, lambda rt: rt.pause("ops", seconds=-5)),
    "a pause without a length": (InvalidRequest, lambda rt: rt.pause("ops", seconds=float("nan"))),
    "a pause beyond all clocks": (InvalidRequest, lambda rt: rt.pause("ops", seconds=1e30)),
    "a provider that is not there": (UnknownProvider, lambda rt: rt.create({"name": "new", "model": "nope:x"})),
    "timers of nobody": (AgentNotFound, lambda rt: rt.timers("nobody")),
    "notices of nobody": (AgentNotFound, lambda rt: rt.notices("nobody")),
    "briefs of nobody": (AgentNotFound, lambda rt: rt.briefs("nobody")),
    "work items of nobody": (AgentNotFound, lambda rt: rt.work_items("nobody")),
    "events of nobody": (AgentNotFound, lambda rt: anext(rt.follow("nobody"))),
}


async def kept(rt: Runtime) -> list[str]:
    """What stands in the log of the agent, but for how often something was refused; and which agents there are."""
    found = [entry.fact.event.kind for entry in await rt._here.engine.store.read("ops")]
    return [*(kind for kind in found if kind != "input.refused"), *(each.agent for each in await rt.agents())]


async def test_arguments_of_other_types_are_refused_by_name_and_nothing_is_kept(tmp_path: Path) -> None:
    ops = Agent("ops", scripted(["never asked"]), work_items=True, memory=True)
    async with Runtime(tmp_path, agents=[ops], clock=FixedClock()) as rt:
        before = await kept(rt)
        for what, (field, call) in {**WRONG_TYPES, **WRONG_VALUES}.items():
            with pytest.raises(InvalidValue) as told:
                await call(rt)
            assert (told.value.code, told.value.path) == (f"invalid_{field}", field), what
            assert told.value.hint, what
            assert await kept(rt) == before, what


async def test_values_that_lead_nowhere_are_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    ops = Agent("ops", scripted(["never asked"]), work_items=True)
    async with Runtime(tmp_path, agents=[ops], clock=FixedClock()) as rt:
        before = await kept(rt)
        for what, (problem, call) in NOWHERE.items():
            with pytest.raises(problem) as told:
                await call(rt)
            assert told.value.hint, what
        assert await kept(rt) == before


async def test_arguments_that_are_right_pass(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[Agent("ops", scripted(lambda _: "done"))]) as rt:
        sent = await rt.send("ops", ["Look at ", "this."], sender="ann", context={"a": [1, None, True]})
        assert (await rt.answer(sent)).output == "done"
        for body in (None, 5, 1.5, False, "words", [], {"a": None}):
            assert (await rt.receive("ops", body, webhook="ci", verified=True)).message_id
        assert await rt.timers("ops") == [] and await rt.notices("ops") == []


def test_every_public_method_of_a_runtime_checks_its_arguments() -> None:
    methods = [each for name, each in getmembers(Runtime, isfunction) if not name.startswith("_")]
    assert [each.__name__ for each in methods if not hasattr(each, "__wrapped__")] == []
