"""Taking a turn up: from its row and its log to work that can be run.

    the conversation, and who works in it
    tools      what the agent has, and what its policy leaves of it
    prompt     what the requests say first; with the tools it is the turn's configuration
    models     whom the turn asks
    gate       what its calls pass

Each builder returns a value, and each thing is worked out once. What follows from the agent alone is kept with it.
"""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from pydantic_core import to_jsonable_python

from wakeful.contracts.children import SpawnPreset
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import AnswerAccepted, AnswerRejected, MessageAdmitted
from wakeful.contracts.tools import Principal
from wakeful.contracts.workspaces import USE_WORKSPACE
from wakeful.decisions.memory.readers import EVERYBODY, belongs_to, whose
from wakeful.decisions.prompt import AssembledPrompt
from wakeful.decisions.spawn_terms import Family
from wakeful.decisions.state import TurnState
from wakeful.decisions.workflows.children import agent_declaration
from wakeful.engine.admission import allowed, check_deps
from wakeful.engine.agent import Agent
from wakeful.engine.agent_memory import AgentMemory
from wakeful.engine.low_limits import LowLimits
from wakeful.engine.memory_desk import MemoryDesk
from wakeful.engine.output_type import AnswerMisfit
from wakeful.engine.prepare.agents_inside import RunInputs, agents_among, other_agents
from wakeful.engine.prepare.configuration import stored_config, turn_config
from wakeful.engine.prepare.conversation import conversation_of
from wakeful.engine.prepare.gate import turn_gate
from wakeful.engine.prepare.idle_options import hooks_about_nothing, idle_compaction, limits_of_nothing
from wakeful.engine.prepare.memory import memory_of
from wakeful.engine.prepare.models import ModelChoices, model_choices, turn_models
from wakeful.engine.prepare.prompt import around, gather, instructions_of, turn_prompt
from wakeful.engine.prepare.start_facts import StartRecord, recataloger
from wakeful.engine.prepare.tools import Belt, toolbelt
from wakeful.engine.prepare.work_items import projection_of
from wakeful.engine.prepare.workflows import node_agents, turn_agent
from wakeful.engine.prepare.workspace import BoundAgent, WorkspaceDesk, bind_agent
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.engine.settings_left_out import UnsentSettings
from wakeful.engine.spend_windows import windows_of_turn
from wakeful.engine.turn_facts import KnownFacts
from wakeful.engine.turn_work import (
    Audience,
    CheckAnswer,
    DecideAction,
    ModelTerms,
    People,
    SpawnDesk,
    TurnCode,
    TurnPlace,
    TurnWork,
)
from wakeful.engine.work_items import WorkDesk
from wakeful.ports import Claim, Log, TurnReader, TurnRow
from wakeful.tools.agent_get import AGENT_GET, AgentGetTool
from wakeful.tools.runtime_tools import AnsweredHere
from wakeful.tools.workspaces import DECLARATION as USE_DECLARATION

MAX_INLINE_VALUE = 16_000
"""An answer longer than this is not written down a second time: its text is in the log already."""


class ReadyTurn(NamedTuple):
    """A turn that can be run, and what is to be put on record when it begins or goes on."""

    work: TurnWork
    record: StartRecord


