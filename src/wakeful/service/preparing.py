"""Taking a turn up: from its row and its log to work that can be run, and the facts it is taken up with."""

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from pydantic_core import to_jsonable_python

from wakeful.agents.context_facts import resolved
from wakeful.agents.definition import Agent
from wakeful.agents.folding import Folded, fold, predecessor, window_of
from wakeful.agents.known_facts import KnownFacts
from wakeful.agents.output import AnswerRejected as DoesNotFit
from wakeful.agents.recovery import missing_tools, recovered
from wakeful.agents.runner import TurnRunner
from wakeful.agents.work import CheckAnswer, TurnWork
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.approvals import Approval, Decided
from wakeful.contracts.content import BlobRef, Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import ToolMissing
from wakeful.contracts.events import (
    AnswerAccepted,
    AnswerRejected,
    MessageAdmitted,
    ToolCatalogResolved,
    TurnConfigChanged,
    TurnStarted,
    TurnSuspended,
)
from wakeful.contracts.tools import Principal
from wakeful.decisions.conversation_export import turn_facts
from wakeful.decisions.secret_values import SecretValues, keys_only
from wakeful.mediation.consulting import Consulting
from wakeful.mediation.gate import GateParts
from wakeful.mediation.policing import TurnPolicy
from wakeful.ports import Claim, Model, Store, TurnRow
from wakeful.service.admission import allowed, check_deps
from wakeful.service.approvals import Outcome, decide
from wakeful.service.phase_models import models_of
from wakeful.service.requests import RunRequest, Runtime
from wakeful.service.toolbelt import Belt, toolbelt
from wakeful.tools.context import RunContext

MAX_INLINE_VALUE = 16_000
"""An answer longer than this is not written down a second time: its text is in the log already."""


async def prepare(
    runtime: Runtime, row: TurnRow, claim: Claim, request: RunRequest, stack: AsyncExitStack
) -> tuple[TurnWork, Folded]:
    """The turn, ready to be run. What was opened for it stays open until the stack is left."""
    store, agent = runtime.store, request.agent
    thread = await store.turns_of_thread(row.agent_id, row.thread_id)
    # Until a turn has begun its row names itself alone; its conversation rests on the thread, from where the turn
    # before it began to read, or from the newest summary on.
    before = predecessor(row, thread)
    known_from = min(turn.first_seq for turn in thread) if before is None else before.window_from
    window_from = row.window_from if row.turn_index else known_from
    recorded = await store.read(row.agent_id, after=window_from - 1, thread_id=row.thread_id)
    if not row.turn_index:
        window_from = window_of(row, thread, recorded)
        recorded = [entry for entry in recorded if entry.seq >= window_from]
    row = row._replace(window_from=window_from)
    folded = await fold(store, row, recorded)
    claim.seen = max(claim.seen, folded.last_seq)
    of_turn = turn_facts(recorded, row.turn_id)
    admitted = next(entry.fact.event for entry in of_turn if isinstance(entry.fact.event, MessageAdmitted))
    context = admitted.context
    principal = _principal(request, admitted.principal)
    deps = request.deps
    if deps is None and agent.deps is not None:
        deps = agent.deps(context)
        if inspect.isawaitable(deps):
            deps = await deps
    check_deps(agent, deps, f"turn {row.turn_id}")
    now = runtime.clock.now() / 1_000_000
    belt = await toolbelt(agent, await store.rules(agent.name), now, runtime.surroundings, stack)
    config = await _config(request, row, deps, context, principal, folded, belt)
    models, planner, summariser, window = models_of(runtime, agent)
    await runtime.pricing.ready([*models, *planner, *summariser])
    config = config.changed(context_window=window)
    work = TurnWork(
        store=store,
        claim=claim,
        row=row,
        state=folded.state,
        config=config,
        models=models,
        planner=planner,
        summariser=summariser,
        tools=belt.tools,
        catalog=belt.catalog,
        emit_mcp_progress=agent.emit_mcp_progress,
        clock=runtime.clock,
        ids=runtime.ids,
        jitter=runtime.jitter,
        call_ids=folded.call_ids,
        known=KnownFacts(row.agent_id, of_turn, store.reader(row.agent_id, row.turn_id)),
        deps=deps,
        context=context,
        principal=principal,
        stream=_streams(request),
        watcher=request.watcher,
        check_answer=_answer_check(agent, config.output_retries) if agent.output_schema is not None else None,
        ask_caller=request.ask_caller,
        pricing=runtime.pricing,
        approver=request.approver,
        decide_action=_decider(runtime),
    )

    def keys() -> SecretValues:
        return keys_only(runtime.surroundings.secrets() | {store.secret.hex()})

    work.gate = GateParts(
        TurnPolicy(lambda: work.state, lambda: config, store.secret),
        locks=runtime.locks,
        secret=store.secret,
        new_id=runtime.ids.new,
        now=lambda: runtime.clock.now() / 1_000_000,
        # A store that is gone with the process, and nobody to ask: no answer can ever come.
        has_person=request.approver is not None or store.location != ":memory:",
        expiry_seconds=agent.approval_expiry,
        client_seconds=agent.approval_expiry,
        keep=_safe_keeping(store, keys),
        fetch=store.get_blob,
        agent=agent.name,
        thread=row.thread_id,
        turn_id=row.turn_id,
        context=context,
        principal=principal,
        keys=keys,
        consult_unfit=request.consult_unfit,
    )
    work.recatalog = _recataloger(runtime, work, belt)
    _with_hooks(runtime, request, work)
    return work, folded


