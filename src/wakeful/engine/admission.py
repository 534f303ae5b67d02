"""Making a message safe: from here on the runtime owes it an answer.

Whatever can be wrong with a request is wrong before this; what returns survives a power cut.
"""

import hashlib
import json
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_origin
from weakref import WeakKeyDictionary

from pydantic_core import PydanticSerializationError, to_json
from typing_extensions import is_protocol, is_typeddict

from wakeful.contracts.budgets import Budget, LimitOverrides, Limits
from wakeful.contracts.content import BlobRef, File, Image, Prompt, Text, parts_of
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import MAIN_THREAD, Fact, StoredFact
from wakeful.contracts.errors import DepsMissing, InvalidRequest, InvalidValue, KeyReused, WrongDeps
from wakeful.contracts.events import HistoryImported, MessageAdmitted, SessionStarted
from wakeful.contracts.messages import library_message
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.contracts.workflows import WorkflowRun
from wakeful.decisions.intake import id_of_key
from wakeful.decisions.parameters import assemble
from wakeful.engine.agent import Agent, AgentTool
from wakeful.engine.run_request import Engine, MessageOrigin, RunRequest, WorkflowTerms
from wakeful.gate.large_content import offload
from wakeful.ports import Blobs, Claim, TurnRow
from wakeful.tools.results import clean

MAX_CONTEXT_BYTES = 16_000
MAX_INLINE_HISTORY = 40_000
MAX_NOTES_BYTES = 16_000
MAX_NAME_CHARS = 2_000
_BUDGET = Budget()
"""What holds where neither the caller nor the agent says anything."""
_limits: "WeakKeyDictionary[Agent[Any, Any], tuple[Budget, LimitOverrides, Limits]]" = WeakKeyDictionary()
"""Of each agent the last limits, and what they rest on."""


class NewTurn(NamedTuple):
    """A message that is safe, and its turn."""

    turn: TurnRow
    created: bool
    """False: the key was there already and nothing was written."""
    reservation: str | None
    """What this process claims the turn with, if it was reserved."""
    claim: Claim | None
    """The turn in this process's hands: nothing else was open in its thread."""
    facts: list[StoredFact]
    """The turn's own, as they were stored: as long as nothing else was written, nobody has to read them again."""


async def admit(
    engine: Engine, request: RunRequest, limits: Limits, message: UserItem, fingerprint: str, history: Sequence[Any]
) -> NewTurn | None:
    """Make the message safe. What returns survives a power cut; the turn is claimed for this run, or kept for it until
    its thread is free.

    None: a message of the same key is in a queue, or a turn took it from there. Nothing was written.
    """
    store, clock, ids = engine.store, engine.clock, engine.ids
    thread = request.thread if request.thread is not None else MAIN_THREAD
    # A run that names no thread opens a session of its own: nothing to contend for.
    agent_id = request.agent.name if request.thread is not None else ids.new(request.agent.name)
    turn_id = ids.new("turn")
    stored = await offload(message, store.put_blob)
    assert isinstance(stored, UserItem)
    admitted = MessageAdmitted(
        message_id=ids.new("msg") if request.key is None else id_of_key(request.agent.name, request.key),
        item=stored,
        delivery_surface="cli_prompt" if request.origin.surface == "cli_prompt" else "run_once",
        key=request.key,
        fingerprint=fingerprint,
        prompt_preview=message.text[:PREVIEW_CHARS],
        context=_plain("context", request.context, MAX_CONTEXT_BYTES),
        depth=request.host.depth,
        notes=_plain("notes", request.host.notes, MAX_NOTES_BYTES),
        principal=request.principal.id if request.principal is not None else None,
        **_whose_word(request.origin),
        limits=limits,
        **({"collections": request.collections} if request.collections is not None else {}),
        **({"memory_enabled": True} if request.recalls else {}),
        **await _what_it_runs(store, request.workflows),
    )
    facts: list[Fact] = []
    if request.thread is None or not await store.read(agent_id, limit=1):
        started = SessionStarted(agent_name=request.agent.name, temporary=request.thread is None)
        facts.append(Fact(started, clock.now()))
    facts.append(Fact(admitted, clock.now(), thread, turn_id))
    if history:
        facts.append(Fact(await _imported(store, history), clock.now(), thread, turn_id))
    answer = await store.admit(agent_id, facts, reserve=request.thread is not None, claim=True)
    assert answer is not None
    if answer.turn is None or (not answer.created and answer.turn.key != request.key):
        return None
    first = answer.turn.first_seq
    own = [fact for fact in facts if fact.turn_id is not None] if answer.created else []
    return NewTurn(
        answer.turn,
        answer.created,
        answer.reservation,
        answer.claim,
        [StoredFact(agent_id, first + index, fact) for index, fact in enumerate(own)],
    )