async def prepare(
    engine: Engine,
    row: TurnRow,
    claim: Claim,
    request: RunRequest,
    stack: AsyncExitStack,
    decide_action: DecideAction,
    choices: ModelChoices | None = None,
    facts: Sequence[StoredFact] = (),
) -> ReadyTurn:
    """The turn, ready to be run. What was opened for it stays open until the stack is left.

    `decide_action` records what an approver at hand decides. `choices` are the agent's models, and `facts` those of the
    turn, where they are known already.
    """
    store = engine.store
    rows = request.rows
    conversation = await conversation_of(store, row, claim, facts, rows.turns if rows is not None else None)
    row, folded = conversation.row, conversation.folded
    of_turn = sorted(conversation.of_turn, key=attrgetter("seq"))
    before, admitted = folded.state.config, conversation.messages[0]
    agent, workflow, desk = await turn_agent(engine, request, admitted)
    given = RunInputs(
        await _deps(agent, request.deps, admitted.context, row.turn_id),
        admitted.context,
        _principal(request, admitted.principal),
        row.thread_id,
        row.turn_id,
    )
    limits = admitted.limits or allowed(engine, request)

    bound = BoundAgent(agent)
    if engine.surroundings.wakes:
        bound = await bind_agent(engine, agent, row.agent_id, before, of_turn)
        agent = bound.agent
    home = engine.agent_home(agent.name)
    lives = engine.surroundings.lives
    found = await gather(agent, home, folded, lambda text: engine.keys().hide_keys(text), bound.roots, lives=lives)
    if before is None and agent.work_items and not request.host.prompt_is_whole:
        found = replace(found, work_items=await projection_of(store, agent, home, row.agent_id, engine.clock.now()))
    memory_desk = memory_desk_of(engine, bound, row.agent_id, whose(admitted)) if agent.memory else None
    if before is None and memory_desk is not None and not request.host.prompt_is_whole:
        question = "\n".join(message.item.text or message.prompt_preview for message in conversation.messages)
        recalls = any(message.memory_enabled for message in conversation.messages)
        found = replace(found, memory=await memory_of(store, memory_desk, row.thread_id, question if recalls else None))
    rules, now = await store.rules(agent.name), engine.clock.now() / 1_000_000
    surroundings = around(engine.surroundings, found, bound.roots)
    belt = await toolbelt(agent, rules, now, surroundings, stack, admitted.policy_context)
    instructions = await instructions_of(agent, before, given.around)
    if request.host.prompt_is_whole:
        prompt = AssembledPrompt(instructions, ())
    else:
        prompt = turn_prompt(agent, found, before, instructions, belt, limits.depth)
    config = turn_config(agent, belt, prompt, found.skills)

    tools, inside = belt.tools, agents_among(belt.tools.values())
    nodes = await node_agents(request.workflows, workflow.graph, given.deps) if workflow is not None else {}
    others = await other_agents(engine, {**inside, **nodes}, given, stack) if inside or nodes else {}
    if workflow is not None:
        called = [agent_declaration(node.name) for node in nodes.values()]
        config = config.changed(workflow=workflow, tools=(*config.tools, *called))
        tools = {**tools, **{declaration.name: AnsweredHere(declaration) for declaration in called}}
    spending = [(config.agent_name, config.spend_windows)]
    spending += [(other.config.agent_name, other.config.spend_windows) for other in others.values()]
    windows = windows_of_turn(
        store, engine.clock, spending, admitted.principal, engine.owner_windows, request.host.payers
    )
    if choices is None:
        choices = model_choices(engine.resolve_model, agent)
    routed = await turn_models(
        engine,
        agent,
        choices,
        claim,
        config,
        conversation,
        limits,
        source=request.origin.model_from,
        windowed=windows is not None,
    )
    stored = stored_config(agent, config, routed.window)
    config = stored.config

    known = KnownFacts(row.agent_id, of_turn, _reader(store, row, of_turn), folded.thread.limits)
    place = TurnPlace(store, claim, row, known, folded.thread.call_ids, folded.state)
    of_whom = belongs_to(admitted)
    work_desk = _work_desk(engine, bound, place, lambda: place.state, of_whom) if agent.work_items else None
    for desk_of_turn in (work_desk, memory_desk):
        if desk_of_turn is not None:
            tools = {**tools, **{name: tool for name, tool in desk_of_turn.tools().items() if name in tools}}
    looks = tools.get(AGENT_GET)
    if engine.surroundings.agents is not None and isinstance(looks, AnsweredHere):
        tools = {**tools, AGENT_GET: AgentGetTool(engine.surroundings.agents)}
    workspaces = None
    if config.tool(USE_WORKSPACE) is USE_DECLARATION:
        workspaces = WorkspaceDesk(engine, agent, row.agent_id, surroundings, stack)
        tools = {**tools, USE_WORKSPACE: workspaces.tool()}
    work = TurnWork(
        place=place,
        config=config,
        clock=engine.clock,
        terms=ModelTerms(
            engine.jitter,
            engine.pricing,
            windows,
            LowLimits([*folded.thread.limits, *of_turn]),
            UnsentSettings(of_turn),
            # Replies are streamed unless the caller or the agent's settings say no; the facts are the same.
            stream=request.stream and request.agent.settings.stream is not False,
        ),
        code=TurnCode(
            routed.models,
            tools,
            others,
            choices.planner,
            choices.summariser,
            given.deps,
            desk,
            _answer_check(agent, config.output_retries) if config.output_schema is not None else None,
        ),
        people=People(request.approver, decide_action, request.host.ask_caller),
        audience=Audience(request.watcher, request.seats, row.turn_id),
        workspace_id=bound.workspace_id,
        works_at=bound.place,
        drain=request.drain,
    )
    work.gate, work.after_call, work.tainted_roots = await turn_gate(
        engine,
        request,
        agent,
        place,
        work.code,
        lambda: place.state,
        config,
        context=given.context,
        principal=given.principal,
        desks=[desk for desk in (memory_desk, work_desk, workspaces) if desk is not None],
    )
    if workspaces is not None:
        await workspaces.open(work, bound)
    if agent.spawn is not None:
        work.spawn_desk = await _spawn_desk(engine, agent.spawn, row, request.host.generation)
    if engine.surroundings.wakes:
        waits = rows.waits if rows is not None else await store.open_waits(row.agent_id)
        work.open_waits = {wait.wait_id: wait for wait in waits}
    if engine.surroundings.tasks is not None:
        work.open_tasks = partial(engine.surroundings.tasks.open_tasks, row.agent_id)
    work.recatalog = recataloger(engine, belt)
    warnings = _warnings(request, agent, belt, work, admitted, limits.per_tool)
    return ReadyTurn(work, StartRecord(conversation, found, belt, stored, limits, routed.facts, warnings))


