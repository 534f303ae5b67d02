"""The types of events that the runtime standard has names for."""

import json

import pytest

from kit.surfaces.command_line import Wakeful
from wakeful.contracts.events import EVENTS

OF_THE_STANDARD = [
    "action.required",
    "action.resolved",
    "context.compaction.completed",
    "context.compaction.failed",
    "context.compaction.started",
    "context.resolved",
    "cost.estimated",
    "cost.recorded",
    "hook.completed",
    "hook.failed",
    "hook.started",
    "limit.changed",
    "model.completed",
    "model.failed",
    "output.expired",
    "output.redacted",
    "output.spilled",
    "output.truncated",
    "permission.evaluated",
    "permission.requested",
    "permission.resolved",
    "quota.blocked",
    "quota.low",
    "rate_limit.hit",
    "routing.candidates.resolved",
    "routing.decided",
    "routing.fallback.applied",
    "routing.not_possible",
    "routing.single_candidate",
    "runtime.warning",
    "sandbox.applied",
    "sandbox.violation",
    "tool.args",
    "tool.catalog.resolved",
    "tool.failed",
    "tool.progress",
    "tool.result",
    "tool.started",
    "turn.completed",
    "turn.failed",
    "turn.interrupt.applied",
    "turn.interrupt.ignored",
    "turn.interrupt.requested",
]
NOT_HERE = ("job", "benchmark")
"""Families of things that there are none of."""


@pytest.mark.spec("STD-VAL-04")
def test_a_fact_that_the_standard_has_a_type_for_has_that_type(wakeful: Wakeful) -> None:
    schema = json.loads(wakeful("schema", "events").out)
    published = {one["$ref"].removeprefix("#/$defs/") for one in schema["oneOf"]}
    names = published | {alias for event in EVENTS for alias in event.aliases if event.kind in published}
    assert [name for name in OF_THE_STANDARD if name not in names] == []
    assert [name for name in sorted(names) if name.partition(".")[0] in NOT_HERE] == []
