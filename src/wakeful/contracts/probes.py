"""What a probe can say about a call whose result was never recorded.

A probe answers one question, "did it happen?", for the call its context names. It must not make it happen.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Happened:
    """The effect took place; `result` is what the tool would have returned."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class DidNotHappen:
    """The effect did not take place: the tool may run."""


@dataclass(frozen=True, slots=True)
class StillUnknown:
    """The probe cannot tell yet; the outcome of the call stays unknown."""

    reason: str = ""


ProbeAnswer: TypeAlias = Happened | DidNotHappen | StillUnknown
