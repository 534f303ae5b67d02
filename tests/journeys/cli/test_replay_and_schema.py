"""`wakeful replay` and `wakeful schema`."""

import json

import pytest
from jsonschema import Draft202012Validator

from kit.surfaces.command_line import Wakeful
from wakeful.contracts.schema import event_schema

REFUND = ("run", "Refund A17.", "--model", "scripted:refund.yaml", "--tools", "shop:both")


def test_a_run_is_decided_again_without_its_model_and_its_tools(wakeful: Wakeful) -> None:
    turn = json.loads(wakeful(*REFUND, "--json").out)["turn_id"]
    done = wakeful("replay", turn)
    assert done.code == 0
    assert "identical: 8 decisions from " in done.out
    report = json.loads(wakeful("replay", "--json").out)
    assert report["checked"] == {
        "model.requested": 3,
        "permission.evaluated": 2,
        "tool.started": 2,
        "turn.completed": 1,
    }
    assert (report["turn_id"], report["identical"], report["divergence"]) == (turn, True, None)


def test_a_turn_that_was_cut_off_is_decided_as_far_as_it_came(process: Wakeful, wakeful: Wakeful) -> None:
    process(*REFUND, crash=True)
    done = wakeful("replay")
    assert done.code == 0
    assert "running (unfinished)" in done.out
    assert "identical: 6 decisions" in done.out


@pytest.mark.parametrize("name", ["events", "run-result", "wire", "agent", "script"])
def test_every_schema_is_a_schema(wakeful: Wakeful, name: str) -> None:
    done = wakeful("schema", name)
    assert done.code == 0
    Draft202012Validator.check_schema(json.loads(done.out))
    assert f"wakeful schema {name}" in wakeful("schema").out


def test_the_schema_of_events_is_the_published_one(wakeful: Wakeful) -> None:
    assert json.loads(wakeful("schema", "events").out) == event_schema()


def test_an_unknown_schema_is_answered_with_those_there_are(wakeful: Wakeful) -> None:
    done = wakeful("schema", "event")
    assert (done.code, done.err) == (
        2,
        "Error: there is no schema 'event'\nHint: there are: events, standard-events, run-result, wire, chat, agent, "
        "owner, script\n",
    )
