"""Requests to a Chat Completions server: a head, the history, a tail, as chunks that are made once. Pure.

The head (model, tools, system message) and every message of the history are encoded once and handed over as they are,
so consecutive requests of a turn share their bytes up to the last old message. What this model does not take is left
out and reported (`left_out`, `changes`); what a request cannot mean without is refused.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from wakeful.contracts.conversation import ToolItem
from wakeful.contracts.errors import InvalidConfig, ModelFailure
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.openai_chat.dialect import COMPATIBLE, Dialect
from wakeful.providers.openai_chat.messages import Messages, dumps
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.schemas import emit

SAMPLING = ("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "seed", "logit_bias")
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""The same limit in the words of several APIs; it is sent under the name this model knows."""
OURS = frozenset({"model", "messages", "tools", "stream", "stream_options", "response_format"})
"""Fields that follow from the request; a setting of that name would break what they promise."""
NOT_READ = frozenset({"n", "logprobs", "top_logprobs", "functions", "function_call", "modalities", "audio"})
"""Settings that ask for an answer nobody here would read."""
_READ = frozenset({*LIMITS, "tool_choice", "parallel_tool_calls", "prompt_cache_key", "background", "freeform_tools"})
_CHOICES = ("auto", "none", "required")
_OPEN_USER = b',{"role":"user","content":['
_CLOSE_USER = b"]}"


class Encoder:
    """Encodes the requests of one model for one set of tools."""

    __slots__ = (
        "_after",
        "_changes",
        "_dialect",
        "_head",
        "_head_of",
        "_messages",
        "_model",
        "_profile",
        "_shared",
        "_wire",
        "names",
    )

    def __init__(
        self,
        model: str,
        profile: ModelProfile,
        names: WireNames,
        *,
        provider: str = "openai",
        dialect: Dialect = COMPATIBLE,
    ) -> None:
        self._model = model
        self._profile = profile
        self.names = names
        self._dialect = dialect
        self._messages = Messages(
            model, provider=provider, names=names, dialect=dialect, images=profile.images, files=profile.files
        )
        self._shared = repr((provider, model, dialect, profile.images, profile.files))
        self._wire = self._after = ""
        self._head = b""
        self._head_of: tuple[str, Sequence[ToolDeclaration], dict[str, Any] | None] | None = None
        self._changes: tuple[str, ...] = ()

    def body(self, request: ModelRequest) -> list[bytes]:
        """The request's JSON, as chunks. Raises ModelFailure for a request that this format or model cannot take."""
        head = self._head_for(request)
        messages = list(request.history.encoded(self._wire, self._messages.encode))
        after = request.history.encoded(self._after, self._messages.shown_after)
        if any(after):
            messages = _with_attachments(messages, after, request.history)
        messages = [message for message in messages if message]
        if messages and head.endswith(b"["):
            messages[0] = messages[0][1:]  # nothing stands before it, so its comma goes
        return [head, *messages, self._tail(request)]

    def changes(self, request: ModelRequest) -> tuple[str, ...]:
        """What of the tools' schemas had to be written differently for this provider."""
        self._head_for(request)
        return self._changes

    def left_out(self, request: ModelRequest) -> list[str]:
        """What was asked for and this model does not take."""
        left = [name for name in SAMPLING if request.settings.get(name) is not None and not self._takes(name)]
        if request.tools and not self._profile.tools:
            left.append("tools")
        if request.settings.get("freeform_tools"):
            left.append("freeform_tools")  # this format's own form of it is not spoken here
        return left

    # --- head -------------------------------------------------------------------------------------------------------

    def _head_for(self, request: ModelRequest) -> bytes:
        spoken = request.output_schema if self._speaks_schema(request) else None
        guidance = _guidance(request)
        of = self._head_of
        if of is not None and of[0] == guidance and of[1] is request.tools and of[2] is spoken:
            return self._head
        fields: dict[str, Any] = {"model": self._model}
        tools = self._tools(request)
        if tools:
            fields["tools"] = tools
        head = dumps(fields)[:-1] + b',"messages":['
        said = guidance if spoken is None else f"{guidance}\n\n{_spoken(spoken)}".strip()
        if said:
            head += dumps({"role": self._dialect.system_role, "content": said})
        # The names of earlier calls depend on the tools: messages of another set of tools are not the same bytes.
        names = [self.names.to_wire(tool.name) for tool in request.tools]
        digest = hashlib.sha256(f"{self._shared}{names}".encode()).hexdigest()[:16]
        self._wire, self._after = f"openai_chat/{digest}", f"openai_chat.after/{digest}"
        self._head, self._head_of = head, (guidance, request.tools, spoken)
        return head

    def _tools(self, request: ModelRequest) -> list[dict[str, Any]]:
        if not self._profile.tools:
            return []
        tools = []
        changes: list[str] = []
        for tool in request.tools:
            try:
                emitted = emit(tool.input_schema, "relaxed", "openai")
            except InvalidConfig as error:
                raise _refused(f"the tool {tool.name}: {error.message}") from None
            changes += [f"{tool.name}: {change}" for change in emitted.changes]
            function: dict[str, Any] = {"name": self.names.to_wire(tool.name)}
            if tool.description:
                function["description"] = tool.description
            function["parameters"] = emitted.schema
            if self._dialect.strict_field:
                function["strict"] = emitted.strict
            tools.append({"type": "function", "function": function})
        self._changes = tuple(changes)
        return tools

    # --- tail -------------------------------------------------------------------------------------------------------

    def _tail(self, request: ModelRequest) -> bytes:
        settings = request.settings
        for name in settings:
            if name in OURS:
                raise _refused(f"settings.{name} is not a setting: it follows from the request")
            if name in NOT_READ and settings[name] and not (name == "n" and settings[name] == 1):
                raise _refused(f"settings.{name}={settings[name]!r} asks for an answer that nothing here would read")
        fields: dict[str, Any] = {"stream": request.stream}
        if request.stream and self._dialect.stream_usage:
            fields["stream_options"] = {"include_usage": True}
        fields.update(self._tool_use(request))
        fields.update(self._format(request))
        limit = next((settings[name] for name in LIMITS if settings.get(name) is not None), None)
        if limit is not None:
            fields[self._dialect.max_tokens_field] = limit
        key = self._cache_key(request)
        if key is not None:
            fields["prompt_cache_key"] = key
        sent = [name for name in settings if name not in _READ and name not in NOT_READ and self._takes(name)]
        fields.update({name: settings[name] for name in sent if settings[name] is not None})
        return b"]," + dumps(fields)[1:]

    def _cache_key(self, request: ModelRequest) -> Any:
        """The runtime names a key in every request; servers that do not know the field may refuse it."""
        if not self._dialect.prompt_cache_key:
            return None
        key = request.settings.get("prompt_cache_key")
        cache = request.frame.cache if request.frame is not None else None
        return cache.prompt_cache_key if key is None and cache is not None else key

    def _takes(self, name: str) -> bool:
        return name not in SAMPLING or name in self._profile.sampling

    def _tool_use(self, request: ModelRequest) -> dict[str, Any]:
        choice = request.settings.get("tool_choice", request.tool_choice)
        if not request.tools or not self._profile.tools:
            if choice not in ("auto", "none"):
                raise _refused(f"tool_choice is {choice!r}, and there is no tool this model could call")
            return {}
        fields: dict[str, Any] = {}
        if choice not in ("auto", "none") and not self._profile.forced_tool_choice:
            raise _refused(
                f"tool_choice is {choice!r}, and {self._model} is not known to take that; "
                f"give forced_tool_choice=True in its profile, or use another model"
            )
        if choice not in _CHOICES:
            choice = self._forced(choice, request)
        if choice != "auto":
            fields["tool_choice"] = choice
        parallel = request.settings.get("parallel_tool_calls")
        if parallel is not None:
            fields["parallel_tool_calls"] = bool(parallel)
        return fields

    def _forced(self, choice: Any, request: ModelRequest) -> Any:
        """One tool by its name, or a choice in the provider's own words, which is the caller's to answer for."""
        if not isinstance(choice, str):
            return choice
        named = [tool.name for tool in request.tools if choice in (tool.name, self.names.to_wire(tool.name))]
        if not named:
            raise _refused(f"tool_choice is {choice!r}, and no tool has that name")
        return {"type": "function", "function": {"name": self.names.to_wire(named[0])}}

    def _speaks_schema(self, request: ModelRequest) -> bool:
        """The answer's schema goes into words where the wire cannot say it: only objects, and not everywhere."""
        schema = request.output_schema
        held = self._profile.structured_output and self._dialect.response_format == "json_schema"
        return schema is not None and not (held and _is_object(schema))

    def _format(self, request: ModelRequest) -> dict[str, Any]:
        schema = request.output_schema
        if schema is None:
            return {}
        if self._speaks_schema(request):
            only_objects = self._dialect.response_format == "json_object" and _is_object(schema)
            return {"response_format": {"type": "json_object"}} if only_objects else {}
        relaxed, strict = emit(schema, "relaxed", "openai"), emit(schema, "strict", "openai")
        # Strict only where that leaves the shape alone: what it makes nullable would not be what was asked for.
        same = relaxed.schema == strict.schema
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", str(schema.get("title") or "output"))[:64] or "output"
        described = {"name": name, "schema": relaxed.schema, "strict": same}
        return {"response_format": {"type": "json_schema", "json_schema": described}}


