"""The loop's part of the gate: what a host says about each call before it runs. The order, written once:

1. the call is prepared                    everybody's parameters, the principal's ceiling
2. the action policy                       forbidden: denied; preview: a person is asked
3. the declarative rules                   `tool_call_rules`
4. the host's mediator                     `pre_tool_mediator`
5. the hook `pre_tool_call_decision`       may only be stricter

A deny is final. Whoever raises, runs out of time or answers nonsense has denied. It is heard by the one gate
(`gate.passage`), which every call goes through, and it says nothing about calls that the gate refuses anyway
except that a mediator may tell the refusal in its own words.
"""

import copy
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wakeful.contracts import transcript
from wakeful.contracts.events import ToolMediationFailed
from wakeful.contracts.events.tools import Opinion
from wakeful.decisions.policy.actions import ACTION_FORBIDDEN, FORBIDDEN, PREVIEW
from wakeful.decisions.policy.call_gates import REJECTED as GATE_REJECTED
from wakeful.gate.call_at_gate import CallAtGate, Consultation
from wakeful.gate.time_limit import LateAnswer, answered_within
from wakeful.gate.verdicts import ACTION_POLICY, CALL_GATES
from wakeful.hosts.host_calls import in_its_place
from wakeful.hosts.loop.loop_events import Teller
from wakeful.hosts.loop.result_export import execution
from wakeful.hosts.loop.run_calls import Sources
from wakeful.hosts.loop.run_tools import Bound
from wakeful.hosts.loop.turn_reply import RunnerCall
from wakeful.hosts.loop.view import LoopView
from wakeful.hosts.policies.host_policy import AgentPolicies, action_policy
from wakeful.hosts.policies.mediator_decisions import (
    PROCEED,
    MediatorDecision,
    Unusable,
    handed_over,
    read_decision,
    stricter,
)
from wakeful.hosts.ports import ToolCall
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration
from wakeful.hosts.tools.tool_execution import failed, normalised
from wakeful.service.hooks import HookRegistry

MEDIATOR = "pre_tool_mediator"
DECISION_HOOK = "pre_tool_call_decision"
PREPARATION = "preparation"
MEDIATION_ERROR = "pre_tool_mediation_error"


@dataclass(slots=True)
class Around:
    """What the run around it gives."""

    hooks: HookRegistry
    view: LoopView
    sources: Sources
    teller: Teller
    find: Callable[[str], RuntimeToolDeclaration | None]
    prepare: Callable[[RuntimeToolDeclaration, str, dict[str, Any]], Awaitable[ToolCall | dict[str, Any]]]
    context: Callable[[int], dict[str, Any]]
    bound: Bound
    hide: Callable[[str], str] = field(default=str)
    """Takes the runtime's own keys out of what foreign code said."""


