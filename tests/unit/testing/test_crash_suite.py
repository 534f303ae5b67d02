"""The crash suite itself: it passes what is right, and finds each promise that is broken.

The scenarios drive a store by hand, as little as can be killed: a message, an intent, an effect, its result, an end.
"""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kit.runs.event_samples import (
    AGENT,
    fact,
    message,
    said,
    tool_failed,
    tool_result,
    tool_started,
    turn_completed,
    turn_started,
)
from wakeful.contracts.events import SessionStarted, ToolFailed, ToolResult, ToolStarted, TurnCompleted
from wakeful.ports import Store
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import KillPoint, Ledger, kill_everywhere

KEY = "key-call_1"


async def one_refund(store: Store, ledger: Ledger, effect: str = "irreversible", fault: str = "") -> None:
    """One call of one tool, with its intent on disk before its effect. `fault` leaves one of the rules out."""
    opening = [fact(SessionStarted(agent_name="support"), turn=None, step=None), fact(message(), step=None)]
    opening[1].event = message().model_copy(update={"key": "ticket-981"})
    admitted = await store.admit(AGENT, opening)
    assert admitted is not None
    claim = await store.claim(admitted.turn.turn_id)
    log = await store.read(AGENT)
    claim.seen = log[-1].seq
    seen = {type(recorded.fact.event) for recorded in log}
    if TurnCompleted in seen:
        return
    intent: Any = tool_started(tool="refund").model_copy(update={"effect": effect})
    if fault == "no intent" and not any(entry.key == "late" for entry in ledger.entries()):
        ledger.record("refund", KEY)
    if not seen & {ToolResult, ToolFailed}:
        if ToolStarted not in seen:
            await store.append(claim, [fact(turn_started()), fact(intent)], barrier=True)
        cut_off = ToolStarted in seen
        if fault == "gives up" and cut_off:
            raise RuntimeError("nobody knows how to go on")
        if cut_off and effect == "irreversible" and fault != "runs again":
            effects: Any = "none" if fault == "says nothing" else "unknown"
            lost = tool_failed(status="interrupted", tool="refund").model_copy(update={"effects": effects})
            await store.append(claim, [fact(lost)])
        else:
            if fault == "no intent":
                pass
            elif effect == "keyed" and fault != "ignores its key":
                ledger.once("refund", KEY)
            else:
                ledger.record("refund", KEY)
            ledger.here()
            await store.append(claim, [fact(tool_result(tool="refund"))])
    answer = "another" if fault == "says something else" and ToolResult in seen else "refunded"
    await store.append(claim, [fact(said(answer)), fact(turn_completed())], barrier=True, rest=True)
    await store.release(claim)


def scenario(effect: str = "irreversible", fault: str = "") -> Any:
    return partial(one_refund, effect=effect, fault=fault)


EVERY_POINT = 2 * (1 + 3 + 1) + 1
"""Before and after one admission, three appends and one effect; and one place inside the tool."""


def test_what_keeps_its_promises_passes_at_every_point() -> None:
    report = kill_everywhere(scenario())
    assert (report.points, report.kills, report.unreached) == (EVERY_POINT, EVERY_POINT, [])
    assert report.ok
    # After the intent and before the result: after append 1, around the effect, inside the tool, before append 2.
    assert report.unknown == 5
    assert str(report).startswith(
        "11 kills at 11 points: 0 lost, 0 repeated, 0 hidden, 0 wedged, 0 different; 5 outcomes unknown"
    )


@pytest.mark.parametrize("effect", ["keyed", "pure"])
def test_effects_that_may_be_repeated_leave_nothing_unknown(effect: str) -> None:
    report = kill_everywhere(scenario(effect))
    assert (report.kills, report.unknown) == (EVERY_POINT, 0)


