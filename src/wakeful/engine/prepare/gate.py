"""The gate of a turn, made ready: its parts, who is heard about its calls, and what is watched after them.

Hooks are heard in this order: the runtime's, the agent's and the run's own; then those of agents that work inside the
turn, each about its own agent's calls and no others. All of them only tighten. After a call, what it did to files and
which skills it opened is told first.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.authority import known_authority
from wakeful.contracts.content import BlobRef
from wakeful.contracts.events import AnyEvent, SkillActivated, ToolResult
from wakeful.contracts.tools import Principal
from wakeful.decisions.levels import Level
from wakeful.decisions.secret_values import SecretValues
from wakeful.decisions.skills import activated
from wakeful.decisions.state import TurnState
from wakeful.engine.agent import Agent
from wakeful.engine.memory_desk import MemoryDesk
from wakeful.engine.prepare.file_taint import FileTaint, tainted_roots
from wakeful.engine.prepare.workspace import WorkspaceDesk
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.engine.turn_facts import KnownFacts
from wakeful.engine.turn_work import TurnCode, TurnPlace
from wakeful.engine.work_items import WorkDesk
from wakeful.gate.call_at_gate import CallAtGate, Consultation
from wakeful.gate.hooks import TurnHooks
from wakeful.gate.turn_gate import AfterCall, Consult, GateParts
from wakeful.gate.turn_policy import TurnPolicy
from wakeful.ports import Blobs, TurnRow


class TurnGate(NamedTuple):
    """What the calls of a turn pass, and who is heard after them."""

    parts: GateParts
    after_call: AfterCall | None
    """None: nobody is asked, and nobody is waited for."""
    tainted_roots: dict[str, str]
    """Folders with files that a conversation with untrusted input wrote, and why."""


async def turn_gate(
    engine: Engine,
    request: RunRequest,
    agent: Agent[Any, Any],
    place: TurnPlace,
    code: TurnCode,
    state: Callable[[], TurnState],
    config: TurnConfig,
    *,
    context: Mapping[str, Any],
    principal: Principal | None,
    desks: Sequence[WorkDesk | MemoryDesk | WorkspaceDesk] = (),
) -> TurnGate:
    """The gate. `state` is the turn's as it is when a call comes."""
    parts = _parts(engine, request, agent, place.row, state, config, context, principal)
    after = _hooks(engine, request, code, state, parts)
    roots = await tainted_roots(place.store, code.tools.values())
    after = await _watching_skills(config, place.known, after)
    for desk in desks:
        after = desk.heard(after)
    if code.others or any(tool.workspace_root is not None for tool in code.tools.values()):
        after = FileTaint(place.store, engine.clock, state, roots).before(after)
    return TurnGate(parts, after, roots)


def _parts(
    engine: Engine,
    request: RunRequest,
    agent: Agent[Any, Any],
    row: TurnRow,
    state: Callable[[], TurnState],
    config: TurnConfig,
    context: Mapping[str, Any],
    principal: Principal | None,
) -> GateParts:
    store, secret = engine.store, engine.store.secret
    return GateParts(
        TurnPolicy(state, lambda: config, secret),
        locks=engine.locks,
        secret=secret,
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
        run_kind="agent" if config.workflow is None else "workflow",
        context=context,
        principal=principal,
        derived_from=lambda: known_authority(state().terms.derived_from),
        keys=engine.keys,
        result_bytes=lambda: state().limits.result_bytes,
        consult_unfit=request.host.consult_unfit,
    )


def safe_keeping(store: Blobs, keys: Callable[[], SecretValues]) -> Callable[[bytes, str], Awaitable[BlobRef]]:
    """Keeps what people, clients and hooks gave; no key of the runtime's own is in it."""

    async def keep(data: bytes, media_type: str) -> BlobRef:
        return await store.put_blob(keys().hide_bytes(data), media_type)

    return keep


