"""Guards against going round in circles: folds over the calls of a conversation, in model order.

    guard = SpinDetector()                       for call in calls: guard = guard.saw(call)
    guard.repeated                               what was repeated, once it was repeated too often

Two calls are the same when tool and real arguments are. What is told about them covers the safe arguments alone: a hash
of a secret is a way to guess it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from wakeful.contracts.errors import InvalidValue
from wakeful.decisions.redaction import stable_hash

INVALID = "invalid_guard"
MIN_REPEATS = 2
SPIN_THRESHOLD = 3
FAILURE_THRESHOLD = 2


@dataclass(slots=True, frozen=True)
class CallSeen:
    """One call and how it ended."""

    tool_name: str
    arguments: Mapping[str, Any]
    safe_arguments: Mapping[str, Any]
    """The same, redacted."""
    error_code: str = ""
    """Empty when it succeeded."""
    error: str = ""
    """The failure's words."""


@dataclass(slots=True, frozen=True)
class Repetition:
    """The same thing, time and again."""

    tool_name: str
    parameters_hash: str
    signature_hash: str
    repeat_count: int
    threshold: int


@dataclass(slots=True, frozen=True)
class RepeatedFailure(Repetition):
    """The same call failed in the same way, time and again."""

    error_code: str
    message: str
    """The message to the model."""


@dataclass(slots=True, frozen=True)
class SpinDetector:
    """Sees when one call is made again and again with the same arguments, whatever comes of it."""

    threshold: int = SPIN_THRESHOLD
    count: int = 0
    last: str = ""
    """The hash of the newest call; stays in the process."""
    seen: CallSeen | None = None

    def __post_init__(self) -> None:
        _check(self.threshold)

    def saw(self, call: CallSeen) -> "SpinDetector":
        """The detector after one more call."""
        identity = stable_hash([call.tool_name, dict(call.arguments)])
        return replace(self, count=self.count + 1 if identity == self.last else 1, last=identity, seen=call)

    @property
    def repeated(self) -> Repetition | None:
        """The repeated call, once it was repeated too often."""
        if self.seen is None or self.count < self.threshold:
            return None
        return Repetition(*_names(self.seen), self.count, self.threshold)


@dataclass(slots=True, frozen=True)
class IdenticalFailureTracker:
    """Sees when one call fails again and again in the same way. A call that succeeds begins a new count."""

    threshold: int = FAILURE_THRESHOLD
    count: int = 0
    last: str = ""
    seen: CallSeen | None = None

    def __post_init__(self) -> None:
        _check(self.threshold)

    def saw(self, call: CallSeen) -> "IdenticalFailureTracker":
        """The tracker after one more call."""
        if not call.error_code:
            return replace(self, count=0, last="", seen=None)
        identity = stable_hash([call.tool_name, dict(call.arguments), call.error_code, call.error])
        return replace(self, count=self.count + 1 if identity == self.last else 1, last=identity, seen=call)

    @property
    def repeated(self) -> RepeatedFailure | None:
        """The failure, each time it was repeated as often as is worth a word."""
        if self.seen is None or self.count < self.threshold or self.count % self.threshold:
            return None
        name, parameters, _ = _names(self.seen)
        signature = stable_hash([name, dict(self.seen.safe_arguments), self.seen.error_code])
        return RepeatedFailure(
            *(name, parameters, signature, self.count, self.threshold, self.seen.error_code),
            message=(
                f"The call of {name} failed {self.count} times in the same way ({self.seen.error_code}). "
                "Repeating it as it is will not help: change the arguments, use another tool, or say what is missing."
            ),
        )


def _check(threshold: Any) -> None:
    if not isinstance(threshold, int) or isinstance(threshold, bool) or threshold < MIN_REPEATS:
        raise InvalidValue(INVALID, "threshold", f"is a whole number, at least {MIN_REPEATS}, not {threshold!r}")


def _names(call: CallSeen) -> tuple[str, str, str]:
    """What may be told of a call: its tool, and hashes of what is safe."""
    return (
        call.tool_name,
        stable_hash(dict(call.safe_arguments)),
        stable_hash([call.tool_name, dict(call.safe_arguments)]),
    )