def _guidance(request: ModelRequest) -> str:
    """The frame as chat can say it: one system message, its blocks in their order."""
    if request.frame is None or not request.frame.context_blocks:
        return request.instructions
    return "\n\n".join([request.frame.system_prompt, *(block.text for block in request.frame.context_blocks)]).strip()


def _with_attachments(messages: Sequence[bytes], after: Sequence[bytes], history: Sequence[Any]) -> list[bytes]:
    """Pictures of a round's results in one user message behind the round's last result, so that pairs stay together."""
    out: list[bytes] = []
    waiting: list[bytes] = []
    for message, parts, item in zip(messages, after, history, strict=True):
        if waiting and not isinstance(item, ToolItem):
            out += _user_message(waiting)
            waiting = []
        out.append(message)
        if parts:
            waiting.append(parts)
    return out + _user_message(waiting) if waiting else out


def _user_message(parts: list[bytes]) -> list[bytes]:
    return [_OPEN_USER + parts[0][1:], *parts[1:], _CLOSE_USER]


def _is_object(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "object" and not {"anyOf", "oneOf", "allOf", "$ref"} & schema.keys()


def _spoken(schema: dict[str, Any]) -> str:
    return f"Answer with JSON alone, valid against this JSON Schema:\n{dumps(schema).decode()}"


def _refused(message: str) -> ModelFailure:
    return ModelFailure(message, kind="contract_error", stage="send", retryable=False)