def _with_hooks(runtime: Runtime, request: RunRequest, work: TurnWork) -> None:
    """Who is heard about the calls of this turn. Where nobody is, nothing waits."""
    gate = work.gate
    hooks = Consulting((*runtime.hooks, *request.agent.hooks, *request.hooks), gate.keep, gate.fetch)
    hooks.parts = gate
    if hooks.has("pre_tool_use"):
        gate.consult = (hooks.before,)
    if request.consult is not None:
        gate.consult = (*gate.consult, request.consult)
    if hooks.has("permission_request"):
        gate.consult_on_ask = hooks.asked
    if hooks.has("post_tool_use", "post_tool_failure"):
        work.after_call = hooks.after


def _safe_keeping(store: Store, keys: Callable[[], SecretValues]) -> Callable[[bytes, str], Awaitable[BlobRef]]:
    """Keeps what people, clients and hooks gave; no key of the runtime's own is in it."""

    async def keep(data: bytes, media_type: str) -> BlobRef:
        return await store.put_blob(keys().hide_bytes(data), media_type)

    return keep


def _decider(runtime: Runtime) -> Callable[[Approval, Decided, str], Awaitable[Outcome]]:
    async def write(record: Approval, decided: Decided, by: str) -> Outcome:
        return await decide(runtime, record.id, decided, by=by)

    return write


async def _config(
    request: RunRequest,
    row: TurnRow,
    deps: Any,
    context: Mapping[str, Any],
    principal: Principal | None,
    folded: Folded,
    belt: Belt,
) -> TurnConfig:
    """What holds for the turn: what it was begun with, and for tools and model what the code says today."""
    agent, before = request.agent, folded.state.config
    if before is not None and not isinstance(agent.instructions, str):
        instructions = before.instructions  # they were worked out when the turn began
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
    return TurnConfig(
        agent_name=agent.name,
        model_ref=_ref(agent.model),
        fallbacks=tuple(_ref(choice) for choice in agent.fallbacks),
        instructions=instructions,
        tools=belt.offered,
        policy=belt.policy,
        profile=agent.profile or "chat",
        workspace=str(agent.workspace) if agent.workspace is not None else None,
        injected_tool_args=dict(agent.injected_tool_args),
        sandbox=agent.sandbox.as_dict(),
        settings={name: value for name, value in agent.settings.items() if name != "stream"},
        output_schema=agent.output_schema,
        emit_mcp_progress=agent.emit_mcp_progress,
        planning_enabled=agent.planning_enabled,
        planning_model=agent.planning_model,
        planning_instructions=agent.planning_instructions,
        budget_awareness=agent.budget_awareness,
        allow_parallel_subagents=agent.allow_parallel_subagents,
        max_parallel_subagents=agent.max_parallel_subagents,
        subtasks=agent.subtasks,
        collections=agent.collections,
        compaction=agent.compaction,
    )


