"""The published schema: generated, complete, and able to say no."""

import copy
import itertools
import json
import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kit.runs.event_samples import (
    AGENT,
    ONE_OF_EACH,
    TURN,
    as_published,
    completed,
    fact,
    log,
    message,
    requested,
    said,
    tool_result,
    tool_started,
    turn_completed,
    turn_started,
)
from kit.runs.whole_views import run_stream, transcript
from wakeful.contracts.envelope import RuntimeEvent, StoredFact, published
from wakeful.contracts.events import BY_KIND, EVENTS, AnyEvent, UnrecognisedEvent
from wakeful.contracts.schema import DIALECT, event_schema, validate_event

SAMPLES = [pytest.param(event, id=event.kind) for event in ONE_OF_EACH]
ENVELOPE = (
    "type",
    "event_id",
    "schema_version",
    "timestamp",
    "runtime_id",
    "agent_id",
    "session_id",
    "sequence",
    "payload",
)


@cache
def whole_schema() -> Draft202012Validator:
    return Draft202012Validator(event_schema())


@pytest.mark.spec("STD-VAL-01")
def test_one_2020_12_schema_holds_the_envelope_and_every_payload_and_is_published(root: Path) -> None:
    schema = event_schema()
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == DIALECT
    assert set(ENVELOPE) == set(schema["required"])
    assert set(schema["properties"]) == set(RuntimeEvent.model_fields)
    branches = {one["$ref"].removeprefix("#/$defs/") for one in schema["oneOf"]}
    assert branches == {*BY_KIND, "unknown_type"}
    for event in EVENTS:
        assert schema["$defs"][event.kind]["properties"]["payload"] == {"$ref": f"#/$defs/{event.__name__}"}
        assert set(schema["$defs"][event.__name__]["properties"]) == set(event.model_fields)
    assert json.loads((root / "docs/reference/events.schema.json").read_text()) == schema


def test_the_generated_reference_is_what_the_code_says(root: Path) -> None:
    folder = root / "docs/reference"
    for name, content in runpy.run_path(str(folder / "generate.py"))["pages"]().items():
        assert (folder / name).read_text() == content, f"docs/reference/{name} is out of date: run `make fix`"


def test_changing_a_schema_that_was_handed_out_changes_no_other() -> None:
    event_schema()["$defs"].clear()
    assert event_schema()["$defs"]


@pytest.mark.spec("STD-VAL-03")
def test_there_is_a_sample_of_every_event_type() -> None:
    assert sorted(event.kind for event in ONE_OF_EACH) == sorted(event.kind for event in EVENTS)


@pytest.mark.spec("STD-VAL-03", "STD-ENV-01")
@pytest.mark.parametrize("event", SAMPLES)
def test_an_event_is_valid_and_without_any_required_field_it_is_not(event: AnyEvent) -> None:
    whole = as_published(event)
    assert validate_event(whole) == []
    assert whole_schema().is_valid(whole)
    required = [
        *((field,) for field in ENVELOPE),
        *((need,) for need in event.needs),
        *(("payload", name) for name, field in type(event).model_fields.items() if field.is_required()),
    ]
    for path in required:
        lacking = copy.deepcopy(whole)
        holder = lacking["payload"] if len(path) == 2 else lacking
        del holder[path[-1]]
        problems = validate_event(lacking)
        assert any(f"'{path[-1]}'" in problem.message for problem in problems), path
    assert not whole_schema().is_valid(lacking), "as the branch of its type says, so does the whole"


@pytest.mark.parametrize("event", SAMPLES)
def test_a_field_nobody_declared_is_refused(event: AnyEvent) -> None:
    extra = as_published(event)
    extra["payload"]["smuggled"] = 1
    assert [problem.path for problem in validate_event(extra)] == ["payload"]


def test_a_problem_names_the_path_and_the_value() -> None:
    event = as_published(tool_started())
    event["payload"]["policy"] = "maybe"
    event["payload"]["position"] = "first"
    problems = validate_event(event)
    assert [problem.path for problem in problems] == ["payload.policy", "payload.position"]
    assert "'maybe'" in problems[0].message
    assert "'first'" in problems[1].message


@pytest.mark.spec("STD-ENV-07")
def test_a_type_nobody_knows_is_kept_and_one_that_is_no_type_is_refused() -> None:
    event: dict[str, Any] = as_published(tool_started())
    event["payload"] = {"anything": ["at", "all"]}
    assert validate_event({**event, "type": "wakeful.later.invention"}) == []
    assert validate_event({**event, "type": "later.invention"}) == []
    assert whole_schema().is_valid({**event, "type": "later.invention"})
    assert [problem.path for problem in validate_event({**event, "type": "LaterInvention"})] == ["type"]
    assert {problem.path for problem in validate_event({**event, "type": None})} == {"type"}
    # A known type does not slip through the open door with another payload.
    assert validate_event({**event, "type": "tool.started"}) != []
    assert not whole_schema().is_valid({**event, "type": "tool.started"})


