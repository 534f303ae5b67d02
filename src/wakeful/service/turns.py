"""Running a turn for somebody: admit, claim, run, report.

One path for every entrance. A key makes it repeatable: absent, the turn starts; unfinished, it is taken up where it
was; finished, the stored result comes back for free. The same program, run again, is the recovery procedure.
"""

import hashlib
import inspect
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from wakeful.agents.definition import Agent
from wakeful.agents.folding import Folded, fold
from wakeful.agents.history import items_from
from wakeful.agents.known_facts import KnownFacts
from wakeful.agents.output import AnswerRejected as DoesNotFit
from wakeful.agents.recovery import missing_tools, recovered
from wakeful.agents.runner import TurnRunner
from wakeful.agents.watching import Watcher
from wakeful.agents.work import CheckAnswer, TurnWork
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.budgets import Budget
from wakeful.contracts.content import File, Image, Prompt, Text, parts_of
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import (
    AgentBusy,
    AgentMissing,
    DepsMissing,
    InvalidValue,
    KeyReused,
    ToolMissing,
    TurnNotFound,
)
from wakeful.contracts.events import (
    AnswerAccepted,
    AnswerRejected,
    ContextItem,
    ContextResolved,
    HistoryImported,
    MessageAdmitted,
    SessionStarted,
    StopRule,
    TurnConfigChanged,
    TurnInterruptRequested,
    TurnStarted,
    TurnSuspended,
)
from wakeful.contracts.tools import PREVIEW_CHARS, Principal
from wakeful.decisions.conversation_export import turn_facts
from wakeful.mediation.offloading import offload
from wakeful.ports import Clock, Ids, Model, Store, TurnRow
from wakeful.service.reports import report
from wakeful.service.results import RunResult
from wakeful.tools.context import RunContext
from wakeful.tools.results import clean

MAX_INLINE_VALUE = 16_000
MAX_INLINE_HISTORY = 40_000
ResolveModel: TypeAlias = Callable[[str | Model], Model]


@dataclass(slots=True, frozen=True)
class Runtime:
    """What turns are run with, whoever asks."""

    store: Store
    clock: Clock
    ids: Ids
    jitter: Callable[[], float]
    resolve_model: ResolveModel
    linger: Callable[[Coroutine[Any, Any, None]], None]
    """Keeps the store open for work that outlives its turn (a thread that has yet to answer)."""


@dataclass(slots=True)
class RunRequest:
    """What somebody asks for."""

    agent: Agent[Any, Any]
    prompt: Prompt
    deps: Any = None
    context: Mapping[str, Any] = field(default_factory=dict)
    principal: Principal | None = None
    thread: str | None = None
    key: str | None = None
    history: Any = None
    budget: Budget | None = None
    stream: bool = True
    watcher: Watcher | None = None
    surface: str = "run_once"
    stop_rule: StopRule = "natural"
    ask_caller: Callable[[], Awaitable[bool]] | None = None
    on_turn: Callable[[str, str], None] | None = None
    """Told the turn's and the agent's id as soon as the turn is safe."""


async def run_turn(runtime: Runtime, request: RunRequest) -> RunResult[Any]:
    """Start, resume or recall a turn, and wait until it rests."""
    agent, store = request.agent, runtime.store
    message = UserItem(parts=_storable(parts_of(request.prompt)))
    fingerprint = _fingerprint(agent.name, message)
    known = await store.turn_of_key(request.key) if request.key is not None else None
    if known is None:
        # Whatever can be wrong with the request is wrong before its message is safe: afterwards it is owed an answer.
        _check_deps(agent, request.deps, "a new turn")
        for choice in (agent.model, *agent.fallbacks):
            runtime.resolve_model(choice)
        history = items_from(request.history) if request.history is not None else ()
        known = await _admit(runtime, request, message, fingerprint, history)
    if known.fingerprint != fingerprint:
        raise _reused(request.key or "", known, agent.name, message)
    if request.on_turn is not None:
        request.on_turn(known.turn_id, known.agent_id)
    if not known.is_open:
        return await recall(runtime, known, agent)
    for earlier in await store.turns_of_thread(known.agent_id, known.thread_id):
        # One turn a thread, in the order they were admitted: what was acknowledged first is answered first.
        if earlier.is_open and earlier.first_seq < known.first_seq:
            await _run(runtime, earlier, request)
    return await _run(runtime, known, request)