def _streams(request: RunRequest) -> bool:
    """Replies are streamed unless the caller or the agent's settings say no; the facts are the same."""
    return request.stream and request.agent.settings.get("stream", True) is not False


def _ref(choice: str | Model) -> str:
    return choice if isinstance(choice, str) else choice.ref


async def opening(
    runtime: Runtime, request: RunRequest, work: TurnWork, folded: Folded, runner: TurnRunner
) -> list[Fact]:
    """The facts a turn is taken up with: its beginning, or its recovery."""
    store, state, config = runtime.store, work.state, work.config
    encoded = config.model_dump_json().encode()
    digest = "sha256:" + hashlib.sha256(encoded).hexdigest()
    if folded.started is None:
        ref = await store.put_blob(encoded, "application/json")
        state.configs = {**state.configs, digest: config}
        place = await _place(store, work.row)
        return [*_begun(runtime, request, work, place, ref), *await _cataloged(work)]
    missing = missing_tools(work)
    if missing:
        await _suspend(work, missing)
    before = folded.state.config
    facts = await recovered(work, runner.steps)
    catalogued = await _cataloged(work)
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
        facts[2:2] = catalogued
    else:
        facts[1:1] = catalogued
    return facts


def _recataloger(runtime: Runtime, work: TurnWork, belt: Belt) -> Callable[[], Awaitable[list[Fact]]]:
    async def again() -> list[Fact]:
        now = runtime.clock.now() / 1_000_000
        work.catalog = belt.catalog_with(await runtime.store.rules(work.row.agent_name), now)
        return await _cataloged(work, "standing_answer")

    return again


async def _cataloged(work: TurnWork, reason: str = "turn_resumed") -> list[Fact]:
    """The turn's tools as a fact: once, and again when they changed."""
    catalog = work.catalog
    if not catalog.entries:
        return []
    before = [entry.fact.event for entry in work.known() if isinstance(entry.fact.event, ToolCatalogResolved)]
    ref = await work.store.put_blob(catalog.model_dump_json(exclude_defaults=True).encode(), "application/json")
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


async def _place(store: Store, row: TurnRow) -> int:
    """The turn's number in its thread, from 1."""
    thread = await store.turns_of_thread(row.agent_id, row.thread_id)
    return 1 + sum(turn.first_seq < row.first_seq for turn in thread)


def _begun(runtime: Runtime, request: RunRequest, work: TurnWork, place: int, config_ref: BlobRef) -> list[Fact]:
    agent, config = request.agent, work.config
    messages = [entry.fact.event for entry in work.known() if isinstance(entry.fact.event, MessageAdmitted)]
    started = TurnStarted(
        turn_index=place,
        message_ids=tuple(message.message_id for message in messages),
        agent_name=agent.name,
        config_ref=config_ref,
        model_ref=config.model_ref,
        fallbacks=config.fallbacks,
        limits=messages[0].limits or allowed(runtime, request),
        stop_rule=request.stop_rule,
        structured=config.output_schema is not None,
        window_from=work.row.window_from,
        context=dict(work.context),
        principal=messages[0].principal,
        stream=_streams(request),
    )
    return [work.fact(started), work.fact(resolved(work, config_ref.digest))]


async def _suspend(work: TurnWork, missing: list[str]) -> None:
    """Nothing is settled and nothing is lost: the turn waits, and says for what."""
    suspended = work.state.suspended_for
    if suspended is None or suspended.waiting_for != tuple(missing):
        event = TurnSuspended(reason="tool_missing", waiting_for=tuple(missing))
        await work.store.append(work.claim, [work.fact(event)], barrier=True)
    names = ", ".join(missing)
    raise ToolMissing(
        f"turn {work.row.turn_id} of agent {work.row.agent_name!r} waits for {names}: it was cut off inside "
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
