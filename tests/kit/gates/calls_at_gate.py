"""Calls as they come before the gate, for tests of single steps."""

from typing import Any

from wakeful.contracts.conversation import CallPart
from wakeful.decisions.levels import Call, Level
from wakeful.gate.call_at_gate import CallAtGate


def call_at_gate(name: str, taken_up_at: float, arguments: dict[str, Any] | None = None) -> CallAtGate:
    """A call of a tool of this name that nothing is known about yet."""
    part = CallPart(call_id="call_1", name=name, arguments=arguments or {})
    return CallAtGate(Call(part, 1, 0, malformed=False, level=Level()), taken_up_at)
