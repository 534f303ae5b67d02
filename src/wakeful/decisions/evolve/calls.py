"""What facts about calls do to them: begun, answered, failed, called off, settled later."""

import re

from wakeful.contracts.approvals import RUNTIME
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    PermissionEvaluated,
    RuntimeToolRequested,
    RuntimeToolResolved,
    ScratchWritten,
    ToolDispatched,
    ToolFailed,
    ToolResult,
    ToolStarted,
    UnknownResolved,
    WaitCreated,
)
from wakeful.decisions.channel_answers import words_from_outside
from wakeful.decisions.evolve.conversations import advise, refers
from wakeful.decisions.evolve.rounds import round_complete, watch_repeats
from wakeful.decisions.levels import Call, Level, OutsideRequest, as_child, unsatisfied
from wakeful.decisions.policy.provenance import Exposure, exposed, merged, what_it_does
from wakeful.decisions.runtime_answers import FINISH
from wakeful.decisions.state import TurnState
from wakeful.decisions.workflows.calls import let_follow


def asked_outside(state: TurnState, level: Level, fact: Fact, event: ActionRequired | RuntimeToolRequested) -> None:
    call = state.tree.calls[fact.call_id or ""]
    take_up(call)
    if call.dispatches:  # the tool itself has a question, and has done nothing: it begins anew with the answer
        call.dispatches = 0
        level.round.running -= 1
        state.tree.in_flight -= 1
    call.rewritten = call.replaced
    if isinstance(event, ActionRequired):
        call.pending = OutsideRequest(event.action_id, event.expires_at, event, fact.at)
    else:
        # A client that is asked may do it: the request is the call's intent.
        call.pending = OutsideRequest(event.request_id, event.timeout_at, event, fact.at)
        state.ledger.tool_called(call.part.name)
    state.tree.waiting[call.call_id] = call


def said_outside(state: TurnState, fact: Fact, event: ActionResolved | RuntimeToolResolved) -> None:
    """The call goes before the gate once more; what was said goes with it."""
    call = state.tree.calls.get(fact.call_id or "")
    if call is None or call.pending is None or not call.is_waiting:
        return
    action_id = event.action_id if isinstance(event, ActionResolved) else event.request_id
    if action_id == call.pending.action_id:
        call.pending.said = event
        state.tree.waiting.pop(call.call_id, None)
        if isinstance(event, RuntimeToolResolved):
            expose(state, call)  # with the client's answer, not before: calls beside it were made without it
        if isinstance(event, ActionResolved):
            if event.rule is not None:
                state.rules.standing.append(event.rule)
            assert isinstance(call.pending.asked, ActionRequired)
            choices = call.pending.asked.choices
            if cause := words_from_outside(event.resolver, event.reason, event.answer or event.answer_ref, choices):
                state.thread.exposure = merged(state.thread.exposure, Exposure(untrusted=cause))
            elif event.resolver != RUNTIME:
                state.thread.owner_said.add(event.reason, fact.turn_id or "")
                state.thread.owner_said.add(event.answer if isinstance(event.answer, str) else "", fact.turn_id or "")
        if call.taken_up:
            call.taken_up = False
            call.level.round.untaken += 1
        state.tree.touched(call.level)


READ_FILE = "wakeful/read_file"
LINE_NUMBER = re.compile(r"^ *\d+\t", re.MULTILINE)
"""What `read_file` puts before each line, and is no part of the file."""


def consulted(state: TurnState, fact: Fact, event: PermissionEvaluated) -> None:
    """Code outside the log may write other arguments, or declare the run complete."""
    call = state.tree.calls.get(fact.call_id or "")
    for said in event.said:
        if said.arguments is not None and call is not None:
            call.rewritten = said.arguments
        if said.completes:
            state.completed_by = fact.call_id


def take_up(call: Call) -> None:
    if not call.taken_up:
        call.taken_up = True
        if not call.open_before:
            call.level.round.untaken -= 1


def call_started(state: TurnState, level: Level, fact: Fact, event: ToolStarted) -> None:
    call = state.tree.calls[fact.call_id or ""]
    take_up(call)
    call.started, call.started_at = event, fact.at
    if event.dispatched:
        _begin(state, call)
        call.dispatches = 1


def call_dispatched(state: TurnState, level: Level, fact: Fact, event: ToolDispatched) -> None:
    call = state.tree.calls[fact.call_id or ""]
    if call.dispatches == 0:  # let through by a person: this is its intent
        take_up(call)
        _begin(state, call)
    call.dispatches = event.attempt


def _begin(state: TurnState, call: Call) -> None:
    """The effect may have begun."""
    call.level.round.running += 1
    state.tree.in_flight += 1
    state.ledger.tool_called(call.part.name)
    expose(state, call)


def expose(state: TurnState, call: Call) -> None:
    """A call that is let through adds what its tool does to what the conversation has seen."""
    declaration = call.level.config.tool(call.part.name) if call.level.config is not None else None
    if declaration is not None and declaration.server is None:  # the provider's findings come with its reply
        state.thread.exposure = exposed(state.thread.exposure, declaration.name, what_it_does(declaration))