def allowed(engine: Engine, request: RunRequest) -> Limits:
    """What the turn is held to: what the caller says, else the agent, else the default profile."""
    agent = request.agent
    if request.host.limits is not None:
        return request.host.limits
    budget, overrides = request.budget or agent.budget or _BUDGET, engine.limit_overrides
    known = _limits.get(agent)
    if known is None or known[0] is not budget or known[1] != overrides:
        known = _limits[agent] = budget, overrides, budget.limits(agent.max_steps, overrides)
    return known[2]


async def _what_it_runs(store: Blobs, workflows: WorkflowTerms) -> dict[str, Any]:
    if workflows.editing is not None:
        return {"editing": workflows.editing}
    run = await store_run(store, workflows.run)
    return {} if run is None else {"workflow_ref": run}


async def store_run(store: Blobs, run: WorkflowRun | None) -> BlobRef | None:
    """Where the message of a workflow's run has what it runs."""
    return await store.put_blob(run.model_dump_json().encode(), "application/json") if run is not None else None


def _whose_word(origin: MessageOrigin) -> dict[str, Any]:
    """Whose word it is, where it is not the operator's own, and where it was said."""
    fields: dict[str, Any] = {}
    if origin.policy_context != "library":
        fields["policy_context"] = origin.policy_context
    if origin.authority != "operator_instruction":
        kind, source = library_message(origin.authority)
        fields |= {"authority_class": origin.authority, "message_kind": kind, "origin": source}
    if origin.derived_from is not None:
        fields["derived_from"] = origin.derived_from
    return fields


def _plain(name: str, given: Mapping[str, Any], most: int) -> dict[str, Any]:
    """What the caller passes along, as JSON: it has to be there again after a restart, here or elsewhere."""
    try:
        plain: dict[str, Any] = json.loads(to_json(dict(given), inf_nan_mode="strings"))
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        raise InvalidValue(
            f"invalid_{name}", name, str(error), "give JSON values; what is alive goes to deps="
        ) from None
    if len(to_json(plain)) > most:
        raise InvalidValue(
            f"invalid_{name}",
            name,
            f"the JSON has {len(to_json(plain)):,} bytes; the limit is {most:,}",
            "give an id, and let tools or the deps factory look the rest up",
        )
    return plain


async def _imported(store: Blobs, items: Sequence[Any]) -> HistoryImported:
    whole = [item.model_dump(mode="json", exclude_none=True) for item in items]
    encoded = to_json(whole)
    if len(encoded) <= MAX_INLINE_HISTORY:
        return HistoryImported(items=tuple(items), count=len(whole))
    return HistoryImported(items_ref=await store.put_blob(encoded, "application/json"), count=len(whole))


_PROMPTS = "Give a text, an Image, a File, or a list of these."


def prompt_parts(prompt: Prompt) -> tuple[Text | Image | File, ...]:
    """A prompt as parts that can be stored. Raises InvalidValue for what is none."""
    given: Any = prompt
    if isinstance(given, str):
        return storable(parts_of(given))
    if not isinstance(given, Text | Image | File | list | tuple):
        raise InvalidValue("invalid_prompt", "prompt", f"{reprlib.repr(given)} is not a prompt", _PROMPTS)
    for piece in given if isinstance(given, list | tuple) else ():
        if not isinstance(piece, str | Text | Image | File):
            raise InvalidValue(
                "invalid_prompt", "prompt", f"{reprlib.repr(piece)} cannot be a part of a prompt", _PROMPTS
            )
    return storable(parts_of(prompt))


def storable(parts: tuple[Text | Image | File, ...]) -> tuple[Text | Image | File, ...]:
    """Without half surrogate pairs and the like, which come out of terminals and cannot be written down."""
    return tuple(
        [
            part
            if not isinstance(part, Text) or part.text.isascii()
            else part.model_copy(update={"text": clean(part.text)})
            for part in parts
        ]
    )


