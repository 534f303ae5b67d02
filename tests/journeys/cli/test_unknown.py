"""`wakeful unknown` and `wakeful resolve`: what nobody knows, and a person's word on it."""

import json

from kit.surfaces.command_line import Wakeful

SHIP = ("run", "Ship A17.", "--model", "scripted:ship.yaml", "--tools", "shop:ship")


def leave_one_unknown(process: Wakeful, wakeful: Wakeful, key: str = "one") -> str:
    process(*SHIP, "--key", key, crash=True)
    done = wakeful(*SHIP, "--key", key)
    assert done.code == 0
    assert "1 call has an unknown outcome" in done.err
    assert '--happened "its result"' in done.err
    return done.err


def test_an_unknown_call_is_listed_and_closed_by_the_commands_that_are_shown(
    process: Wakeful, wakeful: Wakeful
) -> None:
    leave_one_unknown(process, wakeful)
    listed = wakeful("unknown").out
    assert 'ship(order="A17")' in listed
    assert "wakeful resolve call_1_1 --did-not-happen" in listed
    (row,) = json.loads(wakeful("unknown", "--json").out)
    assert (row["call_id"], row["tool"], row["reference"]) == ("call_1_1", "ship", "call_1_1")
    done = wakeful("resolve", "call_1_1", "--happened", "shipped at noon")
    assert (done.code, done.out) == (0, "call_1_1 (ship) happened: shipped at noon\n")
    assert wakeful("unknown").out == "no unknown outcomes\n"
    event = json.loads(wakeful("events", row["turn_id"], "--kind", "unknown.resolved", "--json").out)
    assert {name: event["payload"][name] for name in ("happened", "result", "source")} == {
        "happened": True,
        "result": "shipped at noon",
        "source": "operator",
    }


def test_whoever_comes_second_is_told_what_was_said(process: Wakeful, wakeful: Wakeful) -> None:
    leave_one_unknown(process, wakeful)
    assert wakeful("resolve", "call_1_1", "--did-not-happen").code == 0
    again = wakeful("resolve", "call_1_1", "--happened", "yes")
    assert again.code == 2
    assert "the outcome of call call_1_1 (ship) is known already: it did not happen (by you)" in again.err


def test_calls_of_the_same_name_are_told_apart_by_their_turns(process: Wakeful, wakeful: Wakeful) -> None:
    leave_one_unknown(process, wakeful, "one")
    leave_one_unknown(process, wakeful, "two")
    vague = wakeful("resolve", "call_1_1", "--did-not-happen")
    assert vague.code == 2
    assert "'call_1_1' matches 2 calls" in vague.err
    first, second = json.loads(wakeful("unknown", "--json").out)
    assert first["reference"] == f"{first['turn_id']}/call_1_1"
    assert wakeful("resolve", first["reference"], "--did-not-happen").code == 0
    assert [row["turn_id"] for row in json.loads(wakeful("unknown", "--json").out)] == [second["turn_id"]]


def test_a_call_that_is_not_there_is_answered_with_one_that_is(process: Wakeful, wakeful: Wakeful) -> None:
    leave_one_unknown(process, wakeful)
    wrong = wakeful("resolve", "call_1_2", "--did-not-happen")
    assert wrong.code == 2
    assert "did you mean call_1_1" in wrong.err


def test_one_of_the_two_has_to_be_said(wakeful: Wakeful) -> None:
    for options in ((), ("--happened", "x", "--did-not-happen")):
        done = wakeful("resolve", "call_1_1", *options)
        assert done.code == 2
        assert "wakeful resolve call_1_1 --did-not-happen" in done.err
