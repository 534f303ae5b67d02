"""The options of a conversation loop, read once and checked whole.

A name that is not an option is an error, and so is a value of the wrong kind: nothing is ignored.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from wakeful.contracts.errors import InvalidValue
from wakeful.decisions.guards import IdenticalFailureTracker, SpinDetector
from wakeful.decisions.policy.call_gates import CallRule, read_call_rules
from wakeful.hosts.compaction.transcript_cut import TranscriptCompactionPolicy
from wakeful.hosts.loop.budgets import IterationBudget, by_name
from wakeful.hosts.loop.conversation_request import ConversationRequest
from wakeful.hosts.loop.transcript_bounds import ToolResultTruncator
from wakeful.hosts.policies.host_policy import AgentPolicies
from wakeful.hosts.ports import CompletionPolicy, ConversationLock, ToolExecutor, TranscriptPersister
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration
from wakeful.hosts.tools.tool_sources import Declarations, read_declarations
from wakeful.ports.client_requests import RuntimeToolRequestStore

INVALID = "invalid_loop_options"
MEDIATOR_SECONDS = 60.0
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
class TurnLimits:
    """How many turns a run has, and who decides whether there is another one."""

    max_turns: int = 1
    is_said: bool = False
    """Somebody said how many turns: the option, or the request."""
    budgets: Mapping[str, IterationBudget] = field(default_factory=dict)
    """By name. The host's own objects: what is counted is counted in them."""
    should_continue: Callable[..., Any] | None = None
    one_turn: bool = False
    """`should_continue=None` was passed: one turn, whatever it calls."""


@dataclass(slots=True, frozen=True)
class HostToolOptions:
    """The tools of a run, and what becomes of their results."""

    executor: ToolExecutor | None = None
    declarations: Declarations = field(default_factory=Declarations)
    request_store: RuntimeToolRequestStore | None = None
    """Where requests to clients are kept; None: they are in the result alone."""
    truncator: ToolResultTruncator | None = None
    diagnostics: Callable[..., Any] | None = None

    @property
    def offered(self) -> tuple[RuntimeToolDeclaration, ...]:
        """The tools whose calls somebody can carry out: a client its own, the executor all others."""
        return tuple(tool for tool in self.declarations.accepted if self.executor is not None or tool.is_clients)

    @property
    def mediates(self) -> bool:
        """The loop runs the calls itself, or asks clients to."""
        return bool(self.offered)


@dataclass(slots=True, frozen=True)
class TurnGuards:
    """Who looks on after each turn."""

    completion: CompletionPolicy | None = None
    interrupts: Callable[..., Any] | None = None
    spin: SpinDetector | None = None
    failures: IdenticalFailureTracker | None = None

    @property
    def any(self) -> bool:
        return any(each is not None for each in (self.completion, self.interrupts, self.spin, self.failures))


@dataclass(slots=True, frozen=True)
class TranscriptOptions:
    """What becomes of the transcript: who may write it, who folds it, who keeps it."""

    lock: ConversationLock | None = None
    lock_ttl: int = 300
    persister: TranscriptPersister | None = None
    compaction: TranscriptCompactionPolicy | None = None
    summarizer: Callable[..., Any] | None = None


@dataclass(slots=True, frozen=True)
class ProviderOptions:
    """A provider's adapter in the place of a turn runner."""

    adapter: Callable[..., Any] | None = None
    on_delta: Callable[..., Any] | None = None
    structured_output: dict[str, Any] | None = None
    """For the adapter; the loop passes it on."""


@dataclass(slots=True, frozen=True)
class LoopSettings:
    """What holds for every run of a loop: what its host and its agent are, whatever a run is asked to be."""

    targets: Mapping[str, ToolExecutor]
    """Executors by name."""
    mediator_seconds: float
    private_audit: Callable[[dict[str, Any]], Any] | None
    price: object | None
    agent: AgentPolicies


