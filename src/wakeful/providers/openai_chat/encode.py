"""Requests to a Chat Completions server: a head, the history, a tail, as chunks that are made once. Pure.

The head (model, tools, system message) and every message of the history are encoded once and handed over as they are,
so consecutive requests of a turn share their bytes up to the last old message. What this model does not take is left
out and reported (`left_out`, `changes`); what a request cannot mean without is refused.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from wakeful.contracts.conversation import ToolItem
from wakeful.contracts.errors import InvalidConfig, ModelFailure
from wakeful.contracts.model_settings import ModelSettings, ToolChoice
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.answer_shapes import as_object, needs_wrapping
from wakeful.ports import ModelRequest
from wakeful.providers.endpoints import provider_name
from wakeful.providers.openai_chat.dialect import COMPATIBLE, Dialect
from wakeful.providers.openai_chat.messages import Messages, dumps
from wakeful.providers.openai_chat.settings_writer import OWN, written
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.answer_forms import AnswerForm, AnswerForms, answer_in_words
from wakeful.providers.wire.attachments import Attachments
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.schemas import emit
from wakeful.providers.wire.server_tools import untaken_tools
from wakeful.providers.wire.setting_fields import SettingFields, asked_tools, forces, is_several

_ROLE, _USER, _TOOL = b',{"role":', b',{"role":"user"', b',{"role":"tool"'
_OPEN_USER = b',{"role":"user","content":['
_BRIDGE = b',{"role":"assistant","content":"I have the results."}'
_CLOSE_USER = b"]}"


class ChatEncoder:
    """Encodes the requests of one model for one set of tools."""

    __slots__ = (
        "_after",
        "_answers",
        "_changes",
        "_dialect",
        "_head",
        "_head_of",
        "_messages",
        "_model",
        "_names_several",
        "_profile",
        "_settings",
        "_shared",
        "_vendor",
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
        vendor: str | None = None,
        attachments: Attachments | None = None,
    ) -> None:
        """`vendor` is whose rules hold and whose settings are sent; the provider's own, when it is left out."""
        self._model = model
        self._profile = profile
        self.names = names
        self._dialect = dialect
        self._vendor = vendor or provider_name(provider)
        self._names_several = provider_name(provider) == OWN  # older versions of the API elsewhere cannot
        self._settings: tuple[ModelSettings, SettingFields] | None = None
        self._answers = AnswerForms("openai")
        shown = attachments or Attachments(f"{provider}:{model}", profile, "openai_chat")
        self._messages = Messages(provider=provider, names=names, dialect=dialect, attachments=shown)
        self._shared = repr((provider, model, dialect, shown.key))
        self._wire = self._after = ""
        self._head = b""
        self._head_of: tuple[str, Sequence[ToolDeclaration], dict[str, Any] | None, ToolChoice] | None = None
        self._changes: tuple[str, ...] = ()

    def body(self, request: ModelRequest) -> list[bytes]:
        """The request's JSON, as chunks. Raises ModelFailure for a request that this format or model cannot take."""
        head = self._head_for(request)
        messages = list(request.history.encoded(self._wire, self._messages.encode))
        after = request.history.encoded(self._after, self._messages.shown_after)
        if any(after):
            messages = _with_attachments(messages, after, request.history)
        if not self._dialect.user_after_tool:
            messages = _bridged(messages)
        messages = [message for message in messages if message]
        if messages and head.endswith(b"["):
            messages[0] = messages[0][1:]  # nothing stands before it, so its comma goes
        return [head, *messages, self._tail(request)]

    def changes(self, request: ModelRequest) -> tuple[str, ...]:
        """What of the request's schemas had to be written differently for this provider."""
        self._head_for(request)
        form = self._form(request)
        return self._changes if form is None else (*self._changes, *(f"answer: {each}" for each in form.changes))

    def wraps(self, request: ModelRequest) -> bool:
        """Whether the answer is asked for as the one property of an object."""
        form = self._form(request)
        if form is None and request.output_schema is not None and self._dialect.response_format == "json_object":
            return needs_wrapping(request.output_schema)
        return form is not None and form.wrapped

    def left_out(self, request: ModelRequest) -> list[str]:
        """What was asked for and this model does not take."""
        left = list(self._written(request.settings).left_out)
        if request.tools and not self._profile.tools:
            left.append("tools")
        left += untaken_tools(request.server_tools)
        if forces(request.tool_choice) and self._choice(request) == "auto":
            left.append("tool_choice")
        if request.settings.parallel_tool_calls and request.tools and not self._may_say_parallel:
            left.append("parallel_tool_calls")
        return left

    def _written(self, settings: ModelSettings) -> SettingFields:
        """Made once for a turn: its requests have the same settings."""
        if self._settings is None or self._settings[0] is not settings:
            self._settings = settings, written(settings, self._profile, self._dialect, self._vendor)
        return self._settings[1]

    # --- head -------------------------------------------------------------------------------------------------------

    def _head_for(self, request: ModelRequest) -> bytes:
        guidance = _guidance(request)
        of, offered, wanted = self._head_of, self._offered(request), request.output_schema
        if of is not None and of[0] == guidance and of[1] is request.tools and of[2] is wanted and of[3] == offered:
            return self._head
        spoken = self._spoken(request)
        fields: dict[str, Any] = {"model": self._model}
        tools = self._tools(request)
        if tools:
            fields["tools"] = tools
        head = dumps(fields)[:-1] + b',"messages":['
        said = guidance if spoken is None else f"{guidance}\n\n{answer_in_words(spoken)}".strip()
        if said:
            head += dumps({"role": self._dialect.system_role, "content": said})
        # The names of earlier calls depend on the tools: messages of another set of tools are not the same bytes.
        names = [self.names.to_wire(tool.name) for tool in request.tools]
        digest = hashlib.sha256(f"{self._shared}{names}".encode()).hexdigest()[:16]
        self._wire, self._after = f"openai_chat/{digest}", f"openai_chat.after/{digest}"
        self._head, self._head_of = head, (guidance, request.tools, wanted, offered)
        return head

    def _tools(self, request: ModelRequest) -> list[dict[str, Any]]:
        if not self._profile.tools:
            return []
        tools = []
        changes: list[str] = []
        for tool in asked_tools(self._offered(request), request.tools):
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
        fields: dict[str, Any] = {"stream": request.stream}
        if request.stream and self._dialect.stream_usage:
            fields["stream_options"] = {"include_usage": True}
        fields.update(self._tool_use(request))
        fields.update(self._format(request))
        key = self._cache_key(request)
        if key is not None:
            fields["prompt_cache_key"] = key
        fields.update(self._written(request.settings).fields)
        return b"]," + dumps(fields)[1:]

    def _cache_key(self, request: ModelRequest) -> Any:
        """The runtime names a key in every request; servers that do not know the field may refuse it."""
        if not self._dialect.prompt_cache_key or request.settings.cache is False:
            return None
        key = request.settings.vendor(self._vendor).get("prompt_cache_key")
        cache = request.frame.cache if request.frame is not None else None
        return cache.prompt_cache_key if key is None and cache is not None else key

    def _tool_use(self, request: ModelRequest) -> dict[str, Any]:
        if not request.tools or not self._profile.tools:
            return {}
        fields: dict[str, Any] = {}
        choice = self._choice(request)
        if choice != "auto":
            fields["tool_choice"] = self._said_choice(choice)
        parallel = request.settings.parallel_tool_calls
        if parallel is not None and self._may_say_parallel:
            fields["parallel_tool_calls"] = parallel
        return fields

    @property
    def _may_say_parallel(self) -> bool:
        """OpenAI's models that make one call at a time refuse the field."""
        return self._vendor != OWN or self._profile.parallel_tool_calls

    def _choice(self, request: ModelRequest) -> ToolChoice:
        can = bool(request.tools) and self._profile.tools and self._profile.forced_tool_choice
        return "auto" if forces(request.tool_choice) and not can else request.tool_choice

    def _offered(self, request: ModelRequest) -> ToolChoice:
        """OpenAI's own endpoint can be told several names; elsewhere the other tools are not offered."""
        choice = self._choice(request)
        return choice if is_several(choice) and not self._names_several else "auto"

    def _said_choice(self, choice: ToolChoice) -> Any:
        if not isinstance(choice, tuple):
            return choice
        named = [{"type": "function", "function": {"name": self.names.to_wire(name)}} for name in choice]
        if len(named) == 1:
            return named[0]
        if not self._names_several:
            return "required"
        return {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": named}}

    def _form(self, request: ModelRequest) -> AnswerForm | None:
        """The schema that the server is held to; None where the model is told of it, or there is none."""
        held = self._profile.structured_output and self._dialect.response_format == "json_schema"
        return self._answers.form(request.output_schema) if held and request.output_schema is not None else None

    def _spoken(self, request: ModelRequest) -> dict[str, Any] | None:
        """The schema that goes into words. A server that answers with nothing but objects is asked for one."""
        schema = request.output_schema
        if schema is None or self._form(request) is not None:
            return None
        return as_object(schema) if self._dialect.response_format == "json_object" else schema

    def _format(self, request: ModelRequest) -> dict[str, Any]:
        form = self._form(request)
        if form is not None:
            described = {"name": form.name, "schema": form.schema, "strict": form.strict}
            return {"response_format": {"type": "json_schema", "json_schema": described}}
        objects = request.output_schema is not None and self._dialect.response_format == "json_object"
        return {"response_format": {"type": "json_object"}} if objects else {}


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


def _bridged(messages: Sequence[bytes]) -> list[bytes]:
    """An assistant message between tool results and a user message, for servers that refuse the one after the other."""
    out: list[bytes] = []
    after_tool = False
    for message in messages:
        if not message:
            continue
        if after_tool and message.startswith(_USER):
            out.append(_BRIDGE)
        if message.startswith(_ROLE):  # what goes on with an open message is in no role of its own
            after_tool = message.startswith(_TOOL)
        out.append(message)
    return out


def _user_message(parts: list[bytes]) -> list[bytes]:
    return [_OPEN_USER + parts[0][1:], *parts[1:], _CLOSE_USER]


def _refused(message: str) -> ModelFailure:
    return ModelFailure(message, kind="contract_error", stage="send", retryable=False)
