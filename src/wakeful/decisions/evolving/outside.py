"""What calls ask of somebody outside, and what is said to them."""

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import ActionRequired, ActionResolved, RuntimeToolRequested, RuntimeToolResolved
from wakeful.decisions.evolving.calls import expose, take_up
from wakeful.decisions.levels import Level, Pending
from wakeful.decisions.state import TurnState


def asked_outside(state: TurnState, level: Level, fact: Fact, event: ActionRequired | RuntimeToolRequested) -> None:
    call = state.calls[fact.call_id or ""]
    take_up(call)
    if call.dispatches:  # the tool itself has a question, and has done nothing: it begins anew with the answer
        call.dispatches = 0
        level.running -= 1
        state.in_flight -= 1
    call.rewritten = call.replaced
    if isinstance(event, ActionRequired):
        call.pending = Pending(event.action_id, event.expires_at, event, fact.at)
    else:
        # A client that is asked may do it: the request is the call's intent.
        call.pending = Pending(event.request_id, event.timeout_at, event, fact.at)
        state.ledger.tool_called(call.part.name)
        expose(state, call)
    state.waiting[call.call_id] = call


def said_outside(state: TurnState, fact: Fact, event: ActionResolved | RuntimeToolResolved) -> None:
    """The call goes before the gate once more; what was said goes with it."""
    call = state.calls.get(fact.call_id or "")
    if call is None or call.pending is None or not call.is_waiting:
        return
    action_id = event.action_id if isinstance(event, ActionResolved) else event.request_id
    if action_id == call.pending.action_id:
        call.pending.said = event
        state.waiting.pop(call.call_id, None)
        if isinstance(event, ActionResolved) and event.rule is not None:
            state.standing_rules.append(event.rule)
        if call.taken_up:
            call.taken_up = False
            call.level.untaken += 1
        state.touched(call.level)