async def resume_turn(
    runtime: Runtime,
    turn_id: str,
    agents: Iterable[Agent[Any, Any]],
    *,
    deps: Any = None,
    watcher: Watcher | None = None,
    stream: bool = True,
) -> RunResult[Any]:
    """Take a turn up where it was; a finished one is recalled. Code comes from `agents`, never from the store."""
    row = await runtime.store.turn(turn_id)
    if row is None:
        raise TurnNotFound(
            f"there is no turn {turn_id} in {runtime.store.location}",
            f"see which there are: wakeful resume --list --store {runtime.store.location}",
        )
    agent = next((agent for agent in agents if agent.name == row.agent_name), None)
    if not row.is_open:
        return await recall(runtime, row, agent)
    if agent is None:
        given = ", ".join(repr(agent.name) for agent in agents) or "none"
        raise AgentMissing(
            f"turn {turn_id} belongs to agent {row.agent_name!r}, which was not supplied (given: {given})",
            "nothing was changed; pass it in agents=[...], or name its tools with --tools module:name",
        )
    return await _run(runtime, row, RunRequest(agent, "", deps=deps, watcher=watcher, stream=stream))


async def cancel_turn(runtime: Runtime, turn_id: str, *, requested_by: str = "caller") -> bool:
    """Ask a turn to stop. False when it is over already."""
    row = await runtime.store.turn(turn_id)
    if row is None:
        raise TurnNotFound(f"there is no turn {turn_id} in {runtime.store.location}")
    if not row.is_open:
        return False
    event = TurnInterruptRequested(interrupt_id=runtime.ids.new("int"), requested_by=requested_by)
    fact = Fact(event, runtime.clock.now(), row.thread_id, row.turn_id)
    await runtime.store.admit(row.agent_id, [fact])
    return True


async def recall(runtime: Runtime, row: TurnRow, agent: Agent[Any, Any] | None) -> RunResult[Any]:
    """A turn that is over or at rest, from the log, for free."""
    recorded = await runtime.store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    folded = await fold(runtime.store, row, recorded)
    facts = turn_facts(recorded, row.turn_id)
    return await report(runtime.store, row, folded.state, lambda: facts, agent)


# --- admission -----------------------------------------------------------------------------------------------------


async def _admit(
    runtime: Runtime, request: RunRequest, message: UserItem, fingerprint: str, history: Sequence[Any]
) -> TurnRow:
    """Make the message safe. What returns survives a power cut."""
    store, clock, ids = runtime.store, runtime.clock, runtime.ids
    thread = request.thread if request.thread is not None else MAIN_THREAD
    # A run that names no thread opens a session of its own: nothing to contend for.
    agent_id = request.agent.name if request.thread is not None else ids.new(request.agent.name)
    turn_id = ids.new("turn")
    stored = await offload(message, store.put_blob)
    assert isinstance(stored, UserItem)
    admitted = MessageAdmitted(
        message_id=ids.new("msg"),
        item=stored,
        delivery_surface="cli_prompt" if request.surface == "cli_prompt" else "run_once",
        key=request.key,
        fingerprint=fingerprint,
        prompt_preview=message.text[:PREVIEW_CHARS],
        context=_plain_context(request.context),
        principal=request.principal.id if request.principal is not None else None,
        limits=(request.budget or request.agent.budget or Budget()).limits(request.agent.max_steps),
    )
    facts: list[Fact] = []
    if request.thread is None or request.agent.name not in await store.agents():
        started = SessionStarted(agent_name=request.agent.name, temporary=request.thread is None)
        facts.append(Fact(started, clock.now()))
    facts.append(Fact(admitted, clock.now(), thread, turn_id))
    if history:
        facts.append(Fact(await _imported(store, history), clock.now(), thread, turn_id))
    answer = await store.admit(agent_id, facts)
    assert answer is not None
    return answer.turn


