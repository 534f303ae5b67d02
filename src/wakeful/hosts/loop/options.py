"""The options of a conversation loop, read once and checked whole.

A name that is not an option is an error, and so is a value of the wrong kind: nothing is ignored.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from wakeful.contracts.errors import InvalidConfig, InvalidValue
from wakeful.contracts.events import RejectedDeclaration
from wakeful.decisions.guards import IdenticalFailureTracker, SpinDetector
from wakeful.decisions.policy.call_gates import CallRule, read_call_rules
from wakeful.gate.argument_validation import compile as compile_schema
from wakeful.hosts.compaction.transcript_cut import TranscriptCompactionPolicy
from wakeful.hosts.declarations.reader import normalize_for_conversation_request
from wakeful.hosts.declarations.tool_declaration import RuntimeToolDeclaration
from wakeful.hosts.loop.budgets import IterationBudget, by_name
from wakeful.hosts.loop.conversation_request import ConversationRequest
from wakeful.hosts.loop.truncation import ToolResultTruncator
from wakeful.hosts.ports import CompletionPolicy, ConversationLock, ToolExecutor, TranscriptPersister
from wakeful.ports.client_requests import RuntimeToolRequestStore

INVALID = "invalid_loop_options"
MadeT = TypeVar("MadeT")
SESSION_KEYS = ("transcript_session_id", "session_id", "transcript_id")
"""Where the session's id is looked for, in this order."""
REQUEST_STORES = ("runtime_tool_request_store", "runtime_tool_store")
"""Two names for one thing; the first that is given."""
NAMES = (
    "max_turns",
    "budgets",
    "context",
    "should_continue",
    "tool_executor",
    "tool_declarations",
    "transcript_lock",
    "transcript_lock_store",
    *SESSION_KEYS,
    "transcript_lock_ttl",
    "transcript_persister",
    "pre_tool_mediator",
    "tool_call_rules",
    "completion_policy",
    "compaction_policy",
    "summarizer",
    "interrupt_source",
    "spin_detector",
    "identical_failure_tracker",
    "tool_result_truncator",
    "post_tool_result_diagnostics",
    "provider_turn_adapter",
    "on_provider_delta",
    "structured_output",
    *REQUEST_STORES,
    "on_event",
    "request",
    "run_id",
)


@dataclass(slots=True, frozen=True)
class Declarations:
    """The tools of a run: those that are fit to be offered, and those that are not."""

    accepted: tuple[RuntimeToolDeclaration, ...] = ()
    rejected: tuple[RejectedDeclaration, ...] = ()


@dataclass(slots=True, frozen=True)
class LoopOptions:
    """What a run was asked to be."""

    max_turns: int = 1
    has_turn_limit: bool = False
    """Somebody said how many turns: the option, or the request."""
    budgets: Mapping[str, IterationBudget] = field(default_factory=dict)
    """By name. The host's own objects: what is counted is counted in them."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """The caller's own; may hold live objects, and is not stored."""
    should_continue: Callable[..., Any] | None = None
    one_turn: bool = False
    """`should_continue=None` was passed: one turn, whatever it calls."""
    tool_executor: ToolExecutor | None = None
    declarations: Declarations = Declarations()
    lock: ConversationLock | None = None
    lock_ttl: int = 300
    session_id: str = ""
    persister: TranscriptPersister | None = None
    pre_tool_mediator: Callable[..., Any] | None = None
    tool_call_rules: tuple[CallRule, ...] = ()
    completion_policy: CompletionPolicy | None = None
    compaction_policy: TranscriptCompactionPolicy | None = None
    summarizer: Callable[..., Any] | None = None
    interrupt_source: Callable[..., Any] | None = None
    spin_detector: SpinDetector | None = None
    identical_failure_tracker: IdenticalFailureTracker | None = None
    tool_result_truncator: ToolResultTruncator | None = None
    post_tool_result_diagnostics: Callable[..., Any] | None = None
    provider_turn_adapter: Callable[..., Any] | None = None
    on_provider_delta: Callable[..., Any] | None = None
    structured_output: dict[str, Any] | None = None
    """For the adapter; the loop passes it on."""
    request_store: RuntimeToolRequestStore | None = None
    """Where requests to clients are kept; None: they are in the result alone."""
    on_event: Callable[[str, dict[str, Any]], Any] | None = None
    request: ConversationRequest | None = None
    run_id: str = ""

    @property
    def looks_between_turns(self) -> bool:
        """Is there anything that has to be looked at after each turn, beside `should_continue`?"""
        guards = (self.spin_detector, self.identical_failure_tracker, self.post_tool_result_diagnostics)
        return bool(self.budgets) or any(
            each is not None for each in (*guards, self.completion_policy, self.interrupt_source)
        )

    @property
    def mediates(self) -> bool:
        """The loop runs the calls itself, or asks clients to."""
        return bool(self.offered)

    @property
    def offered(self) -> tuple[RuntimeToolDeclaration, ...]:
        """The tools whose calls somebody can carry out: a client its own, the executor all others."""
        accepted = self.declarations.accepted
        return tuple(tool for tool in accepted if self.tool_executor is not None or tool.is_clients)


