"""Taking a turn up: from its row and its log to work that can be run, and the facts it is taken up with."""

import hashlib
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from pydantic_core import to_jsonable_python

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.budgets import Limits
from wakeful.contracts.content import BlobRef, Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact, Recorded
from wakeful.contracts.errors import ToolMissing
from wakeful.contracts.events import (
    AnswerAccepted,
    AnswerRejected,
    ContextResolved,
    MessageAdmitted,
    ToolCatalogResolved,
    TurnConfigChanged,
    TurnStarted,
    TurnSuspended,
    WarningIssued,
    WorkflowStarted,
)
from wakeful.contracts.tool_catalog import ToolCatalog
from wakeful.contracts.tools import Principal, ToolDeclaration
from wakeful.contracts.workflows import SavedWorkflow, WorkflowGraph, WorkflowRun
from wakeful.decisions.policy.catalog import kept_apart, referring
from wakeful.decisions.prompt import own_instructions
from wakeful.decisions.secret_values import SecretValues
from wakeful.decisions.workflows.children import agent_declaration
from wakeful.engine.admission import allowed, check_deps
from wakeful.engine.agent import Agent
from wakeful.engine.low_limits import LowLimits
from wakeful.engine.output_type import AnswerRejected as DoesNotFit
from wakeful.engine.prepare.agents_inside import Given, agents_among, named_agents, other_agents
from wakeful.engine.prepare.configuration import config_of, window_of
from wakeful.engine.prepare.conversation import Conversation, conversation_of
from wakeful.engine.prepare.file_taint import note_tainted_roots, watching_files
from wakeful.engine.prepare.hooks_inside import HooksOfOthers
from wakeful.engine.prepare.models import RECENT, Routed, Turn, choices_of, routed_models
from wakeful.engine.prepare.phase_models import check_window, phase_models
from wakeful.engine.prepare.prompt import TurnContext, around, gather, prompt_of, resolved, watching_skills
from wakeful.engine.prepare.retrieval import retrieve
from wakeful.engine.prepare.tools import Belt, hooks_about_nothing, idle_compaction, limits_of_nothing, toolbelt
from wakeful.engine.recovery import missing_tools, recovered
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.engine.runner import TurnRunner
from wakeful.engine.settings_left_out import LeftOut
from wakeful.engine.spend_windows import TurnWindows
from wakeful.engine.state_loader import Folded, loaded
from wakeful.engine.turn_facts import KnownFacts
from wakeful.engine.turn_work import (
    Audience,
    CheckAnswer,
    DecideAction,
    ModelTerms,
    People,
    TurnCode,
    TurnPlace,
    TurnWork,
    WorkflowDesk,
)
from wakeful.engine.workflow_registry import EDITOR, WorkflowRegistry, editor_tools, workflow_registry
from wakeful.gate.hooks import TurnHooks
from wakeful.gate.turn_gate import GateParts
from wakeful.gate.turn_policy import TurnPolicy
from wakeful.ports import Claim, Store, TurnRow
from wakeful.tools.context import RunContext
from wakeful.tools.person import ask_person
from wakeful.tools.runtime_tools import AnsweredHere

MAX_NODE_TITLE = 200
NO_EFFECT = "no_effect"
"""The code of warnings about what was given and has no effect."""
MAX_INLINE_VALUE = 16_000
"""An answer longer than this is not written down a second time: its text is in the log already."""


class Prepared(NamedTuple):
    """A turn that can be run, its conversation, what was found for it, whom it may ask, and what to warn of."""

    work: TurnWork
    catalog: ToolCatalog
    """The tools of the turn, as people are shown them."""
    conversation: Conversation
    context: TurnContext
    routed: Routed
    warnings: tuple[str, ...] = ()