def call_succeeded(state: TurnState, level: Level, fact: Fact, event: ToolResult) -> None:
    if event.artifact_refs or event.details:
        refers(level, fact, event)
    if event.untrusted:
        state.thread.exposure = merged(state.thread.exposure, Exposure(untrusted=event.untrusted))
    elif event.tool_name == READ_FILE:
        state.thread.owner_files.add(LINE_NUMBER.sub("", event.item.text), fact.turn_id or "")
    child = as_child(level) if event.tool_name == FINISH else None
    if child is not None and child.started.output_schema is not None:
        child.has_finished, child.payload = True, (event.details or {}).get("payload")
    if level.config is not None and (declared := level.config.tool(event.tool_name)) is not None and declared.server:
        asked = state.tree.calls.get(fact.call_id or "")
        if asked is not None and asked.dispatches:  # an answer in its place is no yes
            state.rules.searches.add(declared.name)
    _call_ended(state, level, fact, event)


def call_failed(state: TurnState, level: Level, fact: Fact, event: ToolFailed) -> None:
    if event.asked_retry:
        state.retries_asked[event.tool_name] = state.retries_asked.get(event.tool_name, 0) + 1
    if event.untrusted:
        state.thread.exposure = merged(state.thread.exposure, Exposure(untrusted=event.untrusted))
    if event.effects == "unknown":
        state.unknown[fact.call_id or ""] = event.tool_name
    if event.tool_name == FINISH and event.status == "invalid":
        _payload_refused(state, level, event)
    call = state.tree.calls.get(fact.call_id or "")
    if call is not None and call.end is None:
        _call_off_others(state, level, call, event)
    _call_ended(state, level, fact, event)


def _payload_refused(state: TurnState, level: Level, event: ToolFailed) -> None:
    child = as_child(level)
    if child is None or child.started.output_schema is None:
        return
    child.finish_errors.append(event.message)
    if len(child.finish_errors) > state.limits.schema_retries:
        level.stop_error = unsatisfied(child, "its result did not fit the schema")


def _call_ended(state: TurnState, level: Level, fact: Fact, event: ToolResult | ToolFailed) -> None:
    tree, this = state.tree, level.round
    call = tree.calls.get(fact.call_id or "")
    if call is None or call.end is not None:
        return
    if call.dispatches:
        this.running -= 1
        if not call.children:
            tree.in_flight -= 1
    if not call.taken_up:
        take_up(call)
    tree.waiting.pop(call.call_id, None)
    tree.to_call_off.pop(call.call_id, None)
    call.end = event
    if level.config is not None and level.config.workflow is not None:
        let_follow(call)
    batch, front = this.batch, this.front
    while front < len(batch) and (ready := batch[front].end) is not None:
        level.conversation.items.append(ready.item)
        advise(level)
        if state.limits.stall_repeats is not None or state.limits.failure_repeats is not None:
            watch_repeats(state.limits, level, batch[front])
        front += 1
    this.front = front
    if front == len(batch):
        round_complete(state, level)


def _call_off_others(state: TurnState, level: Level, call: Call, event: ToolFailed) -> None:
    """A tool may say that its failure calls off the rest of the round, or what had to wait for it."""
    config = level.config
    declared = config.tool(call.part.name) if config is not None else None
    if config is None or declared is None or declared.on_failure == "ignore":
        return
    if event.status in ("skipped", "cancelled") or state.stop is not None:
        return
    waited_only = declared.on_failure == "cancel_dependent"
    if waited_only and config.workflow is not None:
        return  # what depends on a node is passed over there anyway, and nothing else does
    for other in level.round.batch:
        if other is call or other.end is not None:
            continue
        if waited_only and (other.position < call.position or other.running):
            continue
        call_off(state, other)


def call_off(state: TurnState, call: Call) -> None:
    call.called_off = call.level.round.calls_off = True
    if call.running and not call.is_let_finish and not call.children:
        state.tree.to_call_off[call.call_id] = None
    for job in call.children:
        child = state.tree.levels.get(job.started.level_id) if job.end is None else None
        if child is None:
            continue
        if (role := as_child(child)) is not None:
            role.called_off = True
        if child.phase == "waiting":
            child.phase = "lost"  # it has nothing more to wait for
        state.tree.to_call_off[job.started.level_id] = None
        for below in child.round.open_calls():
            call_off(state, below)
        state.tree.touched(child)


def scratch_written(state: TurnState, level: Level, fact: Fact, event: ScratchWritten) -> None:
    level.scratchpad.visible[event.key] = level.scratchpad.written[event.key] = event.value
    if (writer := state.tree.calls.get(fact.call_id or "")) is not None:
        writer.wrote[event.key] = event.value


def wait_created(state: TurnState, fact: Fact, event: WaitCreated) -> None:
    """The turn ends with the round of this call."""
    state.waits[event.wait_id] = fact.call_id or ""


def outcome_known(state: TurnState, event: UnknownResolved) -> None:
    if state.unknown.pop(event.call_id, None) is None or state.phase == "ended":
        return
    if event.happened:
        outcome = f"it happened: {event.result}"
    else:
        outcome = f"it failed: {event.result}" if event.source == "late_answer" else "it did not happen"
    words = f"The outcome of call {event.call_id} ({event.tool_name}) is known now: {outcome}"
    call = state.tree.calls.get(event.call_id)
    level = call.level if call is not None else state
    level.next_request.notes.append(UserItem(parts=(Text(words),), origin="runtime"))
