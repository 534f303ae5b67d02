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

from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.content import File, Image, Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import MAIN_THREAD
from wakeful.contracts.errors import KeyReused
from wakeful.contracts.events import (
    CompletionBlocked,
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
from wakeful.contracts.transcript import Message
from wakeful.engine.agent import Agent
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.hosts.host_calls import at_once, in_its_place
from wakeful.hosts.loop.audit import Auditor, PrivateAudit
from wakeful.hosts.loop.budgets import RunBudgets
from wakeful.hosts.loop.client_calls import ClientCalls, LoopClientTool, sent_to_client
from wakeful.hosts.loop.compactor import Compactor
from wakeful.hosts.loop.conversation_items import items_of
from wakeful.hosts.loop.conversation_request import ConversationRequest
from wakeful.hosts.loop.conversation_result import ConversationResult
from wakeful.hosts.loop.event_reports import Teller, describe
from wakeful.hosts.loop.execution import ToolExecutionCore
from wakeful.hosts.loop.host_gate import MEDIATOR_SECONDS, Around, LoopGate
from wakeful.hosts.loop.host_policy import visible_tools
from wakeful.hosts.loop.host_tools import ExecutorTool, HostTools, Preparer
from wakeful.hosts.loop.locks import HeldLock, acquire
from wakeful.hosts.loop.loop_events import HostIds
from wakeful.hosts.loop.options import LoopOptions
from wakeful.hosts.loop.provider_turns import ProviderTurns
from wakeful.hosts.loop.results import (
    RunStop,
    contended,
    conversation_result,
    execution,
    failed_stop,
    final_content,
    out_of_budget,
    safe_message,
    stop_of,
)
from wakeful.hosts.loop.tool_calls import ToolCall
from wakeful.hosts.loop.truncation import ResultBounds
from wakeful.hosts.loop.turn_checks import BUDGET, OWN_STOPS, BetweenTurns, exceeded
from wakeful.hosts.loop.turn_runner_model import TurnRunnerModel
from wakeful.hosts.loop.view import LoopView, Sources, loops_own
from wakeful.hosts.ports import ToolExecutor, TurnRunner
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.commands.turns import run_turn
from wakeful.service.hooks import HookRegistry
from wakeful.tools.context import RunContext
from wakeful.tools.function import Tool


class OneRun:
    """Everything of one run, while it lasts."""

    def __init__(
        self,
        engine: Engine,
        hooks: HookRegistry,
        options: LoopOptions,
        messages: tuple[Message, ...],
        turn_runner: TurnRunner | None,
        claimed: set[str],
        targets: Mapping[str, ToolExecutor],
        mediator_seconds: float = MEDIATOR_SECONDS,
        private_audit: Callable[[dict[str, Any]], Any] | None = None,
        price: object | None = None,
    ) -> None:
        self._engine = engine
        self._hooks = hooks
        self._options = options
        self._messages = messages
        self._claimed = claimed
        """Runs that were claimed here: what a store that is gone after its run cannot remember."""
        self._agent_id = engine.ids.new("conversation")
        self._core = (
            ToolExecutionCore(options.declarations.accepted, options.tool_executor, targets, self._keep_private)
            if options.tool_executor is not None or options.mediates
            else None
        )
        self._sources = self._known()
        self._budgets = RunBudgets(options.budgets, options.max_turns if options.has_turn_limit else None)
        self._view = LoopView(messages, self._sources, self._budgets, HostIds(options.run_id, options.session_id))
        self._teller = Teller(engine.store, engine.clock, self._agent_id, self._view, options.on_event, hooks)
        self._tools = Preparer(self._core, options, self._sources, hooks, self._teller)
        self._model = TurnRunnerModel(
            turn_runner if turn_runner is not None else self._provider_turns(),
            self._transcript,
            self._context,
            self._tools.canonical,
            self._sources.taken,
            self._used_ids(),
            self._at_natural_end,
            price,
        )
        truncator = options.tool_result_truncator
        self._bounded = ResultBounds(truncator, self._teller, lambda: self._view.turn, engine.keys).bound
        self._compactor = Compactor(
            options.compaction_policy, options.summarizer, self._view, self._sources, self._teller
        )
        self._private = PrivateAudit(
            private_audit, self._teller, lambda: self._view.turn, lambda: self._tools.principal
        )
        self._auditor = Auditor(hooks, self._view, self._sources, self._teller, self._context)
        around = Around(
            *(hooks, self._view, self._sources, self._teller, self._tools.find, self._tools.prepare, self._context),
            self._bounded,
            lambda text: engine.keys().hide_keys(text),
        )
        self._gate = LoopGate(around, options.pre_tool_mediator, mediator_seconds)
        self._between = BetweenTurns(
            *(options, self._view, self._teller, self._budgets, self._sources.declarations, self._tools.find),
            self._context,
            self._current_request,
        )
        self._hidden: Mapping[str, str] = {}
        """Declared tools that are not there in this run, and why."""
        self._turn_id = ""
        self._policy_failure: RunFailure | None = None
        self._metadata: dict[str, Any] = {}

    async def carry_out(self) -> ConversationResult:
        """The run, whole. Raises InvalidValue when the host's hook names a principal that is none."""
        await self._tools.learn_principal()
        await self._open()
        held = await self._lock()
        if held is None and self._options.lock is not None and self._options.session_id:
            return await self._end(contended(), [])
        try:
            stop = await self._turns()
            await self._teller.catch_up()
            audits = await self._auditor.entries()
            if self._turn_id or stop.budget is not None:
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

    async def _turns(self) -> RunStop:
        key = self._key()
        if key in self._claimed:
            return self._claimed_before()
        if key is not None:
            self._claimed.add(key)
        spent = self._budgets.used_up()
        if spent is not None:
            await self._teller.record(exceeded(spent))
            await self._teller.catch_up()
            return out_of_budget(spent.name)
        await self._look_at_tools()
        request = self._request(key)
        try:
            result = await run_turn(self._engine, request)
        except KeyReused:  # every run has an agent of its own, so the key of another run never fits
            return self._claimed_before()
        row = await self._engine.store.turn(result.turn_id) if result.stop_reason == "cost" else None
        if row is not None and row.is_open:  # one at rest would wait for ever: nobody else can go on with it
            await cancel_turn(self._engine, result.turn_id, requested_by=BUDGET, reason="budget")
        waiting = await self._client_calls().ask(result, request)
        await self._teller.catch_up()
        self._view.pause(waiting)
        await self._between.over()
        return stop_of(self._view, self._sources.taken, self._policy_failure, OWN_STOPS)

    def _client_calls(self) -> ClientCalls:
        options = self._options
        return ClientCalls(
            self._engine,
            self._hooks,
            options.request_store,
            self._tools.find,
            self._tools.prepare,
            lambda: self._context(self._view.turn),
            self._sources.request_ids,
        )

    def _key(self) -> str | None:
        options = self._options
        return json.dumps(["conversation", options.session_id, options.run_id]) if self._is_named() else None

    def _is_named(self) -> bool:
        return bool(self._options.session_id and self._options.run_id)

    def _claimed_before(self) -> RunStop:
        message = f"run {self._options.run_id!r} of session {self._options.session_id!r} was started before"
        return failed_stop(RunFailure(type="run_control", message=message, turn_count=0), retryable=False)

    def _request(self, key: str | None) -> RunRequest:
        options, core = self._options, self._core
        tools: list[Tool[Any]] = [
            LoopClientTool(tool, self._tools.assemble, options.run_id)
            if tool.is_clients
            else ExecutorTool(
                *(tool, core, self._call_context, self._tools.prepare, self._bounded),
                self._sources.returned,
                self._sources.asked,
                lambda tool, given: sent_to_client(tool, self._tools.assemble, options.run_id, given),
            )
            for tool in options.offered
            if core is not None
        ]
        prompt, history = self._opening()
        return RunRequest(
            agent=Agent(
                self._agent_id,
                self._model,
                tools=[HostTools(tools, self._hidden)],
                max_steps=self._budgets.turns_allowed,
                compaction={"enabled": False},  # a loop folds its transcript when its host asks for that
            ),
            prompt=prompt,
            thread=MAIN_THREAD,
            key=key,
            history=history or None,
            context={"run_id": options.run_id, "session_id": options.session_id},
            budget=self._budgets.allowed(),
            stream=False,
            stop_rule="caller" if options.looks_between_turns else self._stop_rule(),
            ask_caller=self._go_on,
            on_turn=self._begun,
            consult=self._gate.consult if core is not None else None,
            consult_unfit=self._gate.unfit if options.mediates else None,
            announce_requests=False,
        )

    async def _look_at_tools(self) -> None:
        """Which of the declared tools are there in this run; what is not is refused like what does not exist."""
        found = await visible_tools(self._options.declarations.accepted, self._context(0), self._hooks)
        self._hidden = found.hidden
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
            rule=dict(blocked.rule),
        )
        await self._teller.record(event)
        return (loops_own(blocked.reason),)

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
        """After a turn: is there to be another one? The order of the questions is `between_turns`'s."""
        await self._teller.catch_up()
        view, rule = self._view, self._stop_rule()
        if self._options.looks_between_turns:
            found = await self._between.look(polls=rule != "single")
            if found.stopped_by:
                await cancel_turn(
                    *(self._engine, self._turn_id),
                    requested_by=found.stopped_by,
                    reason="budget" if found.stopped_by == BUDGET else "user_interrupt",
                )
            if found.stopped_by or found.complete:
                return False
            if found.interjected:
                return True
        taken = self._sources.taken.get(view.turn)
        unfinished = taken is not None and bool(taken.calls or taken.continuation)
        if rule != "caller":
            return rule == "natural" and unfinished
        if unfinished and view.turn >= self._budgets.turns_allowed:
            return True  # the turn limit is looked at before anybody is asked
        return await self._asked()

    async def _asked(self) -> bool:
        """Ask the host whether to go on. One that cannot say stops the run: going on unasked would be worse."""
        ask = self._options.should_continue
        assert ask is not None
        try:
            return bool(await at_once(ask, self._so_far(), self._context(self._view.turn)))
        except Exception as error:
            self._policy_failure = RunFailure(
                type="should_continue_exception", message=describe(error), turn_count=self._view.turn
            )
            await cancel_turn(self._engine, self._turn_id, requested_by="should_continue")
            return False

    # --- what the adapters ask for ------------------------------------------------------------------------------------

    async def _transcript(self) -> list[dict[str, Any]]:
        await self._teller.catch_up()
        await self._compactor.fold()
        return [message.to_wire() for message in self._view.messages]

    def _provider_turns(self) -> Callable[..., Any]:
        adapter = self._options.provider_turn_adapter
        assert adapter is not None, "somebody has to run the turns"

        def tools() -> list[dict[str, Any]]:
            offered = (tool for tool in self._options.offered if tool.name not in self._hidden)
            return [
                {**tool.model_dump(mode="json", exclude_none=True), "parameters": tool.visible_schema}
                for tool in offered
            ]

        return ProviderTurns(adapter, self._options, self._budgets, self._teller, tools).run

    def _current_request(self) -> ConversationRequest:
        """The request around the transcript as it is now, for whoever looks on."""
        messages = (safe_message(message, self._sources.declarations) for message in self._view.messages)
        return self._original().with_messages(messages)

    def _context(self, turn: int) -> dict[str, Any]:
        context = {**self._options.context, "turn": turn}
        if self._tools.principal is not None:
            context.setdefault("principal", self._tools.principal)
        return context

    async def _keep_private(self, call: ToolCall, returned: Any) -> None:
        await self._private.keep(call, returned)

    async def _call_context(self, ctx: RunContext[Any]) -> dict[str, Any]:
        await self._teller.catch_up()
        context = {**self._context(self._view.turn), "cancelled": ctx.cancelled}
        if ctx.approval is not None:
            context["approval"] = ctx.approval
        deadlines = [each for each in (ctx.deadline, self._budgets.deadline) if each is not None]
        return {**context, "deadline": min(deadlines)} if deadlines else context

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

    def _result(self, stop: RunStop, audits: list[ToolAudit]) -> ConversationResult:
        metadata = {**self._metadata, **self._compactor.metadata()}
        return conversation_result(self._view, stop, audits, self._sources.declarations, metadata)

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

    async def _end(self, stop: RunStop, audits: list[ToolAudit]) -> ConversationResult:
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
