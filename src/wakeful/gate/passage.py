"""The door that every tool call goes through, whoever made it and wherever the tool lives. The order, written once:

     1. find the declaration        none: `tool_not_found` (1 to 4: `gate.preparation`)
     2. read the arguments          not a JSON object: `invalid_arguments`; so is, before 1, what the provider refused
     3. take out what is not the    injected fields go into the record, bound parameters come from the run
        tool's
     4. validate                    against the declared JSON Schema, with errors a model can act on
     5. the tool's own predicate    `approval=` may ask, never allow
     6. hooks and mediators         each may only tighten; whoever raises or is late denies (`gate.consultation`)
     7. the verdict                 the policy's own (pure: rules, classes, provenance) together with what 5 and 6 said;
                                    deny wins, always (`gate.verdicts`); what the policy and 5 deny is not brought
                                    before 6
     8. ask                         a person, or the client that runs the tool (`gate.outside_requests`); the call
                                    waits, and the answer is held to what was asked (`gate.outside_answers`)
     9. claim locks                 all at once, first come first served, timed (`gate.call_locks`)
    10. what will hold it           `sandbox.applied`, for tools that run foreign code
    11. the intent                  written by the runner; with a barrier when the effect is not pure
    12. run                         with a deadline, and told when nobody waits any more (`gate.running_call`)
    13. shape the result            cut what is too long for a model, the whole goes to an artifact
    14. the outcome                 exactly one result or failure, with its metadata

One record (`gate.call_at_gate`) is made when the call comes; every step reads it and completes it. No step calls back
here: they return values, and what follows from them is decided here.

A call that steps 1 to 4 refuse goes no further; a mediator may tell the refusal in its own words, or give a result.
Whoever had to wait for locks is judged once more when they are free.

`admit` is steps 1 to 11. It waits for nothing; where something has to be waited for (a hook, a lock) it says what, and
the runner waits. A call that was asked about comes here again with the answer (`gate.answered_calls`): it is judged
once more, and held to what was decided about. A failure at any point becomes a normal result for that call alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AnyEvent,
    SandboxApplied,
    ToolStarted,
)
from wakeful.contracts.events.tools import Opinion, Policy
from wakeful.decisions.levels import Call
from wakeful.decisions.policy.rules import forbidden
from wakeful.gate import consultation, outside_answers, outside_requests, refusals, verdicts
from wakeful.gate.answered_calls import AnsweredCalls
from wakeful.gate.call_at_gate import Admission, CallAtGate, CallRecord, Consultation, Scheduling
from wakeful.gate.call_facts import ended, idempotency_key, opening, started
from wakeful.gate.call_locks import CallLocks
from wakeful.gate.preparation import Preparation, rewrite
from wakeful.gate.turn_gate import GateParts
from wakeful.tools.tool import Tool


class Mediator:
    """The gate of one level of a turn."""

    def __init__(
        self, config: TurnConfig, tools: Mapping[str, Tool[Any]], turn_id: str, parts: GateParts | None = None
    ) -> None:
        self._config = config
        self._turn_id = turn_id
        self._parts = parts if parts is not None else GateParts()
        self._preparation = Preparation(config, tools, self._parts)
        self.locks = CallLocks(self._parts, turn_id)
        self._answered = AnsweredCalls(config, self._parts, self._preparation, self.locks)

    def admit(
        self,
        call: Call,
        arguments: dict[str, Any] | None,
        *,
        now: float,
        batch_id: str,
        scheduling: Scheduling,
        said: tuple[Opinion, ...] | None = None,
    ) -> Admission:
        """Bring a call before the gate. `arguments` is None when the model did not write a JSON object.

        `said` is what predicates and hooks said before, when a recorded call is judged again: none of them is asked.
        """
        at = self._made(call, now, batch_id, scheduling)
        if call.pending is not None and call.pending.said is not None:
            return self._answered.admit(at, arguments, said)
        self._preparation.complete(at, arguments)
        if at.error is not None:
            return self._unfit(at, said)
        if said is not None:
            return self._as_said(at, said)
        at.heard = consultation.own_words(at, self._parts, self._config.policy.tools)
        if self._is_consulted(at):
            return Admission([], later=lambda: self._consult(at))
        return self._conclude(at)

    def again(self, at: CallAtGate, arguments: dict[str, Any], attempt: int) -> bool:
        """Complete a call that has its intent for another run; False when its tool is not there (any more)."""
        call = at.call
        if call.part.name not in self._preparation.tools:
            return False
        self._preparation.find(at)
        self._preparation.read(at, arguments)
        if call.pending is not None and call.pending.said is not None:
            at.record.approval_id, at.record.approval_status = call.pending.action_id, "approved"
        # The effect class of the intent holds, whatever the code says today.
        declaration = at.tool.declaration
        at.declaration = declaration if attempt == 1 else declaration.model_copy(update={"effect": call.effect})
        at.attempt, at.idempotency_key = attempt, self._key_of(call)
        self.locks.owner(at)
        return True

    def still_approved(self, call: Call, arguments: dict[str, Any]) -> bool:
        """A call that a person let through and a crash cut off: is it still what they let through?"""
        if call.pending is None or not isinstance(call.pending.said, ActionResolved):
            return True
        at = CallAtGate(CallRecord(call, 0.0))
        outside_answers.take(at)
        self._preparation.complete(at, arguments)
        return at.error is None and outside_answers.holds_for(at, self._parts.secret, None)

    def passed_over(self, call: Call, arguments: dict[str, Any] | None, batch_id: str) -> ToolStarted:
        """The beginning of a call that will not be run: each has one, and one end."""
        at = self._made(call, 0.0, batch_id, "parallel")
        self._preparation.find(at)
        at.arguments = arguments or {}
        return started(at, "unavailable")

    def _made(self, call: Call, now: float, batch_id: str, scheduling: Scheduling) -> CallAtGate:
        at = CallAtGate(CallRecord(call, now), batch_id, scheduling)
        at.idempotency_key = self._key_of(call)
        return at

    def _key_of(self, call: Call) -> str:
        """Once it has begun, the key that is on record."""
        return (
            call.started.idempotency_key if call.started is not None else idempotency_key(self._turn_id, call.call_id)
        )

    # --- everybody is heard -------------------------------------------------------------------------------------------

    def _is_consulted(self, at: CallAtGate) -> bool:
        """Is anybody to be heard? Not about what is denied already: nobody could lift it."""
        if not self._parts.consult and self._parts.consult_on_ask is None:
            return False
        return verdicts.judge(at, at.heard.said, self._parts).decision != "deny"

    async def _consult(self, at: CallAtGate) -> Callable[[], Admission]:
        await consultation.hear(at, self._parts, self._config.policy.tools)
        outcome = await consultation.stand_in(at, self._parts)
        return lambda: self._heard(at, outcome)

    def _heard(self, at: CallAtGate, outcome: Sequence[AnyEvent]) -> Admission:
        """Conclude, unless a person is to be asked and somebody wants to know of it first."""
        on_ask = self._parts.consult_on_ask
        if on_ask is None or outcome:
            return self._conclude(at, outcome)
        at.verdict = verdicts.judge(at, at.heard.said, self._parts)
        if at.verdict.decision != "ask":
            return self._conclude(at)

        async def wait() -> Callable[[], Admission]:
            at.heard = at.heard.and_then(await consultation.word_of(on_ask, at, self._parts))
            return lambda: self._conclude(at)

        return Admission([], later=wait)

    def _as_said(self, at: CallAtGate, said: tuple[Opinion, ...]) -> Admission:
        at.heard = Consultation(said)
        rewritten = next((each.arguments for each in reversed(said) if each.arguments is not None), None)
        if rewritten is not None:
            rewrite(at, rewritten)
        return self._conclude(at)

    def _unfit(self, at: CallAtGate, said: tuple[Opinion, ...] | None) -> Admission:
        """A call that steps 1 to 4 refuse."""
        consult, rules = self._parts.consult_unfit, self._config.policy.rules
        against = forbidden(at.tool_name, rules) if rules and self._config.tool(at.tool_name) is None else None
        if said is not None or consult is None:
            at.heard = Consultation(said or ())
            return refusals.unfit(at, self._parts, against)

        async def wait() -> Callable[[], Admission]:
            at.heard = await consultation.word_of(consult, at, self._parts)
            outcome = await consultation.stand_in(at, self._parts)
            return lambda: refusals.unfit(at, self._parts, against, outcome)

        return Admission([], later=wait)

    # --- steps 7 to 11 ------------------------------------------------------------------------------------------------

    def _conclude(self, at: CallAtGate, outcome: Sequence[AnyEvent] = ()) -> Admission:
        """Everybody was heard. `outcome` is what was given in the tool's place."""
        at.verdict = verdicts.judge(at, at.heard.said, self._parts)
        if at.verdict.decision == "deny":
            return refusals.denied(at, self._parts)
        if outcome or (at.heard.said and any(said.replaces for said in at.heard.said)):
            return Admission([*opening(at, "allowed"), *ended(outcome, at.heard)])
        if at.verdict.decision == "ask" or outside_requests.is_outside(at, at.heard):
            return self._ask(at)
        return self.locks.admit(at, self._let_through, self._conclude)

    def _ask(self, at: CallAtGate) -> Admission:
        """The call waits for somebody outside."""
        parts = self._parts
        if at.verdict.decision == "ask":
            asks: AnyEvent = outside_requests.approval(at, at.verdict, at.heard, parts)
        elif at.declaration.answered_by == "person" and not parts.has_person:
            return refusals.nobody_to_ask(at, parts)
        else:
            asks = outside_requests.work_outside(at, at.heard, parts)
        if not isinstance(asks, ActionRequired):
            return Admission([*opening(at, "allowed"), asks])
        at.verdict = replace(at.verdict, decision="ask", reason=asks.reason)
        return Admission([*opening(at, "ask", approval_action_id=asks.action_id, expires_at=asks.expires_at), asks])

    def _let_through(self, at: CallAtGate) -> Admission:
        confinement, permission_at = at.confinement, len(at.heard.events)
        policy: Policy = "sandboxed" if confinement is not None and confinement.mode != "not_enforced" else "allowed"
        events = opening(at, policy, dispatched=True)
        if confinement is None:
            return Admission(events, at, permission_at=permission_at)
        return Admission(
            [*events, SandboxApplied.of(confinement)], at, permission_at=permission_at, sandbox_at=len(events)
        )