async def prepare(
    engine: Engine,
    row: TurnRow,
    claim: Claim,
    request: RunRequest,
    stack: AsyncExitStack,
    decide_action: DecideAction,
) -> Prepared:
    """The turn, ready to be run. What was opened for it stays open until the stack is left.

    `decide_action` records what an approver at hand decides.
    """
    store, agent = engine.store, request.agent
    conversation = await conversation_of(store, row, claim)
    row, folded, of_turn, *_ = conversation
    thread = folded.thread
    admitted = next(entry.fact.event for entry in of_turn if isinstance(entry.fact.event, MessageAdmitted))
    workflow = await _workflow(store, admitted)
    if workflow is not None and any(node.kind == "approval" for node in workflow.graph.nodes):
        agent = _with_person(agent)
    registry = None
    if admitted.editing is not None:
        registry = request.registry or await workflow_registry(engine, agent, request.agents)
        agent = _with_answered_here(agent, editor_tools(EDITOR, registry))
    context = admitted.context
    principal = _principal(request, admitted.principal)
    deps = request.deps
    if deps is None and agent.deps is not None:
        deps = agent.deps(context)
        if inspect.isawaitable(deps):
            deps = await deps
    check_deps(agent, deps, f"turn {row.turn_id}")
    now = engine.clock.now() / 1_000_000

    found = await gather(agent, folded, lambda text: engine.keys().hide_keys(text))
    surroundings = around(engine.surroundings, found)
    belt = await toolbelt(agent, await store.rules(agent.name), now, surroundings, stack, admitted.policy_context)
    limits = admitted.limits or allowed(engine, request)
    config = await _config(request, row, deps, context, principal, folded, belt, found, limits)
    tools = belt.tools
    called_agents = agents_among(tools.values())
    nodes = named_agents(workflow.graph, request.agents, deps) if workflow is not None else {}
    given = Given(deps, context, principal, row.thread_id, row.turn_id)
    others = await other_agents(engine, {**called_agents, **nodes}, given, stack) if called_agents or nodes else {}
    if workflow is not None:
        called = [agent_declaration(node.name) for node in nodes.values()]
        config = config.changed(workflow=workflow, tools=(*config.tools, *called))
        tools = {**tools, **{declaration.name: AnsweredHere(declaration) for declaration in called}}
    planner, summariser = phase_models(engine, agent)
    await engine.pricing.ready([*planner, *summariser])
    spending = [
        (each.agent_name, each.spend_windows) for each in (config, *(other.config for other in others.values()))
    ]
    windows = TurnWindows(store, engine.clock, spending, admitted.principal, engine.owner_windows)
    routed = await _routed(engine, request, claim, config, folded, of_turn, windowed=windows.any)
    models = routed.models
    config = config.changed(context_window=window_of(models[0]) if models else None)
    check_window(agent, models[0] if models else None)
    known = KnownFacts(row.agent_id, of_turn, store.reader(row.agent_id, row.turn_id))
    work = TurnWork(
        place=TurnPlace(store, claim, row, known, thread.call_ids),
        state=folded.state,
        config=config,
        clock=engine.clock,
        terms=ModelTerms(
            engine.jitter,
            engine.pricing,
            windows if windows.any else None,
            LowLimits([*thread.limits, *of_turn]),
            LeftOut(of_turn),
            _streams(request),
        ),
        code=TurnCode(
            models,
            tools,
            others,
            planner,
            summariser,
            deps,
            _desk(registry, admitted.editing) if registry is not None else None,
            _answer_check(agent, config.output_retries) if agent.output_schema is not None else None,
        ),
        people=People(request.approver, decide_action, request.ask_caller),
        audience=Audience(request.watcher),
    )
    work.gate = GateParts(
        TurnPolicy(lambda: work.state, lambda: config, store.secret),
        locks=engine.locks,
        secret=store.secret,
        new_id=engine.ids.new,
        now=lambda: engine.clock.now() / 1_000_000,
        # A store that is gone with the process, and nobody to ask: no answer can ever come.
        has_person=request.approver is not None or store.location != ":memory:",
        expiry_seconds=agent.approval_expiry,
        client_seconds=agent.approval_expiry,
        keep=safe_keeping(store, engine.keys),
        fetch=store.get_blob,
        agent=agent.name,
        thread=row.thread_id,
        turn_id=row.turn_id,
        run_kind="agent" if workflow is None else "workflow",
        context=context,
        principal=principal,
        keys=engine.keys,
        result_bytes=lambda: work.state.limits.result_bytes,
        consult_unfit=request.consult_unfit,
    )
    work.recatalog = _recataloger(engine, work, belt)
    _with_hooks(engine, request, work)
    await note_tainted_roots(work)
    work.after_call = watching_files(work, watching_skills(work, work.after_call))
    idle = [*belt.warnings, *idle_compaction(agent, config.context_window)] if workflow is None else []
    if workflow is None and not others and admitted.policy_context == "library":
        there = [each.tool_name for each in belt.catalog.entries]
        idle += [*hooks_about_nothing(agent, request.hooks, there), *limits_of_nothing(agent, limits.per_tool, there)]
    return Prepared(work, belt.catalog, conversation, found, routed, tuple(idle))


