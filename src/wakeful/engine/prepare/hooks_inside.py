"""The hooks of agents that work inside another one's turn: each is heard about its own agent's calls, and no others.

They come after the turn's own, and like those they only tighten.
"""

from wakeful.contracts.events import AnyEvent
from wakeful.contracts.verdicts import Verdict
from wakeful.decisions.levels import Level
from wakeful.engine.turn_work import TurnWork
from wakeful.gate.hooks import TurnHooks
from wakeful.gate.running_call import AfterCall
from wakeful.gate.turn_gate import Consultation, ConsultOnAsk, Dispatch, Proposal


class HooksOfOthers:
    """Finds whose call it is, and asks that agent's hooks."""

    def __init__(self, work: TurnWork) -> None:
        self._work = work
        self._hooks: dict[str, TurnHooks] = {}
        for other in work.code.others.values():
            if other.hooks:
                hooks = TurnHooks(other.hooks, work.gate.keep, work.gate.fetch)
                hooks.parts = work.gate
                self._hooks[other.config.agent_name] = hooks

    def join(self) -> None:
        """Have them heard in this turn, after whoever is heard already."""
        work, all_hooks = self._work, self._hooks.values()
        if any(hooks.has("pre_tool_use") for hooks in all_hooks):
            work.gate.consult = (*work.gate.consult, self._before)
        if any(hooks.has("permission_request") for hooks in all_hooks):
            work.gate.consult_on_ask = self._asked_after(work.gate.consult_on_ask)
        if any(hooks.has("post_tool_use", "post_tool_failure") for hooks in all_hooks):
            work.after_call = self._after(work.after_call)

    def _at(self, level: Level) -> TurnHooks | None:
        other = self._work.code.other_of(level)
        return self._hooks.get(other.config.agent_name) if other is not None else None

    async def _before(self, proposal: Proposal) -> Consultation:
        hooks = self._at(proposal.call.level)
        return await hooks.before(proposal) if hooks is not None else Consultation()

    def _asked_after(self, first: ConsultOnAsk | None) -> ConsultOnAsk:
        async def asked(proposal: Proposal, verdict: Verdict) -> Consultation:
            heard = await first(proposal, verdict) if first is not None else Consultation()
            hooks = self._at(proposal.call.level)
            if hooks is None or any(said.decision == "deny" for said in heard.said):
                return heard
            return heard.and_then(await hooks.asked(proposal, verdict))

        return asked

    def _after(self, first: AfterCall | None) -> AfterCall:
        async def after(dispatch: Dispatch, events: list[AnyEvent]) -> list[AnyEvent]:
            if first is not None:
                events = await first(dispatch, events)
            call = self._work.state.calls.get(dispatch.call_id)
            hooks = self._at(call.level) if call is not None else None
            return await hooks.after(dispatch, events) if hooks is not None else events

        return after