class LoopGate:
    """Heard about every call of one run."""

    def __init__(
        self, around: Around, agent: AgentPolicies, mediator: Callable[..., Any] | None, seconds: float
    ) -> None:
        self._around = around
        self._mediator = mediator
        self._agent = agent
        self._seconds = seconds

    async def consult(self, at: CallAtGate) -> Consultation:
        """A call that can be made."""
        around, call_id = self._around, at.call_id
        await around.teller.catch_up()
        tool = around.find(at.declared.name)
        assert tool is not None, "only declared tools are offered"
        context = around.context(around.view.turn)
        prepared = await around.prepare(tool, call_id, at.arguments)
        heard = Consultation()
        if isinstance(prepared, ToolCall):
            outcome = await action_policy(tool, context, around.hooks, self._agent)
            if outcome.policy is FORBIDDEN:
                more = {"diagnostics": list(outcome.diagnostics)} if outcome.diagnostics else {}
                result = failed(tool.name, outcome.reason, ACTION_FORBIDDEN, runtime=tool.runtime, **more)
                return self._denied(call_id, ACTION_POLICY, result)
            if outcome.policy is PREVIEW:
                heard = Consultation((Opinion(by=ACTION_POLICY, decision="ask", reason=outcome.reason),))
        against = around.view.calls.gates.check_call(tool.name)
        if against is not None:
            result = failed(
                tool.name, against.reason, GATE_REJECTED, runtime=tool.runtime, rules=list(against.rule_refs)
            )
            return self._denied(call_id, CALL_GATES, result)
        said = await self._mediated(call_id, tool, prepared, at.arguments)
        if said is not None:
            return heard.and_then(said)
        return heard if isinstance(prepared, ToolCall) else self._denied(call_id, PREPARATION, prepared)

    async def unfit(self, at: CallAtGate) -> Consultation:
        """A call that is refused anyway."""
        around, call_id = self._around, at.call_id
        await around.teller.catch_up()
        tool = around.find(at.tool_name)
        return await self._mediated(call_id, tool, None, at.arguments) or Consultation()

    # --- the mediator and its hook ------------------------------------------------------------------------------------

    async def _mediated(
        self,
        call_id: str,
        tool: RuntimeToolDeclaration | None,
        prepared: ToolCall | dict[str, Any] | None,
        arguments: dict[str, Any],
    ) -> Consultation | None:
        """What they say; None: nothing, the call goes its normal way."""
        around = self._around
        if self._mediator is None and not around.hooks.has(DECISION_HOOK):
            return None
        asked = self._asked(call_id)
        name = tool.name if tool is not None else asked.name or asked.called_as
        context = self._told(asked, name, tool, prepared, arguments)
        try:
            decision = await answered_within(self._decide(context), self._seconds)
        except Exception as raised:
            return await self._broke(call_id, name, _why(raised, self._seconds))
        if decision.action == "proceed":
            return None
        if decision.action == "pending":
            return await self._handed_over(call_id, name, tool, prepared, decision)
        return await self._carried_out(call_id, name, tool, decision)

    async def _decide(self, context: dict[str, Any]) -> MediatorDecision:
        hooks = self._around.hooks
        raw: Any = PROCEED
        if self._mediator is not None:
            raw = await in_its_place(self._mediator, context)
        decision = read_decision(raw)
        if decision.action == "reject" or not hooks.has(DECISION_HOOK):
            return decision
        return read_decision(await hooks.value(DECISION_HOOK, raw, context, hold=stricter))

    def _told(
        self,
        asked: RunnerCall,
        name: str,
        tool: RuntimeToolDeclaration | None,
        prepared: ToolCall | dict[str, Any] | None,
        arguments: dict[str, Any],
    ) -> dict[str, Any]:
        """The one object a mediator gets: copies, with real parameters, and in this process only."""
        view, declarations = self._around.view, self._around.sources.declarations
        call = prepared if isinstance(prepared, ToolCall) else None
        parameters = call.parameters if call is not None else arguments
        message = transcript.tool_call(name, asked.parameters or {}, tool_call_id=asked.call_id, turn=view.turn)
        done = [(each.turn, execution(each, declarations)) for each in view.calls.executed]
        return {
            "messages": [each.to_wire() for each in (*view.messages, message)],
            "raw_tool_call": copy.deepcopy(asked.given),
            "prepared_tool_call": call.model_dump(mode="json", exclude_none=True) if call is not None else None,
            "tool_declaration": tool.model_dump(mode="json", exclude_none=True) if tool is not None else None,
            "tool_name": name,
            "parameters": copy.deepcopy(dict(parameters)),
            "tool_call_id": asked.call_id,
            "turn_context": self._around.context(view.turn),
            "turn": view.turn,
            "prior_tool_results": [*copy.deepcopy(view.own_executions), *(entry for _, entry in done)],
            "prior_mediated_results": [entry for turn, entry in done if turn == view.turn],
        }

    def _asked(self, call_id: str) -> RunnerCall:
        taken = self._around.sources.taken.values()
        found = next((call for turn in taken for call in turn.calls if call.call_id == call_id), None)
        assert found is not None, "every call comes from a turn"
        return found

    # --- what follows ------------------------------------------------------------------------------------------------

    async def _carried_out(
        self, call_id: str, name: str, tool: RuntimeToolDeclaration | None, decision: MediatorDecision
    ) -> Consultation:
        runtime = tool.runtime if tool is not None else None
        if decision.action == "reject":
            text = decision.error or f"Tool '{name}' was rejected before it ran"
            result = {**_own(decision.result), **failed(name, text, decision.error_type, runtime=runtime)}
            result["metadata"] = {**decision.metadata, "error_type": decision.error_type}
            return self._denied(call_id, MEDIATOR, result, completes=decision.complete)
        assert decision.result is not None
        given = {"success": True, **decision.result}
        result = normalised(given, tool) if tool is not None else _plain(name, given)
        result = await self._around.bound(call_id, result)
        self._around.sources.returned[call_id] = result
        if not result["success"]:
            return self._denied(call_id, MEDIATOR, result, completes=decision.complete)
        shown = json.dumps(result["result"], ensure_ascii=False, separators=(",", ":"))
        word = Opinion(
            by=MEDIATOR,
            decision="allow",
            reason="the mediator gave the result",
            replaces=True,
            completes=decision.complete,
        )
        return Consultation((word,), result=shown)

    async def _handed_over(
        self,
        call_id: str,
        name: str,
        tool: RuntimeToolDeclaration | None,
        prepared: ToolCall | dict[str, Any] | None,
        decision: MediatorDecision,
    ) -> Consultation:
        """Somebody outside carries it out: a request is made, as for a client's own tool, and the call waits."""
        if tool is None or prepared is None:
            return await self._broke(call_id, name, "said pending about a call that cannot be made")
        if isinstance(prepared, dict):
            return self._denied(call_id, PREPARATION, prepared)
        try:
            asked = handed_over(decision, tool, call_id)
        except Unusable as error:
            return await self._broke(call_id, name, str(error))
        if asked.request_id:
            self._around.sources.request_ids[call_id] = asked.request_id
        word = Opinion(
            by=MEDIATOR,
            decision="allow",
            reason="the mediator has somebody outside carry it out",
            arguments=asked.arguments,
            elsewhere=asked.elsewhere,
        )
        return Consultation((word,), arguments=asked.arguments)

    def _denied(self, call_id: str, by: str, result: Mapping[str, Any], *, completes: bool = False) -> Consultation:
        self._around.sources.returned[call_id] = dict(result)
        kind = str(result["metadata"].get("error_type") or "execution_failed")
        reason = str(result["error"])[:1_000]
        return Consultation((Opinion(by=by, decision="deny", reason=reason, error_type=kind, completes=completes),))

    async def _broke(self, call_id: str, name: str, why: str) -> Consultation:
        """Who cannot say denies, and leaves a trace."""
        around = self._around
        reason = around.hide(f"the mediator {why}")[:1_000]
        event = ToolMediationFailed(turn=around.view.turn, tool_name=name, tool_call_id=call_id, reason=reason)
        await around.teller.record(event)
        await around.teller.catch_up()
        result = failed(name, f"Tool '{name}' was not run: {reason}", MEDIATION_ERROR)
        return self._denied(call_id, MEDIATOR, result)


def _why(raised: Exception, seconds: float) -> str:
    if isinstance(raised, LateAnswer):
        return f"did not answer within {seconds:g} s"
    return str(raised) if isinstance(raised, Unusable) else f"raised {type(raised).__name__}: {raised}"


def _own(result: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (result or {}).items() if name in ("status", "result")}


def _plain(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """A result for a tool that nobody declared."""
    rest = {key: value for key, value in given.items() if key not in ("success", "tool_name", "metadata", "result")}
    success = given.get("success", True) is True
    result: dict[str, Any] = {"success": success, "tool_name": given.get("tool_name") or name}
    result["metadata"] = given["metadata"] if isinstance(given.get("metadata"), dict) else {}
    if success:
        result["result"] = given.get("result", rest)
    else:
        result["error"] = str(given.get("error") or f"Tool '{name}' failed")
    return result
