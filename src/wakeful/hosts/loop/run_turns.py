"""The turns of one run, as the one runner runs them: the host's turn runner is their model, its executor their tools.

What a host asks for is put into a request of ours (`_request`): budget, tools with what is hidden, the gate's
consultation, and who is asked whether there is another turn. What a client is to run becomes a request, and the run
pauses on it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wakeful.contracts.content import File, Image, Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import MAIN_THREAD
from wakeful.contracts.events import (
    CompletionBlocked,
    StopRule,
)
from wakeful.contracts.outcomes import RunFailure
from wakeful.contracts.transcript import Message
from wakeful.engine.agent import Agent
from wakeful.engine.run_request import Engine, HostTerms, RunRequest
from wakeful.hosts.host_calls import at_once
from wakeful.hosts.loop.audit import PrivateAudit
from wakeful.hosts.loop.budgets import RunBudgets
from wakeful.hosts.loop.conversation_request import ConversationRequest
from wakeful.hosts.loop.host_gate import Around, LoopGate
from wakeful.hosts.loop.loop_events import HostIds, Teller, describe
from wakeful.hosts.loop.options import LoopOptions, LoopSettings
from wakeful.hosts.loop.result_export import (
    RunStop,
    out_of_budget,
    result_so_far,
    safe_message,
    stop_of,
)
from wakeful.hosts.loop.run_calls import Sources
from wakeful.hosts.loop.run_tools import ClientCalls, ExecutorTool, HostTools, LoopClientTool, Preparer, sent_to_client
from wakeful.hosts.loop.transcript_bounds import Compactor, ResultBounds
from wakeful.hosts.loop.turn_checks import BUDGET, OWN_STOPS, BetweenTurns, exceeded
from wakeful.hosts.loop.turn_runner_model import ProviderTurns, TurnRunnerModel, items_of
from wakeful.hosts.loop.view import LoopView, loops_own
from wakeful.hosts.policies.host_policy import visible_tools
from wakeful.hosts.ports import ToolCall, TurnRunner
from wakeful.hosts.tools.tool_execution import ToolExecutionCore
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.commands.turn_claims import recall
from wakeful.service.commands.turns import give_up_waiting, run_turn
from wakeful.service.hooks import HookRegistry
from wakeful.service.run_result import RunResult
from wakeful.tools.context import RunContext
from wakeful.tools.tool import Tool


@dataclass(slots=True)
class RunGround:
    """What everything of one run rests on."""

    engine: Engine
    hooks: HookRegistry
    options: LoopOptions
    messages: tuple[Message, ...]
    """What the host began with."""
    agent_id: str
    """Whose stream the run is: every run has an agent of its own."""
    sources: Sources
    budgets: RunBudgets
    view: LoopView
    teller: Teller
    metadata: dict[str, Any] = field(default_factory=dict)
    """What the result says beside its fields."""

    @classmethod
    def of(
        cls, engine: Engine, hooks: HookRegistry, options: LoopOptions, messages: tuple[Message, ...]
    ) -> "RunGround":
        """The ground of a run that has not begun."""
        agent_id = engine.ids.new("conversation")
        sources = Sources(
            providers={tool.name: tool.source for tool in options.tools.declarations.accepted},
            mediation_off=not options.tools.mediates,
            rules=options.rules,
        )
        budgets = RunBudgets(options.limits.budgets, options.limits.max_turns if options.limits.is_said else None)
        view = LoopView(messages, sources, budgets, HostIds(options.run_id, options.session_id))
        teller = Teller(engine.store, engine.clock, agent_id, view.take, options.on_event, hooks)
        return cls(engine, hooks, options, messages, agent_id, sources, budgets, view, teller)

    @property
    def request(self) -> ConversationRequest:
        """The request, as it was given or as it would have been, with every tool that a model could call."""
        options, offered = self.options, self.options.tools.declarations.accepted
        if options.request is None:
            return ConversationRequest(messages=self.messages, tools=offered, max_turns=options.limits.max_turns)
        named = {tool.name for tool in options.request.tools}
        more = tuple(tool for tool in offered if tool.name not in named)
        return (
            options.request.model_copy(update={"tools": (*options.request.tools, *more)}) if more else options.request
        )


class RunTurns:
    """Runs the turns of one run."""

    def __init__(
        self,
        ground: RunGround,
        turn_runner: TurnRunner | None,
        host: LoopSettings,
    ) -> None:
        options, engine, hooks = ground.options, ground.engine, ground.hooks
        tools = options.tools
        self._host = host
        view, sources, teller = ground.view, ground.sources, ground.teller
        self._ground = ground
        self._engine = engine
        self._options = options
        self._view = view
        self._sources = sources
        self._budgets = ground.budgets
        self._teller = teller
        self._core = (
            ToolExecutionCore(tools.declarations.accepted, tools.executor, host.targets, self._keep_private)
            if tools.executor is not None or tools.mediates
            else None
        )
        if self._core is not None:
            sources.declarations = {
                tool.name: self._core.contract(tool) for tool in options.tools.declarations.accepted
            }
        self._tools = Preparer(self._core, options, sources, hooks, teller)
        self._model = TurnRunnerModel(
            turn_runner if turn_runner is not None else self._provider_turns(),
            self._transcript,
            self.context,
            self._tools.canonical,
            sources.taken,
            {message.tool_call_id for message in ground.messages if message.tool_call_id is not None},
            self._at_natural_end,
            host.price,
        )
        truncator = options.tools.truncator
        self._bounded = ResultBounds(truncator, teller, lambda: view.turn, engine.keys).bound
        self.compactor = Compactor(options.transcript.compaction, options.transcript.summarizer, view, sources, teller)
        self._private = PrivateAudit(host.private_audit, teller, lambda: view.turn, lambda: self._tools.principal)
        around = Around(
            *(hooks, view, sources, teller, self._tools.find, self._tools.prepare, self.context),
            self._bounded,
            lambda text: engine.keys().hide_keys(text),
        )
        self._gate = LoopGate(around, host.agent, options.mediator, host.mediator_seconds)
        self._between = BetweenTurns(
            *(options, view, teller, ground.budgets, sources.declarations, self._tools.find),
            self.context,
            self._current_request,
        )
        self._hidden: Mapping[str, str] = {}
        """Declared tools that are not there in this run, and why."""
        self.turn_id = ""
        """Of the turn that the run is, once there is one."""
        self.result: RunResult[Any] | None = None
        """What the turn came to, once it rests."""
        self._policy_failure: RunFailure | None = None

    async def learn_principal(self) -> None:
        """Ask the host for whom the run acts. Raises InvalidValue for no principal."""
        await self._tools.learn_principal()

    async def run(self, key: str | None) -> RunStop:
        """All turns, and why there are no more. Raises KeyReused for a run that was started before."""
        spent = self._budgets.used_up()
        if spent is not None:
            await self._teller.record(exceeded(spent))
            await self._teller.catch_up()
            return out_of_budget(spent.name)
        await self._look_at_tools()
        request = self._request(key)
        result = await run_turn(self._engine, request)
        if result.stop_reason == "cost" and await self._is_open(result):
            # one at rest would wait for ever: nobody else can go on with it
            await cancel_turn(self._engine, result.turn_id, requested_by=BUDGET, reason="budget")
        elif result.waiting_for == "provider":
            result = await give_up_waiting(self._engine, result, request)
        result, waiting = await self._client_calls().ask(result, request)
        await self._teller.catch_up()
        self._view.pause(waiting)
        await self._between.over()
        self.result = await self._as_logged(result)
        return stop_of(self.result, self._view, self._sources.taken, self._policy_failure, OWN_STOPS)

    async def _is_open(self, result: RunResult[Any]) -> bool:
        row = await self._engine.store.turn(result.turn_id)
        return row is not None and row.is_open

    async def _as_logged(self, result: RunResult[Any]) -> RunResult[Any]:
        """The result as it is now: a turn at rest may have been ended since, by the loop or by somebody else."""
        if self._view.terminal is None or result.status == self._view.terminal.status:
            return result
        row = await self._engine.store.turn(result.turn_id)
        assert row is not None, f"{result.turn_id} was run here"
        return await recall(self._engine, row, None)

    def context(self, turn: int) -> dict[str, Any]:
        """The caller's context, as it is handed on in a turn."""
        context = {**self._options.context, "turn": turn}
        if self._tools.principal is not None:
            context.setdefault("principal", self._tools.principal)
        return context

    # --- the request to the runner ------------------------------------------------------------------------------------

    def _client_calls(self) -> ClientCalls:
        options = self._options
        return ClientCalls(
            self._engine,
            self._ground.hooks,
            options.tools.request_store,
            self._tools.find,
            self._tools.prepare,
            lambda: self.context(self._view.turn),
            self._sources.request_ids,
        )

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
            for tool in options.tools.offered
            if core is not None
        ]
        prompt, history = self._opening()
        return RunRequest(
            agent=Agent(
                self._ground.agent_id,
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
            on_turn=self._begun,
            host=HostTerms(
                stop_rule="caller" if options.looks_between_turns else self._stop_rule(),
                ask_caller=self._go_on,
                consult=self._gate.consult if core is not None else None,
                consult_unfit=self._gate.unfit if options.tools.mediates else None,
                announce_requests=False,
            ),
        )

    async def _look_at_tools(self) -> None:
        """Which of the declared tools are there in this run; what is not is refused like what does not exist."""
        found = await visible_tools(
            self._options.tools.declarations.accepted, self.context(0), self._ground.hooks, self._host.agent
        )
        self._hidden = found.hidden
        if found.hidden:
            self._ground.metadata["hidden_tools"] = dict(found.hidden)
        if found.diagnostics:
            self._ground.metadata["tool_policy_diagnostics"] = list(found.diagnostics)

    async def _at_natural_end(self) -> tuple[Message, ...]:
        """Rules may want more before a run ends by itself: the model is told, and gets another turn."""
        if self._stop_rule() != "natural":
            return ()
        await self._teller.catch_up()
        blocked = self._view.calls.gates.check_completion()
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
        items = items_of(self._ground.messages)
        if items and isinstance(items[-1], UserItem):
            return items[-1].parts, items[:-1]
        return (Text(""),), items

    def _begun(self, turn_id: str, agent_id: str) -> None:
        self.turn_id = turn_id

    # --- is there another turn? ---------------------------------------------------------------------------------------

    def _stop_rule(self) -> StopRule:
        options = self._options
        if options.limits.should_continue is not None:
            return "caller"
        return "natural" if options.tools.mediates and not options.limits.one_turn else "single"

    async def _go_on(self) -> bool:
        """After a turn: is there to be another one? The order of the questions is `between_turns`'s."""
        await self._teller.catch_up()
        view, rule = self._view, self._stop_rule()
        if self._options.looks_between_turns:
            found = await self._between.look(polls=rule != "single")
            if found.stopped_by:
                await cancel_turn(
                    *(self._engine, self.turn_id),
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
        ask = self._options.limits.should_continue
        assert ask is not None
        try:
            return bool(
                await at_once(ask, result_so_far(self._view, self._sources.declarations), self.context(self._view.turn))
            )
        except Exception as error:
            self._policy_failure = RunFailure(
                type="should_continue_exception", message=describe(error), turn_count=self._view.turn
            )
            await cancel_turn(self._engine, self.turn_id, requested_by="should_continue")
            return False

    # --- what the adapters ask for ------------------------------------------------------------------------------------

    async def _transcript(self) -> list[dict[str, Any]]:
        await self._teller.catch_up()
        await self.compactor.fold()
        return [message.to_wire() for message in self._view.messages]

    def _provider_turns(self) -> Callable[..., Any]:
        adapter = self._options.provider.adapter
        assert adapter is not None, "somebody has to run the turns"

        def tools() -> list[dict[str, Any]]:
            offered = (tool for tool in self._options.tools.offered if tool.name not in self._hidden)
            return [
                {**tool.model_dump(mode="json", exclude_none=True), "parameters": tool.visible_schema}
                for tool in offered
            ]

        return ProviderTurns(adapter, self._options, self._budgets, self._teller, tools).run

    def _current_request(self) -> ConversationRequest:
        """The request around the transcript as it is now, for whoever looks on."""
        messages = (safe_message(message, self._sources.declarations) for message in self._view.messages)
        return self._ground.request.with_messages(messages)

    async def _keep_private(self, call: ToolCall, returned: Any) -> None:
        await self._private.keep(call, returned)

    async def _call_context(self, ctx: RunContext[Any]) -> dict[str, Any]:
        await self._teller.catch_up()
        context = {**self.context(self._view.turn), "cancelled": ctx.cancelled}
        if ctx.approval is not None:
            context["approval"] = ctx.approval
        deadlines = [each for each in (ctx.deadline, self._budgets.deadline) if each is not None]
        return {**context, "deadline": min(deadlines)} if deadlines else context
