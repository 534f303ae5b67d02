"""Facts of a turn that ended to spans: the turn, its levels, requests to models, calls of tools, approvals.

All follows from the facts: times are theirs, and ids are made of the turn's and the call's, so that a span that is
sent twice is the same span. No words of people or models are in it, unless redacted payloads are given along.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from wakeful.contracts.envelope import Fact, StoredFact, once, phase_of
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AssistantRecorded,
    MessageAdmitted,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
    Terminal,
    ToolDispatched,
    ToolFailed,
    ToolResult,
    ToolStarted,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
)
from wakeful.contracts.models import TokenUsage
from wakeful.views import span_names as names

Attribute: TypeAlias = str | int | float | bool | tuple[str, ...]
MOST_CONTENT = 4_000
"""Characters of a text in a span."""
_PLAIN_NAME = re.compile(r"[\w./:-]{1,100}", re.ASCII)
OTHER = "other"


class SpanMoment(NamedTuple):
    """Something that happened within a span."""

    name: str
    at: int
    attributes: Mapping[str, Attribute]


class SpanRecord(NamedTuple):
    """One span. Times are microseconds since the epoch."""

    name: str
    operation: str
    """`invoke_agent`, `chat`, `execute_tool`; blank: one of ours."""
    trace_id: int
    span_id: int
    parent_id: int | None
    kind: Literal["internal", "client"]
    began: int
    ended: int
    attributes: Mapping[str, Attribute]
    error: str = ""
    """How it failed, in a word; blank: it did not."""
    moments: tuple[SpanMoment, ...] = ()


@dataclass(slots=True)
class _Open:
    """A span that has begun."""

    key: str
    name: str
    operation: str
    parent: str | None
    began: int
    kind: Literal["internal", "client"] = "internal"
    attributes: dict[str, Attribute] = field(default_factory=dict)
    moments: list[SpanMoment] = field(default_factory=list)
    ended: int | None = None
    error: str = ""


def plain_name(name: str) -> str:
    """A name as it may stand in a label: models make names up, and people put words into them."""
    return name if _PLAIN_NAME.fullmatch(name) else OTHER


def turn_spans(
    runtime_id: str, facts: Iterable[StoredFact], shown: Mapping[int, Mapping[str, Any]] | None = None
) -> tuple[SpanRecord, ...]:
    """The spans of one turn that ended, the turn's own first; nothing for one that never started.

    `shown` are the redacted payloads of the facts by their number: what was said stands in the spans, too.
    """
    tree = _Tree(shown)
    last = 0
    for recorded in once(facts):
        tree.take(recorded)
        last = max(last, recorded.fact.at)
    if tree.root is None:
        return ()
    trace = _number(16, runtime_id, tree.turn_id)
    return tuple(_record(each, trace, last) for each in tree.spans.values())


def _record(span: _Open, trace: int, last: int) -> SpanRecord:
    cut_off = span.ended is None and span.operation in (names.CHAT, names.EXECUTE_TOOL)
    end = last if span.ended is None else span.ended
    return SpanRecord(
        span.name,
        span.operation,
        trace,
        _number(8, f"{trace:x}", span.key),
        None if span.parent is None else _number(8, f"{trace:x}", span.parent),
        span.kind,
        span.began,
        max(span.began, end),
        span.attributes,
        span.error or ("cut_off" if cut_off else ""),
        tuple(span.moments),
    )


def _number(size: int, *parts: str) -> int:
    """An id that follows from names; never zero, which is no id."""
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:size], "big") or 1


class _Tree:
    """The spans of a turn, as its facts come."""

    def __init__(self, shown: Mapping[int, Mapping[str, Any]] | None) -> None:
        self.shown = shown
        self.turn_id = ""
        self.root: _Open | None = None
        self.spans: dict[str, _Open] = {}
        self.admitted_at: int | None = None
        self.asked: list[str] = []

    def take(self, recorded: StoredFact) -> None:
        fact = recorded.fact
        said = None if self.shown is None else self.shown.get(recorded.seq)
        match fact.event:
            case MessageAdmitted():
                self.admitted_at = fact.at if self.admitted_at is None else self.admitted_at
                if said is not None and (text := _text_of(said.get("item"))):
                    self.asked.append(text)
            case TurnStarted() as event:
                self._start(recorded.agent_id, fact, event)
            case TurnSuspended() as event:
                self._moment("wakeful.suspended", fact, {names.REASON: event.reason})
            case TurnResumed() as event:
                self._moment("wakeful.resumed", fact, {names.REASON: event.cause})
            case ModelRequested() | ModelFailed() | ModelCompleted() | AssistantRecorded():
                self._model(fact, said)
            case ToolStarted() | ToolDispatched() | ToolResult() | ToolFailed():
                self._call(fact, said)
            case ActionRequired() | ActionResolved():
                self._approval(fact)
            case SubagentStarted() | SubagentCompleted() | SubagentFailed():
                self._child(fact)
            case Terminal() as event:
                self._finish(fact, event, said)

    def _start(self, agent_id: str, fact: Fact, event: TurnStarted) -> None:
        if self.root is not None:
            return
        self.turn_id = fact.turn_id or ""
        agent = plain_name(event.agent_name)
        attributes: dict[str, Attribute] = {
            names.OPERATION: names.INVOKE_AGENT,
            names.AGENT_ID: agent_id,
            names.AGENT_NAME: agent,
            names.CONVERSATION: f"{agent_id}/{fact.thread_id}",
            names.TURN: self.turn_id,
            **_model_names(event.model_ref),
        }
        if self.admitted_at is not None:
            attributes[names.QUEUE_WAIT_MS] = max(0, fact.at - self.admitted_at) / 1000
        if self.asked:
            attributes[names.INPUT_MESSAGES] = _messages("user", self.asked)
        self.root = self._open("turn", f"{names.INVOKE_AGENT} {agent}", names.INVOKE_AGENT, None, fact.at, attributes)

    def _finish(self, fact: Fact, event: Terminal, said: Mapping[str, Any] | None) -> None:
        root = self.root
        if root is None:
            return
        root.ended = fact.at
        root.attributes |= {
            names.TURN_STATUS: event.status,
            names.STOP_REASON: event.stop_reason,
            names.ACTIVE_MS: event.active_ms,
            names.MODEL_CALLS: event.model_calls,
            names.TOOL_CALLS: event.tool_calls,
            **_tokens(event.token_usage),
        }
        if said is not None and said.get("final_preview"):
            root.attributes[names.OUTPUT_MESSAGES] = _messages("assistant", [str(said["final_preview"])])
        root.error = event.stop_reason if event.status == "failed" else ""

    def _model(self, fact: Fact, said: Mapping[str, Any] | None) -> None:
        where = f"model/{fact.level or ''}"
        newest = next((each for each in reversed(self.spans.values()) if each.key.startswith(f"{where}/")), None)
        match fact.event:
            case ModelRequested() as event:
                if newest is not None and newest.ended is None:  # a crash cut it off; this one was sent instead
                    newest.ended, newest.error = fact.at, "cut_off"
                attributes: dict[str, Attribute] = {
                    names.OPERATION: names.CHAT,
                    **_model_names(event.model_ref),
                    names.ATTEMPT: event.attempt,
                }
                name = f"{names.CHAT} {attributes[names.REQUEST_MODEL]}"
                key = f"{where}/{fact.step}/{fact.at}/{event.candidate}/{event.attempt}"
                self._open(key, name, names.CHAT, self._level(fact), fact.at, attributes, kind="client")
            case ModelFailed() as event if newest is not None:
                newest.ended, newest.error = fact.at, event.failure_kind
                newest.attributes |= _tokens(event.token_usage)
            case ModelCompleted() as event if newest is not None:
                newest.ended = fact.at
                newest.attributes |= {
                    names.RESPONSE_MODEL: _model_names(event.model_ref)[names.REQUEST_MODEL],
                    names.FINISH_REASONS: (event.stop_reason,),
                    **_tokens(event.token_usage),
                }
            case AssistantRecorded() if newest is not None and said is not None and said.get("text_preview"):
                newest.attributes[names.OUTPUT_MESSAGES] = _messages("assistant", [str(said["text_preview"])])

    def _call(self, fact: Fact, said: Mapping[str, Any] | None) -> None:
        key = f"call/{fact.level or ''}/{fact.call_id}"
        span = self.spans.get(key)
        match fact.event:
            case ToolStarted() as event:
                if span is None:
                    span = self._open_call(key, fact, event.tool_name, fact.at)
                span.attributes[names.EFFECT] = event.effect
                if said is not None and said.get("safe_args") is not None:
                    span.attributes[names.TOOL_ARGUMENTS] = _json(said["safe_args"])
            case ToolDispatched() as event if span is not None:
                span.moments.append(SpanMoment("wakeful.dispatched_again", fact.at, {names.REASON: event.cause}))
            case ToolResult() | ToolFailed() as event:
                if span is None:  # refused at the gate: it never began
                    span = self._open_call(key, fact, event.tool_name, fact.at)
                span.ended = fact.at
                span.attributes[names.TOOL_STATUS] = event.status
                if isinstance(event, ToolFailed):
                    span.error = event.error_category
                    span.attributes[names.EFFECTS] = event.effects
                if said is not None and said.get("preview"):
                    span.attributes[names.TOOL_RESULT] = str(said["preview"])[:MOST_CONTENT]

    def _open_call(self, key: str, fact: Fact, tool: str, at: int) -> _Open:
        attributes: dict[str, Attribute] = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL_NAME: plain_name(tool),
            names.TOOL_CALL: fact.call_id or "",
        }
        return self._open(
            key, f"{names.EXECUTE_TOOL} {plain_name(tool)}", names.EXECUTE_TOOL, self._level(fact), at, attributes
        )

    def _approval(self, fact: Fact) -> None:
        match fact.event:
            case ActionRequired() as event:
                attributes: dict[str, Attribute] = {
                    names.APPROVAL: event.action_id,
                    names.TOOL_NAME: plain_name(event.tool_name),
                }
                parent = f"call/{fact.level or ''}/{fact.call_id}"
                at = parent if parent in self.spans else self._level(fact)
                self._open(f"approval/{event.action_id}", "wakeful.approval", "", at, fact.at, attributes)
            case ActionResolved() as event:
                span = self.spans.get(f"approval/{event.action_id}")
                if span is not None:
                    span.ended = fact.at
                    span.attributes[names.APPROVAL_STATUS] = event.status

    def _child(self, fact: Fact) -> None:
        match fact.event:
            case SubagentStarted() as event:
                parent = f"call/{fact.level or ''}/{fact.call_id}"
                at = parent if parent in self.spans else self._level(fact)
                attributes: dict[str, Attribute] = {
                    names.OPERATION: names.INVOKE_AGENT,
                    names.AGENT_NAME: plain_name(event.tool),
                    names.DEPTH: event.depth,
                }
                name = f"{names.INVOKE_AGENT} {plain_name(event.tool)}"
                self._open(f"level/{event.level_id}", name, names.INVOKE_AGENT, at, fact.at, attributes)
            case SubagentCompleted() | SubagentFailed() as event:
                span = self.spans.get(f"level/{event.level_id}")
                if span is not None:
                    span.ended = fact.at
                    span.attributes |= _tokens(event.token_usage)
                    span.error = event.error if isinstance(event, SubagentFailed) else ""

    def _level(self, fact: Fact) -> str:
        """The span of the level that a fact belongs to. A phase of the runtime's own is opened by its first request."""
        if fact.level is None:
            return "turn"
        key = f"level/{fact.level}"
        if key not in self.spans:
            phase = phase_of(fact.level) or "level"
            above = fact.level.rpartition("~")[0]
            parent = f"level/{above}" if f"level/{above}" in self.spans else "turn"
            self._open(key, f"wakeful.{phase}", "", parent, fact.at, {names.DEPTH: fact.depth})
        return key

    def _moment(self, name: str, fact: Fact, attributes: dict[str, Attribute]) -> None:
        if self.root is not None:
            self.root.moments.append(SpanMoment(name, fact.at, attributes))

    def _open(
        self,
        key: str,
        name: str,
        operation: str,
        parent: str | None,
        at: int,
        attributes: dict[str, Attribute],
        *,
        kind: Literal["internal", "client"] = "internal",
    ) -> _Open:
        span = _Open(key, name, operation, parent, at, kind, attributes)
        self.spans[key] = span
        return span


