"""The end of a round: what goes into the conversation then, and what its level does next."""

from wakeful.contracts.budgets import Limits
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.events import ToolFailed
from wakeful.decisions.delegation import REMINDER
from wakeful.decisions.guards import CallSeen, IdenticalFailureTracker, SpinDetector
from wakeful.decisions.levels import Call, Level, as_child
from wakeful.decisions.state import TurnState
from wakeful.decisions.workflows.calls import workflow_words


def round_complete(state: TurnState, level: Level) -> None:
    """Every call of the round is answered: what waited for that goes into the conversation."""
    this, repeats = level.round, level.repeats
    goes_on = bool(this.batch or this.continuation)
    if this.continuation:
        level.conversation.items.extend(this.continuation)
        this.continuation = ()
    for call in this.batch:
        if call.wrote or call.children:  # visible when all of the round have settled; the later call wins
            noted = call.noted
            level.scratchpad.visible.update(noted)
            level.scratchpad.written.update(noted)
    if repeats.nudge:
        level.conversation.items.append(UserItem(parts=(Text(repeats.nudge),), origin="runtime"))
        repeats.nudge = ""
    if level is not state:
        _child_round_complete(level, goes_on)
    elif level.config is not None and level.config.workflow is not None:
        level.phase = "answered"
        level.answer.final_text = level.answer.last_text = workflow_words(level)
    elif is_last_round(state) or (state.is_to_rest and not _was_spoken_to(level)):
        level.phase = "answered"
    elif state.terms.stop_rule == "caller":
        level.phase = "closing"
    else:
        goes_on = goes_on or _was_spoken_to(level)
        level.phase = "ready" if goes_on else "answered"


def is_last_round(state: TurnState) -> bool:
    """The turn ends with this round, whatever is said to it. Of a workflow's run no model is asked at all."""
    if state.terms.stop_rule == "single" or (state.config is not None and state.config.workflow is not None):
        return True
    completed = state.completed_by
    return completed is not None and any(call.call_id == completed for call in state.round.batch)


def _was_spoken_to(level: Level) -> bool:
    """A person said something meanwhile, and no request has shown it yet."""
    return any(note.origin == "person" for note in level.next_request.notes)


def _child_round_complete(level: Level, goes_on: bool) -> None:
    child = as_child(level)
    has_finished = child is not None and child.has_finished
    if has_finished or (not goes_on and (child is None or child.started.output_schema is None)):
        level.phase = "answered"
        return
    if not goes_on:
        level.conversation.items.append(UserItem(parts=(Text(REMINDER),), origin="runtime"))
    level.phase = "ready"


def watch_repeats(limits: Limits, level: Level, call: Call) -> None:
    """Whether the model makes the same call time and again; the calls of a round in the model's order."""
    part = call.part
    declared = level.config.tool(part.name) if level.config is not None else None
    if declared is not None and declared.duplicate_policy == "repeatable":
        return
    arguments = part.arguments
    if arguments is None:
        arguments = {"": part.arguments_ref.digest if part.arguments_ref is not None else ""}
    end = call.end
    kind, words = (end.tool_error.kind, end.message) if isinstance(end, ToolFailed) else ("", "")
    seen = CallSeen(part.name, arguments, {}, kind, words)
    repeats = level.repeats
    if limits.stall_repeats is not None:
        repeats.spinning = (repeats.spinning or SpinDetector(limits.stall_repeats)).saw(seen)
    if limits.failure_repeats is not None:
        repeats.failing = (repeats.failing or IdenticalFailureTracker(limits.failure_repeats)).saw(seen)
        if (repeated := repeats.failing.repeated) is not None:
            repeats.nudge = repeated.message
