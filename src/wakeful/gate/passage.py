"""The door that every tool call goes through, whoever made it and wherever the tool lives. The order, written once:

     1. find the declaration        none: `tool_not_found`
     2. read the arguments          not a JSON object: `invalid_arguments`; so is, before 1, what the provider refused
     3. take out what is not the    injected fields go into the record, bound parameters come from the run
        tool's
     4. validate                    against the declared JSON Schema, with errors a model can act on
     5. the tool's own predicate    `approval=` may ask, never allow
     6. hooks and mediators         each may only tighten; whoever raises or is late denies (`gate.hooks`)
     7. the verdict                 the policy's own (pure: rules, classes, provenance) together with what 5 and 6 said;
                                    deny wins, always (`gate.verdicts`); what the policy and 5 deny is not brought
                                    before 6
     8. ask                         a person (`gate.outside_requests`), or the client that runs the tool; the call waits
     9. claim locks                 all at once, first come first served, timed (`gate.locks`)
    10. what will hold it           `sandbox.applied`, for tools that run foreign code
    11. the intent                  written by the runner; with a barrier when the effect is not pure
    12. run                         with a deadline, and told when nobody waits any more (`gate.running_call`)
    13. shape the result            cut what is too long for a model, the whole goes to an artifact
    14. the outcome                 exactly one result or failure, with its metadata

A call that steps 1 to 4 refuse goes no further; a mediator may tell the refusal in its own words, or give a result.
Whoever had to wait for locks is judged once more when they are free.

`admit` is steps 1 to 11. It waits for nothing; where something has to be waited for (a hook, a lock) it says what, and
the runner waits. A call that was asked about comes here again with the answer: what is decided is judged once more, by
the policy and by what this machine can hold, and held to what was decided about. Hooks are heard again only when a
person wrote other arguments. A failure at any point becomes a normal result for that call alone.
"""

import difflib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.envelope import before
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AnyEvent,
    HookCompleted,
    PermissionEvaluated,
    SandboxApplied,
    ToolArgs,
    ToolDispatched,
    ToolFailed,
    ToolResult,
    ToolStarted,
)
from wakeful.contracts.events.tools import ErrorCategory, Policy, Said
from wakeful.contracts.tools import FailedStatus, ToolDeclaration, ToolError
from wakeful.contracts.values import unchecked
from wakeful.contracts.verdicts import DecisionSource, Verdict
from wakeful.decisions.injected_fields import split
from wakeful.decisions.levels import Call
from wakeful.decisions.policy.rules import forbidden
from wakeful.decisions.redaction import redact_parameters, stable_hash
from wakeful.gate import argument_validation, outside_requests, verdicts
from wakeful.gate.hooks import outcomes_of
from wakeful.gate.outcomes import PREVIOUS_EVENT, CallRecord, failed, without_keys
from wakeful.gate.result_shape import shaped
from wakeful.gate.turn_gate import ALLOWED, Admission, Consultation, Dispatch, GateParts, Proposal, Unfit
from wakeful.tools.function import Tool
from wakeful.tools.results import ResultRefused

Scheduling: TypeAlias = Literal["parallel", "serial"]

_tool_started = unchecked(ToolStarted)
_CATEGORY: dict[str, ErrorCategory] = {
    "tool_not_found": "unknown_tool",
    "invalid_arguments": "invalid_arguments",
    "capability_denied": "capability_gap",
    "lock_timeout": "dependency_unavailable",
}
_ALLOWED_DESTRUCTIVE = ALLOWED.model_copy(update={"destructive": True})


@dataclass(slots=True)
class _Prepared:
    """Steps 1 to 4 went well, or they did not."""

    proposal: Proposal | None = None
    error: ToolError | None = None
    declaration: ToolDeclaration | None = None
    arguments: dict[str, Any] = field(default_factory=dict)


def idempotency_key(turn_id: str, call_id: str) -> str:
    """One key for one call, over retries, restarts and workers. All of one length: none is a prefix of another."""
    return "wk-" + hashlib.sha256(f"{turn_id}\n{call_id}".encode()).hexdigest()[:32]


