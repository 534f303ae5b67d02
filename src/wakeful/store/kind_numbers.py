"""Kinds of events by number: the header of a row names the frequent ones by two digits instead of up to 27 letters.

The numbers are a contract: stored rows hold them, so that a kind keeps its place for good and a new one comes last. A
kind without a number is stored by its name, as all of them once were.
"""

KINDS = (
    "model.requested",
    "model.completed",
    "cost.recorded",
    "assistant.recorded",
    "permission.evaluated",
    "tool.started",
    "tool.result",
    "tool.failed",
    "tool.dispatched",
    "tool.progress",
    "message.admitted",
    "turn.started",
    "context.resolved",
    "routing.candidates.resolved",
    "routing.single_candidate",
    "routing.decided",
    "tool.catalog.resolved",
    "turn.completed",
    "turn.failed",
    "turn.suspended",
    "turn.resumed",
    "session.started",
    "thread.checkpointed",
    "model.failed",
    "model.response.accepted",
    "cost.estimated",
    "action.required",
    "action.resolved",
    "hook.started",
    "hook.completed",
    "runtime.warning",
    "sandbox.applied",
    "output.truncated",
    "output.spilled",
    "subagent.started",
    "subagent.completed",
    "context.retrieved",
    "files.tainted",
)
NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


def kind_of(number: int) -> str:
    """Raises LookupError for a number that this version does not know."""
    if number < 0:
        raise LookupError(number)
    return KINDS[number]