def _model_names(model_ref: str) -> dict[str, Attribute]:
    provider, _, model = model_ref.partition(":")
    return {names.PROVIDER: plain_name(provider), names.REQUEST_MODEL: plain_name(model)}


def _tokens(usage: TokenUsage | None) -> dict[str, Attribute]:
    if usage is None:
        return {}
    found = {
        names.INPUT_TOKENS: usage.input_tokens,
        names.OUTPUT_TOKENS: usage.output_tokens,
        names.CACHE_READ_TOKENS: usage.cached_input_tokens,
        names.CACHE_WRITE_TOKENS: usage.cache_write_tokens,
        names.REASONING_TOKENS: usage.reasoning_tokens,
    }
    always = (names.INPUT_TOKENS, names.OUTPUT_TOKENS)
    return {name: count for name, count in found.items() if count or name in always}


def _text_of(item: Any) -> str:
    """The words of a published item."""
    parts = item.get("parts", ()) if isinstance(item, Mapping) else ()
    return "\n".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def _messages(role: str, texts: Iterable[str]) -> str:
    """Messages as the convention wants them: a JSON list of roles and parts."""
    return _json([{"role": role, "parts": [{"type": "text", "content": text[:MOST_CONTENT]}]} for text in texts])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[: 2 * MOST_CONTENT]