class Mediator:
    """The gate of one turn."""

    def __init__(
        self, config: TurnConfig, tools: Mapping[str, Tool[Any]], turn_id: str, parts: GateParts | None = None
    ) -> None:
        self._config = config
        self._tools = tools
        self._turn_id = turn_id
        self._parts = parts if parts is not None else GateParts()
        self._injected = frozenset(config.injected_tool_args)
        self.claimants: set[str] = set()
        """Calls that asked for locks here."""

    def admit(
        self,
        call: Call,
        arguments: dict[str, Any] | None,
        *,
        now: float,
        batch_id: str,
        scheduling: Scheduling,
        said: tuple[Said, ...] | None = None,
    ) -> Admission:
        """Bring a call before the gate. `arguments` is None when the model did not write a JSON object.

        `said` is what predicates and hooks said before, when a recorded call is judged again: none of them is asked.
        """
        record = CallRecord(call.call_id, call.part.name, now)
        if call.pending is not None and call.pending.said is not None:
            return self._answered(call, arguments, record, batch_id, scheduling, said)
        prepared = self._prepare(call, arguments, record, batch_id, scheduling)
        proposal = prepared.proposal
        if proposal is None:
            if said is not None or self._parts.consult_unfit is None:
                return self._invalid(call, prepared, record, batch_id, Consultation(said=said or ()))
            return Admission([], later=lambda: self._consult_unfit(call, prepared, record, batch_id))
        if said is not None:
            return self._conclude(self._as_said(proposal, said), Consultation(said=said))
        consulted = self._own_words(proposal)
        if self._is_consulted(proposal, consulted):
            return Admission([], later=lambda: self._consult(proposal, consulted))
        return self._conclude(proposal, consulted)

    def again(
        self, call: Call, arguments: dict[str, Any], *, attempt: int, record: CallRecord, key: str
    ) -> Dispatch | None:
        """A call that has its intent; None when its tool is not there (any more)."""
        tool = self._tools.get(call.part.name)
        if tool is None:
            return None
        executable, injected = split(arguments, self._injected)
        record.injected_args = injected or None
        if call.pending is not None and call.pending.said is not None:
            record.approval_id, record.approval_status = call.pending.action_id, "approved"
        # The effect class of the intent holds, whatever the code says today.
        declaration = tool.declaration if attempt == 1 else tool.declaration.model_copy(update={"effect": call.effect})
        run_with = call.replaced if call.replaced is not None else executable
        owner = self._owner_of(call.call_id, attempt) if declaration.locks and self._parts.locks is not None else None
        given = (call.call_id, tool, declaration, run_with, key, attempt, call.step, record, owner)
        return Dispatch(*given, agent=self._parts.agent_of(call))

    def still_approved(self, call: Call, arguments: dict[str, Any]) -> bool:
        """A call that a person let through and a crash cut off: is it still what they let through?"""
        pending = call.pending
        if pending is None or not isinstance(pending.said, ActionResolved):
            return True
        record = CallRecord(call.call_id, call.part.name, 0.0)
        answer = outside_requests.answer_of(call, record)
        given = call.replaced if call.replaced is not None else arguments
        proposal = self._prepare(call, given, record, "", "serial").proposal
        written = self._written(call, arguments)
        return proposal is not None and outside_requests.holds_for(answer, proposal, written, self._parts.secret, None)

    def _written(self, call: Call, arguments: dict[str, Any] | None) -> dict[str, Any]:
        """What a person was shown: the model's own arguments, or a hook's."""
        return call.rewritten if call.rewritten is not None else split(arguments or {}, self._injected).executable

    def passed_over(self, call: Call, arguments: dict[str, Any] | None, batch_id: str) -> ToolStarted:
        """The beginning of a call that will not be run: each has one, and one end."""
        declaration = self._config.tool(call.part.name) or ToolDeclaration(name=call.part.name, input_schema={})
        return self._started(call, declaration, arguments or {}, batch_id, "parallel", "unavailable")

    # --- steps 1 to 4 -------------------------------------------------------------------------------------------------

    def _prepare(
        self,
        call: Call,
        arguments: dict[str, Any] | None,
        record: CallRecord,
        batch_id: str,
        scheduling: Scheduling,
    ) -> _Prepared:
        name = call.part.name
        declaration, tool = self._config.tool(name), self._tools.get(name)
        if call.part.refused is not None:
            offered = tuple(tool.name for tool in self._config.tools)
            return _Prepared(error=_refused_by_provider(call, offered), declaration=declaration)
        if declaration is None or tool is None:
            return _Prepared(error=_not_found(name, tuple(tool.name for tool in self._config.tools)))
        if arguments is None:
            return _Prepared(error=_no_object(call), declaration=declaration)
        executable, injected = split(arguments, self._injected)
        record.injected_args = injected or None
        try:
            violations = argument_validation.compile(declaration.input_schema).check(executable)
        except InvalidConfig as broken:  # a schema that is none fits nothing: the call is refused, and the turn goes on
            violations = [argument_validation.Violation("", f"the tool's own schema is {broken.message}")]
        if violations:
            return _Prepared(error=_invalid(name, violations), declaration=declaration, arguments=executable)
        try:
            traits = _of_call(tool, executable, declaration)
            directory = tool.working_directory(executable)
            confinement = tool.confinement(executable)
        except Exception as raised:
            return _Prepared(
                error=_gate_broke(name, raised, self._parts), declaration=declaration, arguments=executable
            )
        return _Prepared(
            Proposal(
                *(call, tool, traits, declaration, executable, record, batch_id, scheduling, directory, confinement),
                is_rewritten=call.replaced is not None,
            )
        )

    # --- steps 5 to 11 ------------------------------------------------------------------------------------------------

    def _own_words(self, proposal: Proposal) -> Consultation:
        """What the tool itself and this machine say about the call."""
        consulted = verdicts.predicate(proposal, self._parts)
        return consulted if proposal.confinement is None else consulted.and_then(self._held_by(proposal))

    def _held_by(self, proposal: Proposal) -> Consultation:
        """What this machine says: the answer may have come on another one, which could hold the call."""
        if proposal.confinement is None:
            return verdicts.NOBODY_SAID
        return verdicts.unconfined(proposal, self._config.policy.tools)

    def _is_consulted(self, proposal: Proposal, consulted: Consultation) -> bool:
        """Is anybody to be heard? Not about what is denied already: nobody could lift it."""
        if not self._parts.consult and self._parts.consult_on_ask is None:
            return False
        return verdicts.judge(proposal, consulted, self._parts).decision != "deny"

    async def _consult(self, proposal: Proposal, consulted: Consultation) -> Callable[[], Admission]:
        """Hear everybody who has a say, one after another. Whoever raises denies, and a deny is final."""
        for consult in self._parts.consult:
            heard = await verdicts.word_of(consult(proposal), self._parts)
            consulted = consulted.and_then(heard)
            if heard.arguments is not None:
                try:
                    self._rewrite(proposal, heard.arguments)
                except Exception as raised:
                    consulted = consulted.and_then(verdicts.raised(raised, self._parts))
                    break
                # What was said about the model's own arguments stays said: nothing is loosened by rewriting them.
                consulted = consulted.and_then(self._own_words(proposal))
            if any(said.decision == "deny" for said in consulted.said):
                break
        outcome = await self._stand_in(proposal.record, consulted)
        return lambda: self._heard(proposal, consulted, outcome)

    def _heard(self, proposal: Proposal, consulted: Consultation, outcome: Sequence[AnyEvent]) -> Admission:
        """Conclude, unless a person is to be asked and somebody wants to know of it first."""
        on_ask = self._parts.consult_on_ask
        if on_ask is None:
            return self._conclude(proposal, consulted, outcome)
        verdict = verdicts.judge(proposal, consulted, self._parts)
        if verdict.decision != "ask" or outcome:
            return self._conclude(proposal, consulted, outcome)

        async def wait() -> Callable[[], Admission]:
            heard = await verdicts.word_of(on_ask(proposal, verdict), self._parts)
            return lambda: self._conclude(proposal, consulted.and_then(heard))

        return Admission([], later=wait)

    async def _stand_in(self, record: CallRecord, consulted: Consultation) -> list[AnyEvent]:
        """The facts of a result that somebody gave in the tool's place."""
        if consulted.result is None:
            return []
        try:
            parts = self._parts
            return await shaped(
                *(record, consulted.result),
                now=parts.now,
                keep=parts.keep,
                keys=parts.keys(),
                most=parts.result_bytes(),
            )
        except ResultRefused as refused:
            error = ToolError(kind="invalid_result", message=refused.message, recovery_hint=refused.hint or None)
            now = self._parts.now()
            return [failed(record, error, now=now, status="failed", category="execution_failed", effects="none")]

    async def _consult_unfit(
        self, call: Call, prepared: _Prepared, record: CallRecord, batch_id: str
    ) -> Callable[[], Admission]:
        consult = self._parts.consult_unfit
        assert consult is not None and prepared.error is not None
        unfit = Unfit(call, prepared.declaration, prepared.arguments, prepared.error)
        heard = await verdicts.word_of(consult(unfit), self._parts)
        outcome = await self._stand_in(record, heard)
        return lambda: self._invalid(call, prepared, record, batch_id, heard, outcome)

    def _rewrite(self, proposal: Proposal, arguments: dict[str, Any]) -> None:
        """Other arguments: whatever follows from them is worked out anew."""
        proposal.arguments, proposal.is_rewritten = arguments, True
        proposal.declaration = _of_call(proposal.tool, arguments, proposal.declared)
        proposal.directory = proposal.tool.working_directory(arguments)
        proposal.confinement = proposal.tool.confinement(arguments)

    def _as_said(self, proposal: Proposal, said: tuple[Said, ...]) -> Proposal:
        rewritten = next((each.arguments for each in reversed(said) if each.arguments is not None), None)
        if rewritten is not None:
            self._rewrite(proposal, rewritten)
        return proposal

    def _conclude(self, proposal: Proposal, consulted: Consultation, outcome: Sequence[AnyEvent] = ()) -> Admission:
        """Everybody was heard. `outcome` is what was given in the tool's place."""
        verdict = verdicts.judge(proposal, consulted, self._parts)
        if verdict.decision == "deny":
            return self._denied(proposal, verdict, consulted)
        if outcome or (consulted.said and any(said.replaces for said in consulted.said)):
            return Admission([*self.opening(proposal, verdict, consulted, "allowed"), *self._ended(outcome, consulted)])
        if verdict.decision == "ask" or outside_requests.is_outside(proposal, consulted):
            return outside_requests.asked(self, proposal, verdict, consulted)
        return self._locked(
            proposal,
            lambda: self._let_through(proposal, verdict, consulted),
            lambda heard: self._conclude(proposal, consulted.and_then(heard)),
        )

    def _locked(
        self, proposal: Proposal, through: Callable[[], Admission], judged_again: Callable[[Consultation], Admission]
    ) -> Admission:
        """Let it through with its locks. Much may have happened before they were free: then it is judged once more."""
        names, locks = proposal.declaration.locks, self._parts.locks
        if not names or locks is None:
            return through()
        self.claimants.add(proposal.call.call_id)
        if locks.try_claim(self.lock_owner(proposal), names):
            return through()

        async def wait() -> Callable[[], Admission]:
            if await locks.claim(self.lock_owner(proposal), names, self._parts.lock_seconds):
                return lambda: judged_again(Consultation())
            refused = verdicts.locked(locks.holders(names), self._parts.lock_seconds)
            return lambda: judged_again(refused)

        return Admission([], later=wait)

    def lock_owner(self, proposal: Proposal) -> str:
        return self._owner_of(proposal.call.call_id)

    def _owner_of(self, call_id: str, attempt: int = 1) -> str:
        """A run that a crash or its caller left behind may still be at it: the next one is another owner."""
        return f"{self._turn_id}/{call_id}/{attempt}"

    def let_go(self, call_id: str) -> None:
        """Nobody will run this call: what it claimed is free again."""
        if self._parts.locks is not None:
            self._parts.locks.release(self._owner_of(call_id))

    def _let_through(self, proposal: Proposal, verdict: Verdict, consulted: Consultation) -> Admission:
        call, declaration = proposal.call, proposal.declaration
        confinement = proposal.confinement
        policy: Policy = "sandboxed" if confinement is not None and confinement.mode != "not_enforced" else "allowed"
        events = self.opening(proposal, verdict, consulted, policy, dispatched=True)
        permission_at = len(consulted.events)
        started = events[permission_at + 1]
        assert isinstance(started, ToolStarted)
        sandbox_at = None
        if confinement is not None:
            events.append(SandboxApplied.of(confinement))
            sandbox_at = len(events) - 1
        dispatch = Dispatch(
            call.call_id,
            proposal.tool,
            declaration,
            proposal.arguments,
            started.idempotency_key,
            1,
            call.step,
            proposal.record,
            self.lock_owner(proposal) if declaration.locks and self._parts.locks is not None else None,
            self._parts.agent_of(call),
        )
        return Admission(events, dispatch, permission_at=permission_at, sandbox_at=sandbox_at)

    def permission(self, proposal: Proposal, verdict: Verdict, consulted: Consultation, **more: Any) -> AnyEvent:
        """The verdict as a fact. What is not given is not written down: the common one is the same object each time."""
        declaration = proposal.declaration
        if verdict is verdicts.NOTHING_AGAINST and not consulted.said and not more:
            return _ALLOWED_DESTRUCTIVE if declaration.is_destructive else ALLOWED
        fields: dict[str, Any] = {"layer": verdict.layer, **more}
        if verdict.rule_refs:
            fields["rule_refs"] = verdict.rule_refs
        if declaration.is_destructive:
            fields["destructive"] = True
        if consulted.said:
            fields["said"] = consulted.said
        rewritten = [event.updated_input_ref for event in consulted.events if isinstance(event, HookCompleted)]
        if any(rewritten):
            fields["updated_input_ref"] = [ref for ref in rewritten if ref][-1]
        return PermissionEvaluated(
            decision=verdict.decision, decision_source=verdict.source, decision_reason=verdict.reason, **fields
        )

    def opening(
        self,
        proposal: Proposal,
        verdict: Verdict,
        consulted: Consultation,
        policy: Policy,
        *,
        dispatched: bool = False,
        **more: Any,
    ) -> list[AnyEvent]:
        """What every call begins with: what hooks said, the verdict, the beginning, and whether it was rewritten."""
        started = self._started(
            proposal.call,
            proposal.declaration,
            proposal.arguments,
            proposal.batch_id,
            proposal.scheduling,
            policy,
            dispatched=dispatched,
        )
        permission = self.permission(proposal, verdict, consulted, **more)
        if not consulted.said and not consulted.events:
            return [permission, started]
        events: list[AnyEvent] = [*consulted.events, permission, started]
        if consulted.events:
            outcomes = outcomes_of(consulted.events, lambda index: before(len(events) - 1 - index))
            events[-1] = started.model_copy(update={"hook_outcomes": outcomes})
        if any(said.arguments is not None for said in consulted.said):
            events.append(ToolArgs(safe_args=outside_requests.safe_arguments(proposal), changed_by="hook"))
        return events

    def _ended(self, outcome: Sequence[AnyEvent], consulted: Consultation, opened: int = 2) -> list[AnyEvent]:
        """An end that is written together with its beginning refers to what stands before it."""
        if not outcome:
            return []
        *notes, last = outcome
        assert isinstance(last, ToolResult | ToolFailed)
        changed = any(said.arguments is not None for said in consulted.said)
        back = opened + changed + len(notes)
        outcomes = outcomes_of(consulted.events, lambda index: before(len(consulted.events) - index + back))
        refs = {"permission_ref": before(back), "hook_outcomes": (*last.hook_outcomes, *outcomes)}
        return [*notes, last.model_copy(update=refs)]

    # --- a call that was asked about ----------------------------------------------------------------------------------

    def _answered(
        self,
        call: Call,
        arguments: dict[str, Any] | None,
        record: CallRecord,
        batch_id: str,
        scheduling: Scheduling,
        said: tuple[Said, ...] | None,
    ) -> Admission:
        assert call.pending is not None and call.pending.said is not None
        record.taken_up_at = call.started_at / 1_000_000 if call.started_at else record.taken_up_at
        answer = outside_requests.answer_of(call, record)
        written, injected = split(arguments or {}, self._injected)
        if answer.outcome is not None or answer.given is not None:
            record.injected_args = injected or None
            return self._over(call, answer, record, judged_again=said is not None)
        given = call.replaced if call.replaced is not None else arguments
        prepared = self._prepare(call, given, record, batch_id, scheduling)
        proposal = prepared.proposal
        if proposal is None:
            assert prepared.error is not None
            return Admission([self._failure(record, prepared.error)])
        record.injected_args = injected or None
        heard = Consultation(said=said) if said is not None else self._held_by(proposal)
        written = self._written(call, arguments)
        if said is None and answer.edited and self._parts.consult:
            return Admission([], later=lambda: self._consult_edited(proposal, answer, written, heard))
        return self._decided(proposal, answer, written, heard, said)

    async def _consult_edited(
        self, proposal: Proposal, answer: outside_requests.OutsideAnswer, written: dict[str, Any], heard: Consultation
    ) -> Callable[[], Admission]:
        """A person wrote other arguments: whoever has a say has not seen them. What they ask for has been answered."""
        for consult in self._parts.consult:
            one = await verdicts.word_of(consult(proposal), self._parts)
            if one.arguments is not None or one.result is not None:
                one = replace(one, said=(*one.said, verdicts.not_as_edited()), arguments=None, result=None)
            heard = heard.and_then(one)
        consulted = replace(heard, said=tuple(map(verdicts.only_denies, heard.said)))
        return lambda: self._decided(proposal, answer, written, consulted, None)

    def _decided(
        self,
        proposal: Proposal,
        answer: outside_requests.OutsideAnswer,
        written: dict[str, Any],
        consulted: Consultation,
        said: tuple[Said, ...] | None,
    ) -> Admission:
        """Judged once more, and held to what was decided about. `said`: a recorded call, judged again."""
        denies = tuple(each for each in consulted.said if each.decision == "deny")
        verdict = verdicts.judge(proposal, replace(consulted, said=denies), self._parts)
        if verdict.decision == "deny":
            return self._denied(proposal, verdict, consulted)
        if not outside_requests.holds_for(answer, proposal, written, self._parts.secret, said):
            return outside_requests.asked_anew(self, proposal, consulted)
        if outside_requests.is_outside(proposal):
            return outside_requests.handed_on(self, proposal, answer, consulted)
        return self._locked(
            proposal,
            lambda: self._approved(proposal, answer, consulted),
            lambda heard: self._decided(proposal, answer, written, consulted.and_then(heard), said),
        )

    def _over(
        self, call: Call, answer: outside_requests.OutsideAnswer, record: CallRecord, *, judged_again: bool = False
    ) -> Admission:
        """What was said is the end of it. No code of the tool is needed, nor that it still is there."""
        opened: list[AnyEvent] = []
        if call.pending is not None and isinstance(call.pending.asked, ActionRequired):
            opened.append(self._word_of(call, answer, record))
            record.permission_ref = PREVIOUS_EVENT
        if answer.given is not None:
            return outside_requests.given(self, record, answer.given, opened, judged_again=judged_again)
        assert answer.outcome is not None
        return Admission([*opened, without_keys(answer.outcome(self._parts.now()), self._parts.keys())])

    def _word_of(self, call: Call, answer: outside_requests.OutsideAnswer, record: CallRecord) -> PermissionEvaluated:
        """A person's word as a verdict."""
        source: DecisionSource = "human" if record.approval_status != "timed_out" else "mode"
        declaration = self._config.tool(call.part.name)
        return PermissionEvaluated(
            decision="deny" if answer.refused else "allow",
            decision_source=source,
            decision_reason=answer.reason,
            layer="approval",
            approval_action_id=answer.action_id,
            destructive=declaration is not None and declaration.is_destructive,
        )

    def _approved(
        self, proposal: Proposal, answer: outside_requests.OutsideAnswer, consulted: Consultation
    ) -> Admission:
        """A person let it through: what they saw is what runs."""
        call, declaration = proposal.call, proposal.declaration
        confinement = proposal.confinement
        verdict = Verdict("allow", "human", answer.reason, layer="approval")
        events: list[AnyEvent] = [
            *consulted.events,
            self.permission(proposal, verdict, consulted, approval_action_id=answer.action_id),
            *outside_requests.rewritten(proposal, answer),
        ]
        sandbox_at = None
        if confinement is not None:
            sandbox_at = len(events)
            events.append(SandboxApplied.of(confinement))
        events.append(ToolDispatched(attempt=1, cause="approval"))
        key = call.idempotency_key or idempotency_key(self._turn_id, call.call_id)
        owner = self.lock_owner(proposal) if declaration.locks and self._parts.locks is not None else None
        arguments, record = proposal.arguments, proposal.record
        given = (call.call_id, proposal.tool, declaration, arguments, key, 1, call.step, record, owner)
        dispatch = Dispatch(*given, agent=self._parts.agent_of(call))
        return Admission(events, dispatch, permission_at=len(consulted.events), sandbox_at=sandbox_at)

    # --- refusals -----------------------------------------------------------------------------------------------------

    def _invalid(
        self,
        call: Call,
        prepared: _Prepared,
        record: CallRecord,
        batch_id: str,
        consulted: Consultation,
        outcome: Sequence[AnyEvent] = (),
    ) -> Admission:
        """A call that cannot be made. What a mediator said of it stands in the place of what is wrong with it."""
        assert prepared.error is not None
        shown = prepared.declaration or ToolDeclaration(name=call.part.name, input_schema={})
        started = self._started(call, shown, prepared.arguments, batch_id, "parallel", "unavailable")
        if not consulted.said:
            failure = self._failure(record, prepared.error)
            against = self._forbidden(call.part.name)
            if against is None:
                return Admission([*consulted.events, started, failure])
            # The model is told what anybody is told who calls a tool that is not there; the log says why it is not.
            said = PermissionEvaluated(
                decision="deny",
                decision_source=against.source,
                decision_reason=against.reason,
                rule_refs=against.rule_refs,
                layer=against.layer,
                destructive=shown.is_destructive,
            )
            opened: list[AnyEvent] = [*consulted.events, said, started]
            return Admission([*opened, *self._ended([failure], consulted)], permission_at=len(consulted.events))
        verdict = verdicts.judge_alone(consulted)
        permission = PermissionEvaluated(
            decision=verdict.decision,
            decision_source=verdict.source,
            decision_reason=verdict.reason,
            layer=verdict.layer,
            said=consulted.said,
        )
        if verdict.decision == "deny":
            error, category = verdicts.refusal(call.part.name, verdict)
            now = self._parts.now()
            outcome = [failed(record, error, now=now, status="denied", category=category, effects="none")]
        opened = [*consulted.events, permission, started]
        return Admission([*opened, *self._ended(outcome, consulted)], permission_at=len(consulted.events))

    def _forbidden(self, name: str) -> Verdict | None:
        """The owner's rule for which a tool is not among the turn's."""
        rules = self._config.policy.rules
        return forbidden(name, rules) if rules and self._config.tool(name) is None else None

    def _failure(self, record: CallRecord, error: ToolError) -> AnyEvent:
        return failed(
            record,
            error,
            now=record.taken_up_at if record.approval_id is None else self._parts.now(),
            status="invalid",
            category=_CATEGORY.get(error.kind, "schema_validation_failed"),
            effects="none",
        )

    def _denied(self, proposal: Proposal, verdict: Verdict, consulted: Consultation) -> Admission:
        """The verdict, the call's beginning unless it has begun to wait before, and its end."""
        error, category = verdicts.refusal(proposal.declaration.name, verdict)
        status: FailedStatus = "timed_out" if error.kind == "lock_timeout" else "denied"
        outcome = failed(
            proposal.record, error, now=self._parts.now(), status=status, category=category, effects="none"
        )
        if proposal.call.pending is not None:
            permission = self.permission(proposal, verdict, consulted)
            return Admission([*consulted.events, permission, *self._ended([outcome], consulted, opened=1)])
        return Admission([*self.opening(proposal, verdict, consulted, "denied"), *self._ended([outcome], consulted)])

    def _started(
        self,
        call: Call,
        declaration: ToolDeclaration,
        arguments: dict[str, Any],
        batch_id: str,
        scheduling: Scheduling,
        policy: Policy,
        *,
        dispatched: bool = False,
    ) -> ToolStarted:
        safe = redact_parameters(arguments, declaration.input_schema, declaration.sensitive_parameters)
        return _tool_started(
            tool_name=call.part.name,
            safe_args=safe if call.part.arguments_ref is None else None,
            args_ref=call.part.arguments_ref.digest if call.part.arguments_ref is not None else None,
            args_sha256=stable_hash(safe),
            policy=policy,
            permission_ref=PREVIOUS_EVENT if policy != "unavailable" else None,
            is_read_only=declaration.is_read_only,
            is_concurrency_safe=not declaration.serial,
            is_destructive=declaration.is_destructive,
            interrupt_behavior=declaration.interrupt_behavior,
            batch_id=batch_id,
            position=call.position,
            scheduling=scheduling,
            dispatched=dispatched,
            effect=declaration.effect,
            idempotency_key=idempotency_key(self._turn_id, call.call_id),
            timeout_ms=int(declaration.timeout * 1000) if declaration.timeout is not None else None,
        )

    @property
    def parts(self) -> GateParts:
        return self._parts