async def _routed(
    engine: Engine,
    request: RunRequest,
    claim: Claim,
    config: TurnConfig,
    folded: Folded,
    of_turn: Sequence[Recorded],
    *,
    windowed: bool,
) -> Routed:
    """The models that this turn may ask."""
    choices = choices_of(engine.resolve_model, request.agent)
    models = [each.model for each in choices if each.model is not None]
    await engine.pricing.ready(models)
    if config.workflow is not None:
        return Routed(tuple(models), ())  # its nodes ask models of their own, or none
    admitted = [entry.fact.event for entry in of_turn if isinstance(entry.fact.event, MessageAdmitted)]
    recent: Sequence[Recorded] = folded.thread.limits
    if any(hasattr(model, "profile") for model in models):  # others have no limits that anybody has told of
        recent = await engine.store.read(claim.agent_id, after=max(0, claim.seen - RECENT))
    turn = Turn(
        claim.turn_id,
        config,
        folded.state.limits if folded.started is not None else admitted[0].limits or allowed(engine, request),
        folded.state.cost,
        [message.item for message in admitted],
        of_turn,
        recent,
        request.model_from,
        windowed,
    )
    return routed_models(engine, choices, turn)


def _with_hooks(engine: Engine, request: RunRequest, work: TurnWork) -> None:
    """Who is heard about the calls of this turn. Where nobody is, nothing waits."""
    gate = work.gate
    hooks = TurnHooks((*engine.hooks, *request.agent.hooks, *request.hooks), gate.keep, gate.fetch)
    hooks.parts = gate
    if hooks.has("pre_tool_use"):
        gate.consult = (hooks.before,)
    if request.consult is not None:
        gate.consult = (*gate.consult, request.consult)
    if hooks.has("permission_request"):
        gate.consult_on_ask = hooks.asked
    if hooks.has("post_tool_use", "post_tool_failure"):
        work.after_call = hooks.after
    if work.code.others:
        HooksOfOthers(work).join()


def safe_keeping(store: Store, keys: Callable[[], SecretValues]) -> Callable[[bytes, str], Awaitable[BlobRef]]:
    """Keeps what people, clients and hooks gave; no key of the runtime's own is in it."""

    async def keep(data: bytes, media_type: str) -> BlobRef:
        return await store.put_blob(keys().hide_bytes(data), media_type)

    return keep


async def _config(
    request: RunRequest,
    row: TurnRow,
    deps: Any,
    context: Mapping[str, Any],
    principal: Principal | None,
    folded: Folded,
    belt: Belt,
    found: TurnContext,
    limits: Limits,
) -> TurnConfig:
    """What holds for the turn: what it was begun with, and for tools and model what the code says today."""
    agent, before = request.agent, folded.state.config
    if before is not None and not isinstance(agent.instructions, str):
        instructions = own_instructions(before)  # they were worked out when the turn began
    elif isinstance(agent.instructions, str):
        instructions = agent.instructions
    else:
        told = agent.instructions(
            RunContext(
                deps,
                context=context,
                principal=principal,
                agent=agent.name,
                thread=row.thread_id,
                turn_id=row.turn_id,
            )
        )
        instructions = await told if inspect.isawaitable(told) else told
    if request.prompt_is_whole:
        return config_of(agent, belt, instructions).changed(skills=found.skills)
    names = [tool.name for tool in belt.offered]
    prompt = prompt_of(agent, found, before, instructions, names, limits.depth)
    return config_of(agent, belt, prompt.text).changed(prompt_blocks=prompt.blocks, skills=found.skills)


def _streams(request: RunRequest) -> bool:
    """Replies are streamed unless the caller or the agent's settings say no; the facts are the same."""
    return request.stream and request.agent.settings.stream is not False