async def _spawn_desk(engine: Engine, preset: SpawnPreset, row: TurnRow, generation: int) -> SpawnDesk | None:
    """Where the turn's agent makes others; None: nobody is there to look after them."""
    board = engine.surroundings.tasks
    if board is None:
        return None
    named = 0
    if preset == "public_named":
        tasks = await engine.store.tasks_of(row.agent_id)
        named = sum(task.child is not None and task.child.preset == "public_named" for task in tasks)
    return SpawnDesk(board, Family(row.agent_id, preset, generation, named=named))


def _work_desk(
    engine: Engine, bound: BoundAgent, place: TurnPlace, state: Callable[[], TurnState], principal: str
) -> WorkDesk:
    return WorkDesk(
        place,
        engine.clock,
        state,
        lambda text: engine.keys().hide_keys(text),
        bound.workspace_id,
        engine.agent_home(bound.agent.name),
        engine.reminder_terms,
        principal,
    )


def memory_desk_of(
    engine: Engine, bound: BoundAgent, agent_id: str, found: Collection[str] | None = EVERYBODY
) -> MemoryDesk:
    """The memory of an agent, as a turn works with it that finds entries of these."""
    return MemoryDesk(
        AgentMemory(engine.store, agent_id, engine.agent_home(bound.agent.name)),
        agent_id,
        bound.workspace_id,
        found,
        lambda text: engine.keys().hide_keys(text),
    )


def _reader(log: Log, row: TurnRow, of_turn: Sequence[StoredFact]) -> TurnReader:
    """Reads the turn's facts again, with the messages that stand before its own stream."""
    read = log.turn_reader(row.agent_id, row.turn_id)
    taken = [entry for entry in of_turn if entry.seq < row.first_seq]
    return _WithTaken(taken, read) if taken else read


@dataclass(frozen=True, slots=True)
class _WithTaken:
    """Reads a turn, with the messages that it took from the queue."""

    taken: Sequence[StoredFact]
    read: TurnReader

    async def __call__(self) -> list[StoredFact]:
        return [*self.taken, *await self.read()]


async def _deps(agent: Agent[Any, Any], given: Any, context: Mapping[str, Any], turn_id: str) -> Any:
    """What the agent's tools and instructions are given: the run's, or what its factory makes of the stored context."""
    deps = given
    if deps is None and agent.deps is not None:
        deps = agent.deps(context)
        if inspect.isawaitable(deps):
            deps = await deps
    check_deps(agent, deps, f"turn {turn_id}")
    return deps


def _warnings(
    request: RunRequest,
    agent: Agent[Any, Any],
    belt: Belt,
    work: TurnWork,
    admitted: MessageAdmitted,
    limited_tools: Mapping[str, int],
) -> list[str]:
    """What was given and has no effect in this turn."""
    config = work.config
    if config.workflow is not None:
        return []
    idle = [*belt.warnings, *idle_compaction(agent, config.context_window)]
    if not work.code.others and admitted.policy_context == "library":
        there = [each.tool_name for each in belt.catalog.entries]
        idle += [*hooks_about_nothing(agent, request.hooks, there), *limits_of_nothing(agent, limited_tools, there)]
    return idle


def _answer_check(agent: Agent[Any, Any], retries: int) -> CheckAnswer:
    def check(text: str, rejected: int) -> AnswerAccepted | AnswerRejected:
        try:
            value = agent.parse_output(text)
        except AnswerMisfit as error:
            words = f"{error}\nAnswer again, with JSON that fits the schema and nothing else."
            return AnswerRejected(
                item=UserItem(parts=(Text(words),), origin="runtime"),
                errors=tuple(str(error).splitlines()[:10]),
                final=rejected >= retries,
            )
        small = len(text) <= MAX_INLINE_VALUE
        return AnswerAccepted(value=to_jsonable_python(value) if small else None)

    return check


def _principal(request: RunRequest, stored: str | None) -> Principal | None:
    """Who the turn acts for: whoever it was admitted for, never whoever happens to run it."""
    asked = request.principal
    if stored is None or (asked is not None and asked.id == stored):
        return asked if stored is not None else None
    return Principal(id=stored)