def _plain_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """The context as JSON: it has to be there again after a restart, here or elsewhere."""
    try:
        plain: dict[str, Any] = json.loads(to_json(dict(context), inf_nan_mode="strings"))
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        raise InvalidValue(
            "invalid_context", "context", str(error), "give JSON values; what is alive goes to deps="
        ) from None
    if len(to_json(plain)) > MAX_INLINE_VALUE:
        raise InvalidValue(
            "invalid_context",
            "context",
            f"{len(to_json(plain)):,} bytes of JSON are more than {MAX_INLINE_VALUE:,}",
            "give an id, and let tools or the deps factory look the rest up",
        )
    return plain


def _principal(request: RunRequest, stored: str | None) -> Principal | None:
    """Who the turn acts for: whoever it was admitted for, never whoever happens to run it."""
    asked = request.principal
    if stored is None or (asked is not None and asked.id == stored):
        return asked if stored is not None else None
    return Principal(id=stored)


async def _imported(store: Store, items: Sequence[Any]) -> HistoryImported:
    whole = [item.model_dump(mode="json", exclude_none=True) for item in items]
    encoded = to_json(whole)
    if len(encoded) <= MAX_INLINE_HISTORY:
        return HistoryImported(items=tuple(items), count=len(whole))
    return HistoryImported(items_ref=await store.put_blob(encoded, "application/json"), count=len(whole))


def _storable(parts: tuple[Text | Image | File, ...]) -> tuple[Text | Image | File, ...]:
    """Without half surrogate pairs and the like, which come out of terminals and cannot be written down."""
    return tuple(
        part
        if not isinstance(part, Text) or part.text.isascii()
        else part.model_copy(update={"text": clean(part.text)})
        for part in parts
    )


def _fingerprint(agent_name: str, message: UserItem) -> str:
    return hashlib.sha256(agent_name.encode() + b"\0" + to_json(message.parts)).hexdigest()


def _reused(key: str, row: TurnRow, agent_name: str, message: UserItem) -> KeyReused:
    return KeyReused(
        f"key {key!r} belongs to another run:\n"
        f"  then: agent {row.agent_name!r}, prompt {row.prompt_preview!r}\n"
        f"  now:  agent {agent_name!r}, prompt {message.text[:PREVIEW_CHARS]!r}",
        "give this run a key of its own, or repeat the first one exactly",
    )


def _check_deps(agent: Agent[Any, Any], deps: Any, turn: str) -> None:
    if deps is None and agent.deps is None and agent.needs_deps:
        what = agent.needs_deps_for or "its deps_type"
        raise DepsMissing(
            f"agent {agent.name!r} needs deps for {what!r}, and {turn} was given none",
            "pass deps=..., or give the agent a factory: Agent(..., deps=lambda context: ...)",
        )


# --- running -------------------------------------------------------------------------------------------------------


async def _run(runtime: Runtime, row: TurnRow, request: RunRequest) -> RunResult[Any]:
    """Claim the turn and run it until it rests."""
    store = runtime.store
    while True:
        try:
            claim = await store.claim(row.turn_id)
            break
        except AgentBusy as busy:
            if not busy.here:
                raise
            finished = await _wait_for(runtime, row)
            if finished is not None:
                return await recall(runtime, finished, request.agent)
    try:
        row = await store.turn(row.turn_id) or row
        if not row.is_open:
            return await recall(runtime, row, request.agent)
        work, folded = await _prepare(runtime, row, claim, request)
        if work.watcher is not None:
            work.tell(work.known())  # what is known already, before what is new
        runner = TurnRunner(work)
        await runner.run(await _opening(runtime, request, work, folded, runner))
        if runner.steps.calls.is_awaiting_late_answers:
            runtime.linger(runner.steps.calls.late_answers())
        return await report(store, row, work.state, work.known, request.agent)
    finally:
        await store.release(claim)


async def _wait_for(runtime: Runtime, row: TurnRow) -> TurnRow | None:
    """Another task of this process runs the turn: wait until it rests or lets go."""
    watch = runtime.store.watch(row.agent_id)
    try:
        await watch.wait(timeout=0.2)
        now = await runtime.store.turn(row.turn_id)
        return now if now is not None and now.state not in ("admitted", "running") else None
    finally:
        watch.close()