async def opening(engine: Engine, request: RunRequest, prepared: Prepared, runner: TurnRunner) -> list[Fact]:
    """The facts a turn is taken up with: its beginning, or its recovery."""
    work, catalog, conversation, found, routed, warnings = prepared
    folded = conversation.folded
    store, state, config = engine.store, work.state, work.config
    encoded = config.model_dump_json().encode()
    digest = "sha256:" + hashlib.sha256(encoded).hexdigest()
    if folded.started is None:
        ref = await store.put_blob(encoded, "application/json")
        state.configs = {**state.configs, digest: config}
        return [
            *await _begun(engine, request, work, conversation, found, ref),
            *map(work.fact, routed.facts),
            *await _cataloged(work, catalog),
            *_warned(work, warnings),
            *_taken_on(work),
        ]
    missing = missing_tools(work)
    if missing:
        await _suspend(work, missing)
    before = folded.state.config
    facts = await recovered(work, runner.steps)
    catalogued = [*await _cataloged(work, catalog), *_warned(work, warnings)]
    if before is not None and config != before:
        ref = await store.put_blob(encoded, "application/json")
        state.configs = {**state.configs, digest: config}
        changed = TurnConfigChanged(
            config_ref=ref,
            previous=folded.started.config_ref.digest,
            changed=config.changes_from(before),
            model_ref=config.model_ref,
            limits=state.limits,
        )
        facts.insert(1, work.fact(changed))
        facts[2:2] = [*_resolved_again(work, found, before, ref), *catalogued]
    else:
        facts[1:1] = catalogued
    # After what was settled: the decision is about requests to come.
    return [*facts, *map(work.fact, routed.facts)]


async def _workflow(store: Store, admitted: MessageAdmitted) -> WorkflowRun | None:
    ref = admitted.workflow_ref
    return await loaded(store, ref.digest, WorkflowRun.model_validate_json) if ref is not None else None


def _with_person(agent: Agent[Any, Any]) -> Agent[Any, Any]:
    """The agent, able to ask a person: an approval of a workflow is such a question."""
    if any(tool.name == ask_person.name for tool in agent.tools):
        return agent
    return agent.changed(tools=(*agent.tools, *agent.given_sources, ask_person))


def _with_answered_here(agent: Agent[Any, Any], declared: Sequence[ToolDeclaration]) -> Agent[Any, Any]:
    """The agent with tools that the runtime answers, unless it has them from whoever made its belt."""
    there = {tool.name for tool in agent.tools if isinstance(tool, AnsweredHere)}
    added = [AnsweredHere(each) for each in declared if each.name not in there]
    return agent.changed(tools=(*agent.tools, *agent.given_sources, *added)) if added else agent


def _desk(registry: WorkflowRegistry, editing: str | None) -> WorkflowDesk:
    async def keep(graph: WorkflowGraph, key: str) -> SavedWorkflow:
        return await registry.keep_built(graph, editing=editing, key=key)

    return WorkflowDesk(registry.types, keep)


def _taken_on(work: TurnWork) -> list[Fact]:
    """The workflow that the turn runs, as a fact: from there on its nodes are calls."""
    run = work.config.workflow
    if run is None:
        return []
    graph = run.graph
    titles = {node.id: node.title[:MAX_NODE_TITLE] for node in graph.nodes if node.title}
    event = WorkflowStarted(
        name=graph.name, workflow_id=graph.id, revision=run.revision, nodes=len(graph.nodes), titles=titles
    )
    return [work.fact(event)]


def _recataloger(engine: Engine, work: TurnWork, belt: Belt) -> Callable[[], Awaitable[list[Fact]]]:
    async def again() -> list[Fact]:
        now = engine.clock.now() / 1_000_000
        catalog = belt.catalog_with(await engine.store.rules(work.place.row.agent_name), now)
        return await _cataloged(work, catalog, "standing_answer")

    return again


async def _cataloged(work: TurnWork, catalog: ToolCatalog, reason: str = "turn_resumed") -> list[Fact]:
    """The turn's tools as a fact: once, and again when they changed."""
    if not catalog.entries:
        return []
    before = [entry.fact.event for entry in work.place.known() if isinstance(entry.fact.event, ToolCatalogResolved)]
    shown = await _referred(work, catalog)
    ref = await work.place.store.put_blob(shown.model_dump_json(exclude_defaults=True).encode(), "application/json")
    if before and before[-1].catalog_ref.digest == ref.digest:
        return []
    offered = len(catalog.offered)
    event = ToolCatalogResolved(
        revision=len(before) + 1,
        reason=reason if before else "turn_started",
        catalog_ref=ref,
        offered=offered,
        withheld=len(catalog.entries) - offered,
    )
    return [work.fact(event)]