def _hooks(
    engine: Engine, request: RunRequest, code: TurnCode, state: Callable[[], TurnState], parts: GateParts
) -> AfterCall | None:
    """Have those heard who are to be, before a call and when a person is asked; returns who is heard after it."""
    after: AfterCall | None = None
    given: Sequence[Any] = (*engine.hooks, *request.agent.hooks, *request.hooks)
    if given:
        hooks = _hooks_of(given, parts)
        if hooks.has("pre_tool_use"):
            parts.consult = (hooks.before,)
        if hooks.has("permission_request"):
            parts.consult_on_ask = hooks.asked
        if hooks.has("post_tool_use", "post_tool_failure"):
            after = hooks.after
    if request.host.consult is not None:
        parts.consult = (*parts.consult, request.host.consult)
    if not code.others:
        return after
    return HooksOfOthers(code, state, parts).join(after)


def _hooks_of(given: Sequence[Any], parts: GateParts) -> TurnHooks:
    hooks = TurnHooks(tuple(given), parts.keep, parts.fetch)
    hooks.parts = parts
    return hooks


class HooksOfOthers:
    """Finds whose call it is, and asks that agent's hooks."""

    def __init__(self, code: TurnCode, state: Callable[[], TurnState], parts: GateParts) -> None:
        self._code = code
        self._state = state
        self._parts = parts
        self._hooks = {
            other.config.agent_name: _hooks_of(other.hooks, parts) for other in code.others.values() if other.hooks
        }

    def join(self, after: AfterCall | None) -> AfterCall | None:
        """Have them heard in this turn, after whoever is heard already; returns who is heard after a call."""
        parts, all_hooks = self._parts, self._hooks.values()
        if any(hooks.has("pre_tool_use") for hooks in all_hooks):
            parts.consult = (*parts.consult, self._before)
        if any(hooks.has("permission_request") for hooks in all_hooks):
            parts.consult_on_ask = self._asked_after(parts.consult_on_ask)
        if any(hooks.has("post_tool_use", "post_tool_failure") for hooks in all_hooks):
            return self._after(after)
        return after

    def _at(self, level: Level) -> TurnHooks | None:
        other = self._code.other_of(level)
        return self._hooks.get(other.config.agent_name) if other is not None else None

    async def _before(self, at: CallAtGate) -> Consultation:
        hooks = self._at(at.call.level)
        return await hooks.before(at) if hooks is not None else Consultation()

    def _asked_after(self, first: Consult | None) -> Consult:
        async def asked(at: CallAtGate) -> Consultation:
            heard = await first(at) if first is not None else Consultation()
            hooks = self._at(at.call.level)
            if hooks is None or any(said.decision == "deny" for said in heard.said):
                return heard
            return heard.and_then(await hooks.asked(at))

        return asked

    def _after(self, first: AfterCall | None) -> AfterCall:
        async def after(at: CallAtGate, events: list[AnyEvent]) -> list[AnyEvent]:
            if first is not None:
                events = await first(at, events)
            call = self._state().tree.calls.get(at.call_id)
            hooks = self._at(call.level) if call is not None else None
            return await hooks.after(at, events) if hooks is not None else events

        return after


async def _watching_skills(config: TurnConfig, known: KnownFacts, after: AfterCall | None) -> AfterCall | None:
    """What is heard after a call, with the skills it activated told beside its result."""
    skills = config.skills
    if not skills:
        return after
    events = (entry.fact.event for entry in await known.all())
    said = {(event.load_reason, event.path) for event in events if isinstance(event, SkillActivated)}

    async def heard(at: CallAtGate, events: list[AnyEvent]) -> list[AnyEvent]:
        last = events[-1]
        if isinstance(last, ToolResult):
            name, arguments = at.declaration.name, at.arguments
            told = activated(skills, name, arguments, last, cwd=config.workspace, already=said)
            said.update((event.load_reason, event.path) for event in told)
            events = [*told, *events]
        return events if after is None else await after(at, events)

    return heard