async def _prepare(runtime: Runtime, row: TurnRow, claim: Any, request: RunRequest) -> tuple[TurnWork, Folded]:
    store, agent = runtime.store, request.agent
    thread = await store.turns_of_thread(row.agent_id, row.thread_id)
    # Until a turn has begun its row names itself alone; its conversation rests on the whole thread.
    window_from = row.window_from if row.turn_index else min(turn.first_seq for turn in thread)
    row = row._replace(window_from=window_from)
    recorded = await store.read(row.agent_id, after=window_from - 1, thread_id=row.thread_id)
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
    _check_deps(agent, deps, f"turn {row.turn_id}")
    config = await _config(request, row, deps, context, principal, folded)
    work = TurnWork(
        store=store,
        claim=claim,
        row=row,
        state=folded.state,
        config=config,
        models=[runtime.resolve_model(choice) for choice in (agent.model, *agent.fallbacks)],
        tools={tool.name: tool for tool in agent.tools},
        clock=runtime.clock,
        ids=runtime.ids,
        jitter=runtime.jitter,
        call_ids=folded.call_ids,
        known=KnownFacts(of_turn, store.reader(row.agent_id, row.turn_id)),
        deps=deps,
        context=context,
        principal=principal,
        stream=request.stream,
        watcher=request.watcher,
        check_answer=_answer_check(agent, config.output_retries) if agent.output_schema is not None else None,
        ask_caller=request.ask_caller,
    )
    return work, folded


async def _config(
    request: RunRequest,
    row: TurnRow,
    deps: Any,
    context: Mapping[str, Any],
    principal: Principal | None,
    folded: Folded,
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
        tools=agent.declarations,
        settings=dict(agent.settings),
        output_schema=agent.output_schema,
    )


def _ref(choice: str | Model) -> str:
    return choice if isinstance(choice, str) else choice.ref


async def _opening(
    runtime: Runtime, request: RunRequest, work: TurnWork, folded: Folded, runner: TurnRunner
) -> list[Fact]:
    """The facts a turn is taken up with: its beginning, or its recovery."""
    store, state, config = runtime.store, work.state, work.config
    encoded = config.model_dump_json().encode()
    digest = "sha256:" + hashlib.sha256(encoded).hexdigest()
    if folded.started is None:
        ref = await store.put_blob(encoded, "application/json")
        state.configs = {**state.configs, digest: config}
        return _begun(request, work, folded, ref)
    missing = missing_tools(work)
    if missing:
        await _suspend(work, missing)
    before = folded.state.config
    facts = await recovered(work, runner.steps)
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
    return facts


def _begun(request: RunRequest, work: TurnWork, folded: Folded, config_ref: Any) -> list[Fact]:
    agent, config = request.agent, work.config
    began = time.perf_counter()
    messages = [entry.fact.event for entry in work.known() if isinstance(entry.fact.event, MessageAdmitted)]
    allowed = messages[0].limits or (request.budget or agent.budget or Budget()).limits(agent.max_steps)
    instructions = config.instructions.encode()
    words = len(instructions) + sum(
        len(part.text) for item in work.state.items for part in item.parts if isinstance(part, Text)
    )
    started = TurnStarted(
        turn_index=folded.turns_before + 1,
        message_ids=tuple(message.message_id for message in messages),
        agent_name=agent.name,
        config_ref=config_ref,
        model_ref=config.model_ref,
        fallbacks=config.fallbacks,
        limits=allowed,
        stop_rule=request.stop_rule,
        structured=config.output_schema is not None,
        window_from=work.row.window_from,
        context=dict(work.context),
        principal=messages[0].principal,
        stream=request.stream,
    )
    resolved = ContextResolved(
        context_id=f"ctx_{work.row.turn_id}",
        instruction_refs=(
            (ContextItem(ref=config_ref.digest, kind="instruction", tokens=len(instructions) // 3),)
            if instructions
            else ()
        ),
        history_refs=(
            ContextItem(ref=f"{work.row.agent_id}:{work.row.window_from}", kind="history", tokens=words // 3),
        ),
        tokens_used=words // 3,
        tokens_are_estimate=True,
        context_build_ms=round((time.perf_counter() - began) * 1000, 3),
    )
    return [work.fact(started), work.fact(resolved)]


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