def fingerprint_of(agent_name: str, message: UserItem, workflow: WorkflowRun | None = None) -> str:
    what = agent_name.encode() + b"\0" + to_json(message.parts)
    return hashlib.sha256(what if workflow is None else what + b"\0" + to_json(workflow)).hexdigest()


def reused(key: str, row: TurnRow, agent_name: str, message: UserItem) -> KeyReused:
    return KeyReused(
        f"key {key!r} belongs to another run:\n"
        f"  then: agent {row.agent_name!r}, prompt {row.prompt_preview!r}\n"
        f"  now:  agent {agent_name!r}, prompt {message.text[:PREVIEW_CHARS]!r}",
        "give this run a key of its own, or repeat the first one exactly",
    )


def check_names(request: RunRequest) -> None:
    """Raises InvalidValue for a key, thread or agent's name that cannot be stored: empty, too long, no Unicode text."""
    text: Any
    for name, text in (("key", request.key), ("thread", request.thread), ("name", request.agent.name)):
        if text is not None and not isinstance(text, str):
            raise InvalidValue(
                f"invalid_{name}",
                name,
                f"{text!r:.80} is of type {type(text).__name__}",
                f'give a text: {name}="{text!s:.80}"',
            )
        if text is not None and not 0 < len(text) <= MAX_NAME_CHARS:
            found = f"a text of {len(text):,} characters" if text else "an empty text"
            raise InvalidValue(
                f"invalid_{name}",
                name,
                f"{found}; 1 to {MAX_NAME_CHARS:,} characters are allowed",
                "leave it out, or name it",
            )
        if text is not None and not _is_unicode(text):
            raise InvalidValue(
                f"invalid_{name}",
                name,
                f"{text!a} holds half of a surrogate pair, which cannot be stored",
                "use plain Unicode text; bytes from outside have to be decoded first",
            )


def check_thread(request: RunRequest) -> None:
    """Raises InvalidRequest for work items or memory in a run that nobody could go on with, or remember."""
    for name, what in (("work_items", "its work items"), ("memory", "its memory")):
        if getattr(request.agent, name) and request.thread is None:
            raise InvalidRequest(
                f"Agent {request.agent.name!r} has {name}=True, and this run names no thread: {what} would end with it",
                f'add thread="main" and store="runs.db", or leave {name} out',
            )


def _is_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def check_bound(agent: Agent[Any, Any], context: Mapping[str, Any]) -> None:
    """Every parameter that a tool takes from the run is there. Raises InvalidValue, naming tool and parameter."""
    for tool in (tool for tool in agent.tools if tool.plan.bindings):
        for name in assemble(tool.plan, {}, {"context": context}).missing:
            place = str(tool.plan.bindings[name])
            raise InvalidValue(
                "invalid_context",
                place,
                f"the tool {tool.name!r} of agent {agent.name!r} takes {name!r} from here, and there is no such value",
                "pass it: run(..., context={...})",
            )


def check_deps(agent: Agent[Any, Any], deps: Any, turn: str) -> None:
    if deps is None and agent.deps is None and agent.needs_deps:
        what = agent.needs_deps_for or "its deps_type"
        raise DepsMissing(
            f"agent {agent.name!r} needs deps for {what!r}, and {turn} was given none",
            "pass deps=..., or give the agent a factory: Agent(..., deps=lambda context: ...)",
        )
    check_deps_type(agent, deps)


def check_deps_type(agent: Agent[Any, Any], deps: Any) -> None:
    """Raises WrongDeps where deps are given and are of another kind than the agent, or one of its tools, reads."""
    if deps is None:
        return
    for reader, wanted in agent.deps_types:
        if _is_of_another_type(deps, wanted):
            name = str(getattr(wanted, "__name__", wanted))
            who = f"agent {agent.name!r} needs deps of type {name}" + (f" for {reader!r}" if reader else "")
            raise WrongDeps(f"{who}, and was given {type(deps).__name__}", f"pass deps={name}(...)")
    for tool in agent.tools:
        if isinstance(tool, AgentTool) and tool.agent.deps is None:
            check_deps_type(tool.agent, deps)


def _is_of_another_type(deps: Any, wanted: Any) -> bool:
    kind = get_origin(wanted) or wanted
    if not isinstance(kind, type):
        return False
    if is_typeddict(kind):
        kind = Mapping
    elif is_protocol(kind) and not getattr(kind, "_is_runtime_protocol", False):
        return False  # nothing can be said of it before it is used
    return not isinstance(deps, kind)