def read_options(options: Mapping[str, Any] | None) -> LoopOptions:
    """Raises InvalidValue for what is no option or not of its kind, NotBuiltYet for what is not there yet."""
    given = dict(options or {})
    for name in given:
        _check_name(name)
    request = ConversationRequest.normalise(given["request"]) if given.get("request") is not None else None
    lock = given.get("transcript_lock") or given.get("transcript_lock_store")
    context = given["context"] if given.get("context") is not None else {}
    if not isinstance(context, Mapping):
        raise InvalidValue(INVALID, "context", f"is an object, not a {type(context).__name__}")
    return LoopOptions(
        max_turns=_turns(given, request),
        has_turn_limit=given.get("max_turns") is not None or request is not None,
        budgets=_budgets(given.get("budgets")),
        context=context,
        should_continue=_callable(given, "should_continue"),
        one_turn="should_continue" in given and given["should_continue"] is None,
        tool_executor=_with_method("tool_executor", given.get("tool_executor"), "execute"),
        declarations=read_declarations(
            given["tool_declarations"] if given.get("tool_declarations") is not None else {}
        ),
        lock=_with_method("transcript_lock", lock, "acquire_session_lock", "release_session_lock"),
        lock_ttl=_at_least_one(given.get("transcript_lock_ttl", 300), "transcript_lock_ttl"),
        session_id=_session_id(given, request),
        persister=_with_method("transcript_persister", given.get("transcript_persister"), "persist"),
        pre_tool_mediator=_callable(given, "pre_tool_mediator"),
        tool_call_rules=_rules(given.get("tool_call_rules")),
        completion_policy=_with_method("completion_policy", given.get("completion_policy"), "record_tool_result"),
        compaction_policy=(
            TranscriptCompactionPolicy.normalise(given["compaction_policy"])
            if given.get("compaction_policy") is not None
            else None
        ),
        summarizer=_callable(given, "summarizer"),
        interrupt_source=_callable(given, "interrupt_source"),
        spin_detector=_made(given, "spin_detector", SpinDetector),
        identical_failure_tracker=_made(given, "identical_failure_tracker", IdenticalFailureTracker),
        tool_result_truncator=_made(given, "tool_result_truncator", ToolResultTruncator),
        post_tool_result_diagnostics=_callable(given, "post_tool_result_diagnostics"),
        provider_turn_adapter=_callable(given, "provider_turn_adapter"),
        on_provider_delta=_callable(given, "on_provider_delta"),
        structured_output=_object(given, "structured_output"),
        request_store=_with_method(
            REQUEST_STORES[0], given.get(REQUEST_STORES[0]) or given.get(REQUEST_STORES[1]), "create", "get"
        ),
        on_event=_callable(given, "on_event"),
        request=request,
        run_id=_text(given, "run_id"),
    )


def read_declarations(given: Any, *, aliased: bool = True) -> Declarations:
    """Every declaration checked by itself: one that is not fit is left out and named.

    `aliased`: a model may call a tool by the key it stands under.
    """
    if not isinstance(given, Mapping):
        raise InvalidValue(INVALID, "tool_declarations", f"is an object by name, not a {type(given).__name__}")
    accepted: dict[str, RuntimeToolDeclaration] = {}
    rejected: list[RejectedDeclaration] = []
    for key, raw in given.items():
        try:
            tool = normalize_for_conversation_request(raw)
            if tool.name in accepted:
                raise InvalidValue("", "name", f"name {tool.name!r} is declared twice")
            compile_schema(tool.input_schema)
        except InvalidValue as error:
            rejected.append(RejectedDeclaration(name=_name_of(key, raw), reason=error.reason))
        except InvalidConfig as error:
            rejected.append(RejectedDeclaration(name=_name_of(key, raw), reason=f"parameters are {error.message}"))
        else:
            if aliased and key not in tool.names:
                tool = tool.model_copy(update={"provider_aliases": (*tool.provider_aliases, str(key))})
            accepted[tool.name] = tool
    return Declarations(tuple(accepted.values()), tuple(rejected))


