"""One run of a conversation, from the host's messages to its result. The order, written once:

1. declarations that are not fit are named     as events, before anything else
2. the transcript's lock is taken              contended: a result, and no turn
3. the run is claimed                          claimed before: a failed result, and no turn
4. the one runner runs the turns               the turn runner is its model, the executor its tools; what a client
                                               is to run becomes a request, and the run pauses on it
5. the result is made from the log
6. the persister gets it
7. the lock is let go                          on every way out
8. `completed` is told, last
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from wakeful.agents.definition import Agent
from wakeful.contracts import transcript
from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.budgets import Budget
from wakeful.contracts.content import File, Image, Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.conversation_result import ConversationResult
from wakeful.contracts.declarations import RuntimeToolDeclaration
from wakeful.contracts.envelope import MAIN_THREAD
from wakeful.contracts.errors import KeyReused
from wakeful.contracts.events import (
    CompletionBlocked,
    ObserverFailed,
    SessionStarted,
    StopRule,
    ToolDeclarationsRejected,
    ToolMediationDisabled,
    TranscriptClosed,
    TranscriptLockContended,
    TranscriptLockReleaseFailed,
    TranscriptPersistFailed,
)
from wakeful.contracts.outcomes import RunFailure
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.contracts.requests import ConversationRequest
from wakeful.contracts.tool_calls import ToolCall
from wakeful.contracts.transcript import Message
from wakeful.decisions.audit import audit_entry, audited_parameters
from wakeful.ports import ToolExecutor
from wakeful.service.cancelling import cancel_turn
from wakeful.service.hooks import HookRegistry
from wakeful.service.principals import resolve_principal
from wakeful.service.requests import RunRequest, Runtime
from wakeful.service.turns import run_turn
from wakeful.surfaces.loop.calling import at_once, in_its_place
from wakeful.surfaces.loop.client_calls import ClientCalls, LoopClientTool, sent_to_client
from wakeful.surfaces.loop.conversation_items import items_of
from wakeful.surfaces.loop.execution import APPROVAL, ToolExecutionCore, failed
from wakeful.surfaces.loop.executor_tool import ExecutorTool
from wakeful.surfaces.loop.gatekeeping import MEDIATOR_SECONDS, Around, LoopGate
from wakeful.surfaces.loop.host_policy import visible_tools
from wakeful.surfaces.loop.locks import HeldLock, acquire
from wakeful.surfaces.loop.loop_events import HostIds
from wakeful.surfaces.loop.options import LoopOptions
from wakeful.surfaces.loop.results import (
    Stop,
    contended,
    conversation_result,
    execution,
    failed_stop,
    final_content,
    safe_message,
    stop_of,
)
from wakeful.surfaces.loop.telling import Teller, describe
from wakeful.surfaces.loop.turn_results import Asked
from wakeful.surfaces.loop.turn_runner_model import TurnRunnerModel
from wakeful.surfaces.loop.view import Executed, LoopView, Sources
from wakeful.tools.context import RunContext
from wakeful.tools.function import Tool

AUDIT_HOOK = "tool_audit_parameters"
DENIED_HOOK = "tool_capability_denied"


class OneRun:
    """Everything of one run, while it lasts."""

    def __init__(
        self,
        runtime: Runtime,
        hooks: HookRegistry,
        options: LoopOptions,
        messages: tuple[Message, ...],
        turn_runner: Callable[..., Any],
        claimed: set[str],
        targets: Mapping[str, ToolExecutor],
        mediator_seconds: float = MEDIATOR_SECONDS,
    ) -> None:
        self._runtime = runtime
        self._hooks = hooks
        self._options = options
        self._messages = messages
        self._claimed = claimed
        """Runs that were claimed here: what a store that is gone after its run cannot remember."""
        self._agent_id = runtime.ids.new("conversation")
        self._core = (
            ToolExecutionCore(options.declarations.accepted, options.tool_executor, targets)
            if options.tool_executor is not None or options.mediates
            else None
        )
        self._sources = self._known()
        self._view = LoopView(messages, self._sources, options.max_turns, HostIds(options.run_id, options.session_id))
        self._teller = Teller(runtime.store, runtime.clock, self._agent_id, self._view, options.on_event, hooks)
        self._model = TurnRunnerModel(
            turn_runner,
            self._transcript,
            self._context,
            self._canonical,
            self._sources.taken,
            self._used_ids(),
            self._at_natural_end,
        )
        around = Around(
            hooks,
            self._view,
            self._sources,
            self._teller,
            self._declared,
            self._prepared,
            self._context,
            lambda text: runtime.keys().hide_keys(text),
        )
        self._gate = LoopGate(around, options.pre_tool_mediator, mediator_seconds)
        self._visible: frozenset[str] = frozenset()
        self._principal = options.request.principal if options.request is not None else None
        """For whom the run acts: whom its request names, or else the host's hook."""
        self._turn_id = ""
        self._policy_failure: RunFailure | None = None
        self._metadata: dict[str, Any] = {}

    async def carry_out(self) -> ConversationResult:
        """The run, whole. Raises InvalidValue when the host's hook names a principal that is none."""
        if self._principal is None:
            self._principal = await resolve_principal(self._options.context, hooks=self._hooks)
        await self._open()
        held = await self._lock()
        if held is None and self._options.lock is not None and self._options.session_id:
            return await self._end(contended(), [])
        try:
            stop = await self._turns()
            await self._teller.catch_up()
            audits = await self._audits()
            if self._turn_id:
                await self._persist(self._result(stop, audits))
            await self._let_go(held)
            return await self._end(stop, audits)
        finally:
            if held is not None:
                await held.release_quietly()

    # --- before the first turn --------------------------------------------------------------------------------------

    async def _open(self) -> None:
        """The stream of this run begins, with what is to be said about its tools."""
        found, options = self._options.declarations, self._options
        events: list[Any] = [SessionStarted(agent_name=self._agent_id, temporary=True)]
        if found.rejected:
            counts = {"rejected": found.rejected, "rejected_count": len(found.rejected)}
            events.append(ToolDeclarationsRejected(accepted_count=len(found.accepted), **counts))
            if options.tool_executor is not None and not found.accepted:
                events.append(ToolMediationDisabled(reason="all_declarations_rejected", **counts))
        await self._teller.record(*events)
        await self._teller.catch_up()

    async def _lock(self) -> HeldLock | None:
        lock, session_id = self._options.lock, self._options.session_id
        if lock is None or not session_id:
            return None
        held = await acquire(lock, session_id, self._options.lock_ttl)
        if isinstance(held, HeldLock):
            return held
        await self._teller.record(TranscriptLockContended(session_id=session_id, error=held.error))
        await self._teller.catch_up()
        return None

    # --- the turns --------------------------------------------------------------------------------------------------

    async def _turns(self) -> Stop:
        key = self._key()
        if key in self._claimed:
            return self._claimed_before()
        if key is not None:
            self._claimed.add(key)
        await self._look_at_tools()
        request = self._request(key)
        try:
            result = await run_turn(self._runtime, request)
        except KeyReused:  # every run has an agent of its own, so the key of another run never fits
            return self._claimed_before()
        waiting = await self._client_calls().ask(result, request)
        await self._teller.catch_up()
        self._view.pause(waiting)
        return stop_of(self._view, self._sources.taken, self._policy_failure)

    def _client_calls(self) -> ClientCalls:
        options = self._options
        return ClientCalls(
            self._runtime,
            self._hooks,
            options.request_store,
            lambda name: self._core.find(name) if self._core is not None else None,
            self._prepared,
            lambda: self._context(self._view.turn),
            self._sources.request_ids,
        )

    def _key(self) -> str | None:
        options = self._options
        return json.dumps(["conversation", options.session_id, options.run_id]) if self._is_named() else None

    def _is_named(self) -> bool:
        return bool(self._options.session_id and self._options.run_id)

    def _claimed_before(self) -> Stop:
        message = f"run {self._options.run_id!r} of session {self._options.session_id!r} was started before"
        return failed_stop(RunFailure(type="run_control", message=message, turn_count=0), retryable=False)

    def _request(self, key: str | None) -> RunRequest:
        options, core = self._options, self._core
        tools: list[Tool[Any]] = [
            LoopClientTool(tool, self._assembled, options.run_id)
            if tool.is_clients
            else ExecutorTool(
                tool,
                core,
                self._call_context,
                self._prepared,
                self._sources.returned,
                self._sources.asked,
                lambda tool, given: sent_to_client(tool, self._assembled, options.run_id, given),
            )
            for tool in options.offered
            if core is not None and tool.name in self._visible
        ]
        prompt, history = self._opening()
        return RunRequest(
            agent=Agent(self._agent_id, self._model, tools=tools, max_steps=options.max_turns),
            prompt=prompt,
            thread=MAIN_THREAD,
            key=key,
            history=history or None,
            context={"run_id": options.run_id, "session_id": options.session_id},
            budget=Budget.unlimited(),
            stream=False,
            stop_rule=self._stop_rule(),
            ask_caller=self._go_on if options.should_continue is not None else None,
            on_turn=self._begun,
            consult=self._gate.consult if core is not None else None,
            consult_unfit=self._gate.unfit if options.mediates else None,
            announce_requests=False,
        )

    async def _look_at_tools(self) -> None:
        """Which of the declared tools are there in this run; what is not is refused like what does not exist."""
        found = await visible_tools(self._options.declarations.accepted, self._context(0), self._hooks)
        self._visible = frozenset(found.tools)
        if found.hidden:
            self._metadata["hidden_tools"] = dict(found.hidden)
        if found.diagnostics:
            self._metadata["tool_policy_diagnostics"] = list(found.diagnostics)

    async def _at_natural_end(self) -> tuple[Message, ...]:
        """Rules may want more before a run ends by itself: the model is told, and gets another turn."""
        if self._stop_rule() != "natural":
            return ()
        await self._teller.catch_up()
        blocked = self._view.gates.check_completion()
        if blocked is None:
            return ()
        event = CompletionBlocked(
            turn=self._view.turn,
            rule_id=blocked.rule_id,
            reason=blocked.reason,
            counters=dict(blocked.counters),
        )
        await self._teller.record(event)
        return (transcript.text("user", blocked.reason),)

    def _opening(self) -> tuple[tuple[Text | Image | File, ...], list[Any]]:
        """The message the log begins with, and what was said before it."""
        items = items_of(self._messages)
        if items and isinstance(items[-1], UserItem):
            return items[-1].parts, items[:-1]
        return (Text(""),), items

    def _begun(self, turn_id: str, agent_id: str) -> None:
        self._turn_id = turn_id

    def _stop_rule(self) -> StopRule:
        options = self._options
        if options.should_continue is not None:
            return "caller"
        return "natural" if options.mediates and not options.one_turn else "single"

    async def _go_on(self) -> bool:
        """Ask the host whether to go on. One that cannot say stops the run: going on unasked would be worse."""
        await self._teller.catch_up()
        ask = self._options.should_continue
        assert ask is not None
        try:
            return bool(await at_once(ask, self._so_far(), self._context(self._view.turn)))
        except Exception as error:
            self._policy_failure = RunFailure(
                type="should_continue_exception", message=describe(error), turn_count=self._view.turn
            )
            await cancel_turn(self._runtime, self._turn_id, requested_by="should_continue")
            return False

    # --- what the adapters ask for ------------------------------------------------------------------------------------

    async def _transcript(self) -> list[dict[str, Any]]:
        await self._teller.catch_up()
        return [message.to_wire() for message in self._view.messages]

    def _context(self, turn: int) -> dict[str, Any]:
        context = {**self._options.context, "turn": turn}
        if self._principal is not None:
            context.setdefault("principal", self._principal)
        return context

    async def _call_context(self, ctx: RunContext[Any]) -> dict[str, Any]:
        await self._teller.catch_up()
        context = {**self._context(self._view.turn), "cancelled": ctx.cancelled}
        if ctx.approval is not None:
            context["approval"] = ctx.approval
        return context if ctx.deadline is None else {**context, "deadline": ctx.deadline}

    async def _prepared(
        self, tool: RuntimeToolDeclaration, call_id: str, arguments: dict[str, Any]
    ) -> ToolCall | dict[str, Any]:
        """The call with everybody's parameters in it, or why it is not made."""
        call = self._assembled(tool, call_id, arguments)
        if isinstance(call, dict) and call["metadata"]["error_type"] == "capability_denied":
            await self._tell_denied(tool, call_id, self._principal)
        return call

    def _assembled(
        self, tool: RuntimeToolDeclaration, call_id: str, arguments: dict[str, Any]
    ) -> ToolCall | dict[str, Any]:
        assert self._core is not None
        context, request, principal = self._options.context, self._options.request, self._principal
        client = context.get("client_context")
        return self._core.prepared(
            tool,
            self._called_as(call_id) or tool.name,
            arguments,
            call_id,
            contexts={
                "context": context,
                "client_context": client if isinstance(client, Mapping) else None,
                "caller_context": principal.caller_context if principal is not None else None,
                "runtime_context": request.runtime_context if request is not None else None,
            },
            principal=principal,
        )

    async def _tell_denied(
        self, tool: RuntimeToolDeclaration, call_id: str, principal: ExecutionPrincipal | None
    ) -> None:
        payload = {
            "tool_name": tool.name,
            "tool_call_id": call_id,
            "required_capability": tool.required_capability,
            "principal": principal.to_safe_metadata() if principal is not None else None,
        }
        for error in await self._hooks.observe(DENIED_HOOK, payload):
            await self._teller.record(ObserverFailed(surface=DENIED_HOOK, error=describe(error)))

    def _declared(self, name: str) -> RuntimeToolDeclaration | None:
        return self._core.find(name) if self._core is not None else None

    def _canonical(self, name: str) -> str:
        tool = self._declared(name)
        return tool.name if tool is not None else name

    def _called_as(self, call_id: str) -> str:
        calls = (call for taken in self._sources.taken.values() for call in taken.calls)
        return next((call.called_as for call in calls if call.call_id == call_id), "")

    def _known(self) -> Sources:
        accepted, core = self._options.declarations.accepted, self._core
        return Sources(
            declarations={tool.name: core.contract(tool) for tool in accepted} if core is not None else {},
            providers={tool.name: tool.source for tool in accepted},
            mediation_off=not self._options.mediates,
            rules=self._options.tool_call_rules,
        )

    def _used_ids(self) -> set[str]:
        return {message.tool_call_id for message in self._messages if message.tool_call_id is not None}

    # --- results ----------------------------------------------------------------------------------------------------

    def _result(self, stop: Stop, audits: list[ToolAudit]) -> ConversationResult:
        return conversation_result(self._view, stop, audits, self._sources.declarations, self._metadata)

    def _so_far(self) -> dict[str, Any]:
        """What `should_continue` decides from."""
        view, declarations = self._view, self._sources.declarations
        messages = tuple(safe_message(message, declarations) for message in view.messages)
        return {
            "messages": [message.to_wire() for message in messages],
            "tool_execution_results": [
                *view.own_executions,
                *(execution(done, declarations) for done in view.executed),
            ],
            "turn_count": view.turn,
            "final_content": final_content(messages),
            "usage": dict(view.usage),
            "request_metadata": dict(view.request_metadata),
        }

    async def _audits(self) -> list[ToolAudit]:
        view = self._view
        paused = [
            Executed(
                Asked(each.call_id, each.name, each.name, each.parameters),
                each.turn,
                {**failed(each.name, "waits for approval", APPROVAL), "status": APPROVAL},
                "paused",
            )
            for each in view.approvals
        ]
        return [await self._audit(done) for done in (*view.executed, *paused)]

    async def _audit(self, done: Executed) -> ToolAudit:
        declaration = self._sources.declarations.get(done.name)
        adjusted = None
        if self._hooks.has(AUDIT_HOOK):
            safe = audited_parameters(done.call.parameters, declaration)
            raw = dict(done.call.parameters or {})
            try:
                adjusted = await self._hooks.value(
                    AUDIT_HOOK, safe, raw, done.name, declaration, self._context(done.turn)
                )
            except Exception as error:  # the default stands
                await self._teller.record(ObserverFailed(surface=AUDIT_HOOK, error=describe(error)))
                await self._teller.catch_up()
        return audit_entry(
            turn_count=done.turn,
            tool_name=done.name,
            tool_call_id=done.call.call_id,
            tool_source=self._sources.providers.get(done.name),
            parameters=done.call.parameters,
            result=done.result,
            declaration=declaration,
            adjusted=adjusted,
        )

    # --- after the last turn ----------------------------------------------------------------------------------------

    async def _persist(self, result: ConversationResult) -> None:
        persister = self._options.persister
        if persister is None:
            return
        try:
            kept = await in_its_place(persister.persist, result.messages, self._original(), result)
        except Exception as error:
            await self._teller.record(TranscriptPersistFailed(surface="transcript_persister", error=describe(error)))
            await self._teller.catch_up()
            return
        if isinstance(kept, str) and kept:
            self._metadata["transcript_id"] = kept

    def _original(self) -> ConversationRequest:
        """The request, as it was given or as it would have been, with every tool that a model could call."""
        options, offered = self._options, self._options.declarations.accepted
        if options.request is None:
            return ConversationRequest(messages=self._messages, tools=offered, max_turns=options.max_turns)
        named = {tool.name for tool in options.request.tools}
        more = tuple(tool for tool in offered if tool.name not in named)
        return (
            options.request.model_copy(update={"tools": (*options.request.tools, *more)}) if more else options.request
        )

    async def _let_go(self, held: HeldLock | None) -> None:
        if held is None:
            return
        try:
            await held.release()
        except Exception as error:
            await self._teller.record(TranscriptLockReleaseFailed(surface="transcript_lock", error=describe(error)))
            await self._teller.catch_up()

    async def _end(self, stop: Stop, audits: list[ToolAudit]) -> ConversationResult:
        view = self._view
        closed = TranscriptClosed(
            turn=view.turn,
            message_count=len(view.messages),
            tool_results=len(view.executed),
            run_outcome=stop.outcome,
        )
        await self._teller.record(closed)
        await self._teller.catch_up()
        return self._result(stop, audits)
