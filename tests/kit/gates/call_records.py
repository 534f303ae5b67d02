"""What is on record of a call, for tests of its outcome."""

from typing import Any

from wakeful.contracts.conversation import CallPart
from wakeful.decisions.levels import Call, Level
from wakeful.gate.call_at_gate import CallRecord


def call_record(name: str, taken_up_at: float, arguments: dict[str, Any] | None = None) -> CallRecord:
    """Of a call of a tool of this name that nothing else is known about."""
    part = CallPart(call_id="call_1", name=name, arguments=arguments or {})
    return CallRecord(Call(part, 1, 0, Level()), taken_up_at)