@pytest.mark.parametrize(
    ("point", "effect", "fault", "found"),
    [
        (
            KillPoint("ledger", 1, "after"),
            "irreversible",
            "no intent",
            "lost: refund key-call_1 happened and its intent is not",
        ),
        (
            KillPoint("ledger", 1, "after"),
            "irreversible",
            "runs again",
            "repeated: refund key-call_1 (irreversible) happened 2",
        ),
        (
            KillPoint("append", 1, "after"),
            "irreversible",
            "says nothing",
            "hidden: refund (call_1) was cut off and its outcome",
        ),
        (KillPoint("ledger", 1, "before"), "irreversible", "gives up", "wedged: run again, it raised:"),
        (
            KillPoint("ledger", 1, "after"),
            "keyed",
            "ignores its key",
            "repeated: refund key-call_1 (keyed) happened 2 times",
        ),
        (
            KillPoint("append", 2, "after"),
            "keyed",
            "says something else",
            "wedged: the answer is 'another'; without the kill",
        ),
    ],
)
def test_each_broken_promise_is_found_and_named(point: KillPoint, effect: str, fault: str, found: str) -> None:
    with pytest.raises(AssertionError) as broken:
        kill_everywhere(scenario(effect, fault), points=[point])
    promise, what = found.split(": ", 1)
    named = f"- {promise}: killed {point}: {what}"
    assert any(line.startswith(named) for line in str(broken.value).splitlines()), str(broken.value)


def forget(path: Path) -> None:
    for file in (path, *(Path(f"{path}{ending}") for ending in ("-wal", "-shm", "-anchor"))):
        file.unlink(missing_ok=True)


async def forgetful(path: Path) -> Store:
    """A store that loses everything when it is opened again."""
    forget(path)
    return await SqliteStore.open(path)


def test_acknowledged_facts_that_are_gone_are_found() -> None:
    with pytest.raises(AssertionError, match=r"lost: killed after append 1: 4 facts were acknowledged and 0 are in"):
        kill_everywhere(scenario("pure"), open_store=forgetful, points=[KillPoint("append", 1, "after")])


def test_a_scenario_without_a_key_of_its_own_leaves_a_turn_behind() -> None:
    with pytest.raises(AssertionError, match="give the run a key"):
        kill_everywhere(always_new, points=[KillPoint("append", 1, "after")])


async def always_new(store: Store) -> None:
    number = len(await store.turns())
    turn, message_id = f"turn_{number}", f"msg_{number}"
    said_to_it = message().model_copy(update={"message_id": message_id})
    await store.admit(AGENT, [fact(said_to_it, step=None, turn=turn)])
    claim = await store.claim(turn)
    await store.append(claim, [fact(turn_started().model_copy(update={"message_ids": (message_id,)}), turn=turn)])
    await store.append(claim, [fact(said("done"), turn=turn), fact(turn_completed(), turn=turn)])
    await store.release(claim)


def test_a_ledger_that_the_tools_know_themselves_can_be_named(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "bank")
    report = kill_everywhere(partial(knows_its_ledger, str(ledger.path)), ledger)
    assert (report.kills, report.unknown) == (EVERY_POINT, 5)


async def knows_its_ledger(path: str, store: Store) -> None:
    await one_refund(store, Ledger(path))


def test_a_file_that_is_no_ledger_is_not_emptied(tmp_path: Path) -> None:
    precious = tmp_path / "thesis.txt"
    precious.write_text("years of work\n")
    with pytest.raises(ValueError, match="is not a ledger"):
        kill_everywhere(scenario(), precious)
    assert precious.read_text() == "years of work\n"


def test_a_scenario_that_does_not_finish_by_itself_is_not_killed() -> None:
    with pytest.raises(AssertionError, match=r"does not finish without a kill \(raised\):(.|\n)*no store today"):
        kill_everywhere(raises)


def raises(store: Store, ledger: Ledger) -> None:
    raise OSError("no store today")


def test_a_scenario_that_hangs_is_ended() -> None:
    with pytest.raises(AssertionError, match=r"still running after 0\.2 seconds"):
        kill_everywhere(hangs, seconds=0.2)


def hangs(store: Store, ledger: Ledger) -> None:
    while True:
        pass


def test_points_that_are_not_there_are_told() -> None:
    with pytest.raises(AssertionError, match="0 of 1 points were reached: this shows nothing"):
        kill_everywhere(scenario(), points=[KillPoint("append", 99, "before")], tries=1)


def test_a_scenario_inside_a_function_is_refused_with_advice() -> None:
    def inside(store: Store, ledger: Ledger) -> None: ...

    with pytest.raises(TypeError, match="Define it at the top of a module"):
        kill_everywhere(inside)