def test_facts_of_the_draft_have_its_families_and_names() -> None:
    # fmt: off
    families = {
        "session", "thread", "turn", "task", "run", "model", "reasoning", "tool", "action", "permission", "sandbox",
        "hook", "policy", "context", "routing", "cost", "limit", "process", "subagent", "output", "history", "snapshot",
        "artifact", "evidence", "queue", "runtime", "rate_limit", "quota",
    }
    # fmt: on
    # What the draft has no family for: the inbox, what was said, answers that must fit a type, unknown outcomes, the
    # caller's own observers and transcript, whether a caller wants to go on, calls a client runs, standing answers,
    # keys of requests, plans, workflows, spend windows, tainted files, waiting and waking, work
    # that outlasts a turn, what people are told, where an agent works; what has left the log, and the store itself.
    siblings = {"message", "assistant", "answer", "unknown", "observer", "transcript", "continuation"}
    siblings |= {"runtime_tool", "keyed_request", "approval_rule", "planning", "workflow", "budget", "files"}
    siblings |= {
        "agent",
        "timer",
        "wait",
        "wake",
        "wake_hint",
        "progress",
        "clock",
        "liveness",
        "trigger",
        "input",
        "notice",
        "provider",
        "memory",
    }
    siblings |= {"work_item", "work_queue", "brief", "workspace", "worktree", "grant"}
    siblings |= {"event", "log", "retention", "store", "channel", "heartbeat", "result"}
    assert {kind.split(".")[0] for kind in BY_KIND} <= families | siblings
    assert not {"job", "benchmark"} & {kind.split(".")[0] for kind in BY_KIND}
    drafted = {
        "session.started",
        "turn.started",
        "turn.completed",
        "turn.failed",
        "turn.interrupt.requested",
        "turn.interrupt.applied",
        "turn.interrupt.ignored",
        "model.requested",
        "model.completed",
        "model.failed",
        "permission.evaluated",
        "context.resolved",
        "limit.changed",
        "tool.started",
        "tool.args",
        "tool.progress",
        "tool.result",
        "tool.failed",
    }
    assert drafted <= set(BY_KIND)
    assert all(re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", kind) for kind in BY_KIND)


@pytest.mark.spec("STD-ENV-07")
def test_a_stored_event_of_an_unknown_type_is_read_published_and_passed_over_by_every_view() -> None:
    later = UnrecognisedEvent(original_kind="wakeful.later.invention", original_version=3, body={"new": True})
    event = as_published(later)
    assert (event["type"], event["payload"]) == ("wakeful.later.invention", {"new": True})
    assert validate_event(event) == []
    usual = log(message(), turn_started(), requested(), completed(), said("done"), turn_completed())
    disturbed = [*usual[:3], *log(later, start=4), *(StoredFact(a, seq + 1, one) for a, seq, one in usual[3:])]
    assert [event.type for event in run_stream(TURN, disturbed)] == [event.type for event in run_stream(TURN, usual)]
    assert [entry.kind for entry in transcript(disturbed)] == [entry.kind for entry in transcript(usual)]


def test_ids_form_a_tree_and_no_message_id_stands_for_one_of_them() -> None:
    stream = [
        StoredFact(AGENT, seq, fact(tool_result(f"call_{turn}_{step}_{call}"), step=step, turn=turn))
        for seq, (turn, step, call) in enumerate(itertools.product(("turn_1", "turn_2"), (1, 2), (1, 2)), 1)
    ]
    levels = ("session_id", "thread_id", "turn_id", "step_id", "tool_call_id")
    events = [published(one, "runtime_1").model_dump() for one in stream]
    for above, below in itertools.pairwise(levels):
        parents: dict[str, set[str]] = {}
        for event in events:
            parents.setdefault(event[below], set()).add(event[above])
        assert all(len(found) == 1 for found in parents.values()), f"one {below} in two of {above}"
    assert [len({event[level] for event in events}) for level in levels] == [1, 1, 2, 4, 8]
    admitted = as_published(message())
    assert admitted["payload"]["message_id"] not in {admitted[level] for level in levels if level in admitted}


def allows_null(schema: Any) -> bool:
    """Says nothing of a type, or names `null` as one."""
    kinds = [each.get("type") for each in (schema, *schema.get("anyOf", ()), *schema.get("oneOf", ()))]
    is_open = not {"type", "$ref", "anyOf", "oneOf", "allOf", "const", "enum"} & set(schema)
    return is_open or "null" in kinds


def test_no_field_that_may_be_nothing_has_to_be_there_because_nothing_is_not_written_down() -> None:
    """A log with such a field could not be read again: `null` is left out where events are stored."""
    shapes = {name: shape for name, shape in event_schema()["$defs"].items() if "properties" in shape}
    found = [
        f"{name}.{field}"
        for name, shape in shapes.items()
        for field in shape.get("required", ())
        if field in shape["properties"] and allows_null(shape["properties"][field])
    ]
    assert found == []