def _name_of(key: Any, raw: Any) -> str:
    name = raw.get("name") if isinstance(raw, Mapping) else None
    return name if isinstance(name, str) and name else str(key)


def _check_name(name: str) -> None:
    if name in NAMES:
        return
    near = difflib.get_close_matches(str(name), NAMES, n=1)
    raise InvalidValue(INVALID, str(name), "is not an option", f"did you mean {near[0]!r}?" if near else "")


def _budgets(given: Any) -> dict[str, IterationBudget]:
    if given is None:
        return {}
    if not isinstance(given, list | tuple):
        raise InvalidValue(INVALID, "budgets", f"is a list of budgets, not a {type(given).__name__}")
    return by_name(_budget(each, place) for place, each in enumerate(given))


def _budget(given: Any, place: int) -> IterationBudget:
    if isinstance(given, IterationBudget):
        return given
    if not isinstance(given, Mapping):
        raise InvalidValue(INVALID, f"budgets[{place}]", f"is an IterationBudget, not a {type(given).__name__}")
    return _from_fields(f"budgets[{place}]", IterationBudget, given)


def _made(given: Mapping[str, Any], name: str, kind: type[MadeT]) -> MadeT | None:
    """A guard: an object of its kind, its fields, or just `True` for its defaults."""
    value = given.get(name)
    if value is None or value is False:
        return None
    if isinstance(value, kind):
        return value
    if value is True:
        return kind()
    if not isinstance(value, Mapping):
        raise InvalidValue(INVALID, name, f"is a {kind.__name__}, its fields or True, not a {type(value).__name__}")
    return _from_fields(name, kind, value)


def _from_fields(at: str, kind: type[MadeT], fields: Mapping[str, Any]) -> MadeT:
    try:
        return kind(**fields)
    except TypeError as error:  # a field that is missing, or that there is not
        raise InvalidValue(INVALID, at, str(error)) from None


def _object(given: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    value = given.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise InvalidValue(INVALID, name, f"is an object, not a {type(value).__name__}")
    return dict(value) if value is not None else None


def _rules(given: Any) -> tuple[CallRule, ...]:
    if given is None:
        return ()
    if not isinstance(given, list | tuple):
        raise InvalidValue(INVALID, "tool_call_rules", f"is a list of rules, not a {type(given).__name__}")
    return read_call_rules(given)


def _turns(given: Mapping[str, Any], request: ConversationRequest | None) -> int:
    """The option, else the request's own limit, else one turn."""
    if given.get("max_turns") is not None:
        turns = _at_least_one(given["max_turns"], "max_turns")
    else:
        turns = request.max_turns if request is not None else 1
    return 1 if request is not None and request.single_turn else turns


def _at_least_one(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidValue(INVALID, name, f"is a whole number, at least 1, not {value!r}")
    return value


def _session_id(given: Mapping[str, Any], request: ConversationRequest | None) -> str:
    """The first that is not empty: of the options, then of the request's metadata."""
    metadata = request.metadata if request is not None else {}
    return next((found for place in (given, metadata) for key in SESSION_KEYS if (found := _text(place, key))), "")


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidValue(INVALID, name, f"is a text, not a {type(value).__name__}")
    return value


def _callable(given: Mapping[str, Any], name: str) -> Callable[..., Any] | None:
    value = given.get(name)
    if value is not None and not callable(value):
        raise InvalidValue(INVALID, name, f"is a callable, not a {type(value).__name__}")
    found: Callable[..., Any] | None = value
    return found


def _with_method(name: str, value: Any, *methods: str) -> Any:
    for method in methods:
        if value is not None and not callable(getattr(value, method, None)):
            raise InvalidValue(INVALID, name, f"needs a method {method!r}, which a {type(value).__name__} has not")
    return value
