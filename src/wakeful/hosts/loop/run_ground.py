"""What everything of one run of a host rests on: its engine, its options, its stream in the log and the view of it."""

from dataclasses import dataclass, field
from typing import Any

from wakeful.contracts.transcript import Message
from wakeful.engine.run_request import Engine
from wakeful.hosts.loop.budgets import RunBudgets
from wakeful.hosts.loop.conversation_request import ConversationRequest
from wakeful.hosts.loop.loop_events import HostIds, Teller
from wakeful.hosts.loop.options import LoopOptions
from wakeful.hosts.loop.run_calls import Sources
from wakeful.hosts.loop.view import LoopView
from wakeful.service.hooks import HookRegistry


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
            providers={tool.name: tool.source for tool in options.declarations.accepted},
            mediation_off=not options.mediates,
            rules=options.tool_call_rules,
        )
        budgets = RunBudgets(options.budgets, options.max_turns if options.has_turn_limit else None)
        view = LoopView(messages, sources, budgets, HostIds(options.run_id, options.session_id))
        teller = Teller(engine.store, engine.clock, agent_id, view.take, options.on_event, hooks)
        return cls(engine, hooks, options, messages, agent_id, sources, budgets, view, teller)

    @property
    def request(self) -> ConversationRequest:
        """The request, as it was given or as it would have been, with every tool that a model could call."""
        options, offered = self.options, self.options.declarations.accepted
        if options.request is None:
            return ConversationRequest(messages=self.messages, tools=offered, max_turns=options.max_turns)
        named = {tool.name for tool in options.request.tools}
        more = tuple(tool for tool in offered if tool.name not in named)
        return (
            options.request.model_copy(update={"tools": (*options.request.tools, *more)}) if more else options.request
        )