def _of_call(tool: Tool[Any], arguments: dict[str, Any], declared: ToolDeclaration) -> ToolDeclaration:
    """What holds for this call. A tool may be stricter about one call than its declaration, and never looser."""
    traits = tool.traits(arguments)
    return traits if traits is tool.declaration else traits.at_least(declared)


def _not_found(name: str, offered: tuple[str, ...]) -> ToolError:
    near = difflib.get_close_matches(name, offered, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    tools = ", ".join(offered[:20]) if offered else "none"
    return ToolError(
        kind="tool_not_found",
        message=f"Tool '{name[:200]}' not found",
        recovery_hint=f"{hint}The tools of this turn are: {tools}.",
    )


def _refused_by_provider(call: Call, offered: tuple[str, ...]) -> ToolError:
    tools = ", ".join(offered[:20]) if offered else "none"
    return ToolError(
        kind="invalid_arguments",
        message=f"the call of {call.part.name[:200]} was not made: {call.part.refused}",
        recovery_hint=f"Call a tool with one JSON object that fits its schema. The tools of this turn are: {tools}.",
        retryable=True,
    )


def _no_object(call: Call) -> ToolError:
    return ToolError(
        kind="invalid_arguments",
        message=f"the arguments of {call.part.name} are not a JSON object: {(call.part.raw_arguments or '')[:200]!r}",
        recovery_hint="Call the tool again with one JSON object that fits its schema.",
        retryable=True,
    )


def _gate_broke(name: str, raised: Exception, parts: GateParts) -> ToolError:
    why = verdicts.words(f"{type(raised).__name__}: {raised}", parts)
    return ToolError(
        kind="invalid_prepared_tool_call",
        message=f"{name} could not say what this call would do ({why}), so it is not run",
    )


def _invalid(name: str, violations: list[argument_validation.Violation]) -> ToolError:
    """Errors in words a model can act on; the first field stands out."""
    missing = [violation.missing for violation in violations if violation.missing]
    only_missing = len(missing) == len(violations)
    details: dict[str, Any] = {"errors": [f"{violation.path}: {violation.message}" for violation in violations]}
    if violations[0].path:
        details["field"] = violations[0].path
    if missing:
        details["missing_parameters"] = missing
    return ToolError(
        kind="missing_required_parameters" if only_missing else "invalid_parameters",
        message=f"the arguments of {name} do not fit its schema: "
        + "; ".join(f"{violation.path or 'arguments'}: {violation.message}" for violation in violations[:3]),
        details=details,
        recovery_hint="Correct these fields and call the tool again.",
        retryable=True,
    )