def _warned(work: TurnWork, warnings: Sequence[str]) -> list[Fact]:
    """What was given and has no effect in this turn, as facts: each once."""
    if not warnings:
        return []
    events = (entry.fact.event for entry in work.place.known())
    said = {event.message for event in events if isinstance(event, WarningIssued) and event.code == NO_EFFECT}
    new = [words for words in dict.fromkeys(warnings) if words not in said]
    return [work.fact(WarningIssued(code=NO_EFFECT, message=words)) for words in new]


async def _referred(work: TurnWork, catalog: ToolCatalog) -> ToolCatalog:
    """The catalogue as it is put on record: what is large or private of a tool is kept apart, and referred to."""
    entries, changed = [], False
    for entry in catalog.entries:
        declared = work.config.tool(entry.tool_name)
        apart = kept_apart(declared) if declared is not None else {}
        refs = {
            name: (await work.place.store.put_blob(data, "application/json")).digest for name, data in apart.items()
        }
        entries.append(referring(entry, refs))
        changed = changed or bool(refs)
    return catalog.model_copy(update={"entries": tuple(entries)}) if changed else catalog


def _resolved_again(work: TurnWork, found: TurnContext, before: TurnConfig, config_ref: BlobRef) -> list[Fact]:
    """What the turn rests on, where the code that goes on with it says something else than before."""
    if work.config.instructions == before.instructions:
        return []
    earlier = sum(1 for entry in work.place.known() if isinstance(entry.fact.event, ContextResolved))
    return [work.fact(resolved(work, found, config_ref, revision=earlier + 1, before=before))]


async def _begun(
    engine: Engine,
    request: RunRequest,
    work: TurnWork,
    conversation: Conversation,
    found: TurnContext,
    config_ref: BlobRef,
) -> list[Fact]:
    agent, config = request.agent, work.config
    began = time.perf_counter()
    messages = [entry.fact.event for entry in work.place.known() if isinstance(entry.fact.event, MessageAdmitted)]
    started = TurnStarted(
        turn_index=conversation.turn_index,
        message_ids=tuple(message.message_id for message in messages),
        agent_name=agent.name,
        config_ref=config_ref,
        model_ref=config.model_ref,
        fallbacks=config.fallbacks,
        limits=messages[0].limits or allowed(engine, request),
        stop_rule=request.stop_rule,
        structured=config.output_schema is not None,
        window_from=work.place.row.window_from,
        context=dict(work.gate.context),
        principal=messages[0].principal,
        stream=_streams(request),
    )
    question = "\n".join(message.item.text or message.prompt_preview for message in messages)
    names = messages[0].collections
    knowledge = await retrieve(agent.collections, names, question, lambda text: work.gate.keys().hide_keys(text))
    context = resolved(
        work,
        found,
        config_ref,
        knowledge=knowledge.items,
        knowledge_tokens=knowledge.tokens,
        omitted=knowledge.omissions,
        missing=knowledge.missing,
        took_ms=(time.perf_counter() - began) * 1000,
    )
    said = (started, conversation.checkpoint, context, knowledge.event)
    return [work.fact(event) for event in said if event is not None]


async def _suspend(work: TurnWork, missing: list[str]) -> None:
    """Nothing is settled and nothing is lost: the turn waits, and says for what."""
    suspended = work.state.suspended_for
    if suspended is None or suspended.waiting_for != tuple(missing):
        event = TurnSuspended(reason="tool_missing", waiting_for=tuple(missing))
        await work.place.store.append(work.place.claim, [work.fact(event)], barrier=True)
    row, names = work.place.row, ", ".join(missing)
    raise ToolMissing(
        f"turn {row.turn_id} of agent {row.agent_name!r} waits for {names}: it was cut off inside "
        "a call that needs the tool's code to be settled",
        "nothing was changed; supply the tool in agents=[...] or with --tools module:name, and resume again",
    )


def _answer_check(agent: Agent[Any, Any], retries: int) -> CheckAnswer:
    def check(text: str, rejected: int) -> AnswerAccepted | AnswerRejected:
        try:
            value = agent.parse_output(text)
        except DoesNotFit as error:
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
