"""A call that was asked about comes before the gate again, with its answer.

What is decided is judged once more, by the policy and by what this machine can hold, and held to what was decided
about. Hooks are heard again only when a person wrote other arguments. An answer may be the end of the call; then no
code of the tool is needed, nor that it still is there.
"""

from collections.abc import Callable
from typing import Any

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.events import ActionRequired, AnyEvent, SandboxApplied, ToolDispatched
from wakeful.contracts.events.tools import Opinion
from wakeful.contracts.verdicts import Verdict
from wakeful.gate import consultation, outside_answers, outside_requests, refusals, verdicts
from wakeful.gate.call_at_gate import Admission, CallAtGate, Consultation
from wakeful.gate.call_facts import answer_as_verdict, edited, permission
from wakeful.gate.call_locks import CallLocks
from wakeful.gate.outcomes import PREVIOUS_EVENT, without_keys
from wakeful.gate.preparation import Preparation
from wakeful.gate.turn_gate import GateParts

_CHANGED = "what was approved is not what would run now: the tool, its arguments, its place or what holds it changed"


class AnsweredCalls:
    """Of one level of a turn."""

    def __init__(self, config: TurnConfig, parts: GateParts, preparation: Preparation, locks: CallLocks) -> None:
        self._config = config
        self._parts = parts
        self._preparation = preparation
        self._locks = locks

    def admit(self, at: CallAtGate, arguments: dict[str, Any] | None, said: tuple[Opinion, ...] | None) -> Admission:
        call, parts = at.call, self._parts
        at.record.taken_up_at = call.started_at / 1_000_000 if call.started_at else at.record.taken_up_at
        answer = outside_answers.take(at)
        if answer.is_failure or answer.result is not None:
            self._preparation.read(at, arguments or {})
            return self._over(at, judged_again=said is not None)
        self._preparation.complete(at, arguments)
        if at.error is not None:
            return Admission([refusals.failure(at, parts)])
        # The answer may have come on another machine, which could hold the call.
        at.heard = Consultation(said) if said is not None else verdicts.unconfined(at, self._config.policy.tools)
        if said is not None or not answer.is_edited or not parts.consult:
            return self._decided(at, said)

        async def wait() -> Callable[[], Admission]:
            await consultation.hear_of_edit(at, parts)
            return lambda: self._decided(at, None)

        return Admission([], later=wait)

    def _over(self, at: CallAtGate, *, judged_again: bool) -> Admission:
        """What was said is the end of it. No code of the tool is needed, nor that it still is there.

        When a recorded call is judged again, a result that would have to be waited for is left out.
        """
        parts, opened = self._parts, list[AnyEvent]()
        if at.call.pending is not None and isinstance(at.call.pending.asked, ActionRequired):
            declaration = self._config.tool(at.tool_name)
            opened.append(answer_as_verdict(at, is_destructive=declaration is not None and declaration.is_destructive))
            at.record.permission_ref = PREVIOUS_EVENT
        if at.answer is not None and at.answer.is_failure:
            return Admission([*opened, without_keys(outside_answers.failure(at, parts.now()), parts.keys())])
        short = outside_answers.short_result(at, parts)
        if short is not None or judged_again:
            return Admission([*opened, short] if short is not None else opened)

        async def wait() -> Callable[[], Admission]:
            events = await outside_answers.long_result(at, parts, len(opened) or None)
            return lambda: Admission([*opened, *events])

        return Admission([], later=wait)

    def _decided(self, at: CallAtGate, said: tuple[Opinion, ...] | None) -> Admission:
        """Judged once more, and held to what was decided about. `said`: a recorded call, judged again."""
        at.verdict = verdicts.judge(at, at.heard.denies, self._parts)
        if at.verdict.decision == "deny":
            return refusals.denied(at, self._parts)
        if not outside_answers.holds_for(at, self._parts.secret, said):
            return self._asked_anew(at)
        if outside_requests.is_outside(at):
            asks = outside_requests.work_outside(at, at.heard, self._parts)
            return Admission([*self._approval(at), asks])
        return self._locks.admit(at, self._approved, lambda at: self._decided(at, said))

    def _asked_anew(self, at: CallAtGate) -> Admission:
        """What was approved is not what would run now."""
        heard, verdict = at.heard, Verdict("ask", "mode", _CHANGED, layer=verdicts.BINDING)
        if not any(said.by == verdicts.BINDING for said in heard.said):  # a recorded call has it already
            heard = heard.and_then(Consultation((Opinion(by=verdicts.BINDING, decision="ask", reason=_CHANGED),)))
        asks = outside_requests.approval(at, verdict, heard, self._parts)
        more = {"approval_action_id": asks.action_id, "expires_at": asks.expires_at}
        return Admission([*heard.events, permission(at, verdict, heard, **more), asks])

    def _approval(self, at: CallAtGate) -> list[AnyEvent]:
        """A person let it through: what they said as a verdict, and what they changed."""
        assert at.answer is not None
        at.verdict = Verdict("allow", "human", at.answer.reason, layer="approval")
        verdict = permission(at, at.verdict, at.heard, approval_action_id=at.answer.action_id)
        return [*at.heard.events, verdict, *edited(at)]

    def _approved(self, at: CallAtGate) -> Admission:
        """What a person saw is what runs."""
        events, sandbox_at = self._approval(at), None
        if at.confinement is not None:
            sandbox_at = len(events)
            events.append(SandboxApplied.of(at.confinement))
        events.append(ToolDispatched(attempt=1, cause="approval"))
        return Admission(events, at, permission_at=len(at.heard.events), sandbox_at=sandbox_at)