@dataclass(slots=True, frozen=True)
class LoopOptions:
    """What a run was asked to be."""

    limits: TurnLimits
    tools: HostToolOptions
    mediator: Callable[..., Any] | None
    """Decides about each call before it runs."""
    rules: tuple[CallRule, ...]
    guards: TurnGuards
    transcript: TranscriptOptions
    provider: ProviderOptions
    context: Mapping[str, Any]
    """The caller's own; may hold live objects, and is not stored."""
    on_event: Callable[[str, dict[str, Any]], Any] | None
    request: ConversationRequest | None
    session_id: str
    run_id: str

    @property
    def looks_between_turns(self) -> bool:
        """Is there anything that has to be looked at after each turn, beside `should_continue`?"""
        return bool(self.limits.budgets) or self.guards.any or self.tools.diagnostics is not None


def read_options(options: Mapping[str, Any] | None) -> LoopOptions:
    """Raises InvalidValue for what is no option or not of its kind."""
    given = dict(options or {})
    for name in given:
        _check_name(name)
    request = ConversationRequest.normalise(given["request"]) if given.get("request") is not None else None
    context = given["context"] if given.get("context") is not None else {}
    if not isinstance(context, Mapping):
        raise InvalidValue(INVALID, "context", f"is an object, not a {type(context).__name__}")
    return LoopOptions(
        limits=_limits(given, request),
        tools=_tools(given),
        mediator=_callable(given, "pre_tool_mediator"),
        rules=_rules(given.get("tool_call_rules")),
        guards=TurnGuards(
            _with_method("completion_policy", given.get("completion_policy"), "record_tool_result"),
            _callable(given, "interrupt_source"),
            _made(given, "spin_detector", SpinDetector),
            _made(given, "identical_failure_tracker", IdenticalFailureTracker),
        ),
        transcript=_transcript(given),
        provider=ProviderOptions(
            _callable(given, "provider_turn_adapter"),
            _callable(given, "on_provider_delta"),
            _object(given, "structured_output"),
        ),
        context=context,
        on_event=_callable(given, "on_event"),
        request=request,
        session_id=_session_id(given, request),
        run_id=_text(given, "run_id"),
    )


def _limits(given: Mapping[str, Any], request: ConversationRequest | None) -> TurnLimits:
    return TurnLimits(
        _turns(given, request),
        given.get("max_turns") is not None or request is not None,
        _budgets(given.get("budgets")),
        _callable(given, "should_continue"),
        "should_continue" in given and given["should_continue"] is None,
    )


def _tools(given: Mapping[str, Any]) -> HostToolOptions:
    declared = given.get("tool_declarations")
    kept_in = next((given[name] for name in REQUEST_STORES if given.get(name)), None)
    return HostToolOptions(
        _with_method("tool_executor", given.get("tool_executor"), "execute"),
        read_declarations(declared if declared is not None else {}),
        _with_method(REQUEST_STORES[0], kept_in, "create", "get"),
        _made(given, "tool_result_truncator", ToolResultTruncator),
        _callable(given, "post_tool_result_diagnostics"),
    )


def _transcript(given: Mapping[str, Any]) -> TranscriptOptions:
    lock = given.get("transcript_lock") or given.get("transcript_lock_store")
    policy = given.get("compaction_policy")
    return TranscriptOptions(
        _with_method("transcript_lock", lock, "acquire_session_lock", "release_session_lock"),
        _at_least_one(given.get("transcript_lock_ttl", 300), "transcript_lock_ttl"),
        _with_method("transcript_persister", given.get("transcript_persister"), "persist"),
        TranscriptCompactionPolicy.normalise(policy) if policy is not None else None,
        _callable(given, "summarizer"),
    )


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
    """The option, else what the request's caller wants, else the request's own limit, else one turn."""
    wanted = request.runtime_overrides.max_iterations if request is not None else None
    if given.get("max_turns") is not None:
        turns = _at_least_one(given["max_turns"], "max_turns")
    elif wanted is not None:
        turns = _at_least_one(wanted, "request.runtime_overrides.max_iterations")
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
