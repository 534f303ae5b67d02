"""Requests to the Responses API: a head, the history, a tail, as chunks that are made once.

The head (model, instructions, tools) and each item of the history are encoded once and handed over as they are, so that
consecutive requests of a turn share their bytes from the first to the last old item. Pure: no clock, no network. What a
setting asked for and this model does not take is left out and reported, never left out in silence.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wakeful.contracts.content import Thinking
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.errors import InvalidConfig, ModelFailure
from wakeful.contracts.model_settings import ModelSettings, ToolChoice
from wakeful.contracts.tools import ServerTool
from wakeful.ports import ModelRequest
from wakeful.providers.endpoints import provider_name
from wakeful.providers.openai_responses.items import ItemEncoder, dumped
from wakeful.providers.openai_responses.settings_writer import (
    FREEFORM,
    VENDOR,
    is_background,
    reasoning_of,
    text_of,
    written,
)
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.answer_forms import AnswerForm, AnswerForms, answer_in_words
from wakeful.providers.wire.attachments import Attachments
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.schemas import Mode, emit
from wakeful.providers.wire.server_tools import untaken_options, untaken_tools
from wakeful.providers.wire.setting_fields import SettingFields, asked_tools, forces, is_several

TOLD = ("allowed_domains",)
"""Options of a search that this format has words for."""
ENCRYPTED = "reasoning.encrypted_content"


@dataclass(frozen=True, slots=True)
class WireRules:
    """How an endpoint that speaks this format differs from OpenAI's own."""

    always_streams: bool = False
    """There is no other way to be answered."""
    limits_output: bool = True
    """Takes `max_output_tokens`."""
    wants_every_field: bool = False
    """Fields stand in the request even when they are empty."""
    item_ids: bool = False
    """Wants the ids of its own items back, and has what they name."""
    plain_reasoning: bool = False
    """Takes all its reasoning back as it gave it, also what is neither encrypted nor more than a summary."""
    keeps_answers: bool = True
    """Can work at a request by itself, and keep what goes with it."""


OPENAI_RULES = WireRules()
CODEX_RULES = WireRules(always_streams=True, limits_output=False, wants_every_field=True, keeps_answers=False)
"""The rules of an endpoint with the quirk `codex`."""


class EncodedRequest(NamedTuple):
    """A request in three pieces. `head` and `items` grow and never change within a turn."""

    head: bytes
    items: Sequence[bytes]
    """One entry for each item of the history, each wire item with a comma before it; empty for one that is left out."""
    tail: bytes

    def body(self) -> list[bytes]:
        """The whole request as chunks."""
        return [self.head, *_listed(self.items), self.tail]

    def body_after(self, previous_response_id: str, items: int) -> list[bytes]:
        """Only what follows the first `items`, for a provider that has the rest."""
        link = b',"previous_response_id":' + dumped(previous_response_id) + b"}"
        return [self.head, *_listed(self.items[items:]), self.tail[:-1], link]


class ResponsesEncoder:
    """Encodes the requests of one model for one set of tools."""

    __slots__ = (
        "_answers",
        "_changes",
        "_head",
        "_head_of",
        "_items",
        "_model",
        "_profile",
        "_provider",
        "_rules",
        "_schemas",
        "_settings",
        "_store",
        "_tools_digest",
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
        store: bool = False,
        rules: WireRules = OPENAI_RULES,
        schemas: Mode = "relaxed",
        attachments: Attachments | None = None,
    ) -> None:
        """`schemas` is how tool schemas are written; strict is for checks, no request at run time uses it."""
        self._schemas: Mode = schemas
        self._answers = AnswerForms("openai")
        self._model = model
        self._profile = profile
        self.names = names
        self._rules = rules
        self._provider = provider
        self._settings: tuple[ModelSettings, SettingFields] | None = None
        self._store = store
        shown = attachments or Attachments(f"{provider}:{model}", profile, "openai_responses")
        self._items = {
            (reasons, freeform): ItemEncoder(
                names,
                provider=provider,
                ids=rules.item_ids,
                plain_reasoning=rules.plain_reasoning,
                reasons=reasons,
                attachments=shown,
                freeform=freeform,
            )
            for reasons in (True, False)
            for freeform in (True, False)
        }
        how = (rules.item_ids, rules.plain_reasoning, profile.files, shown.key)
        self._wire = f"openai_responses/{provider}/{'/'.join(map(str, how))}"
        self._tools_digest = ""
        self._head = b""
        self._head_of: tuple[str, bool, ToolChoice, tuple[ServerTool, ...], Any] | None = None
        self._changes: tuple[str, ...] = ()

    def body(self, request: ModelRequest) -> list[bytes]:
        """The request's JSON, as chunks."""
        return self.encoded(request).body()

    def encoded(self, request: ModelRequest) -> EncodedRequest:
        """The request in its pieces. Raises ModelFailure for a request that this format cannot say."""
        try:
            head, tail = self._head_for(request), self._tail(request)
        except InvalidConfig as error:  # a schema that no provider takes
            raise _unsayable(str(error)) from None
        how = self._reasons(request), _is_freeform(request)
        wire = f"{self._wire}/{how[0]}/{how[1]}/{self._tools_digest}"
        return EncodedRequest(head, request.history.encoded(wire, self._items[how].encode), tail)

    def reply(self, request: ModelRequest, item: AssistantItem) -> bytes:
        """An answer to the request as it will stand in the next one's history."""
        return self._items[self._reasons(request), _is_freeform(request)].encode(item)

    def include(self, request: ModelRequest) -> list[str]:
        """What an answer has to hold beyond the usual; to be asked for again by whoever asks for the answer by id."""
        return list(self._reasoning(request).get("include") or ())

    def changes(self, request: ModelRequest) -> list[str]:
        """What of the request's schemas had to be written differently for this provider."""
        self._head_for(request)
        form = self._form(request)
        return list(self._changes) if form is None else [*self._changes, *(f"answer: {each}" for each in form.changes)]

    def wraps(self, request: ModelRequest) -> bool:
        """Whether the answer is asked for as the one property of an object."""
        form = self._form(request)
        return form is not None and form.wrapped

    def _form(self, request: ModelRequest) -> AnswerForm | None:
        schema = request.output_schema
        return None if schema is None or not self._profile.structured_output else self._answers.form(schema)

    def left_out(self, request: ModelRequest) -> list[str]:
        """Settings that this model or endpoint does not take."""
        left = list(self._written(request.settings).left_out)
        if request.tools and not self._profile.tools:
            left.append("tools")
        taken = self._profile.tools
        left += untaken_options(request.server_tools, TOLD) if taken else untaken_tools(request.server_tools)
        if forces(request.tool_choice) and self._choice(request) == "auto":
            left.append("tool_choice")
        if self._rules.always_streams and not request.stream:
            left.append("stream=false")
        return left

    def _written(self, settings: ModelSettings) -> SettingFields:
        """Made once for a turn: its requests have the same settings."""
        if self._settings is None or self._settings[0] is not settings:
            rules = self._rules
            made = written(
                settings, self._profile, limits_output=rules.limits_output, keeps_answers=rules.keeps_answers
            )
            self._settings = settings, made
        return self._settings[1]

    def _head_for(self, request: ModelRequest) -> bytes:
        same, instructions, freeform = self._head_of, self._instructions(request), _is_freeform(request)
        offered = self._offered(request)
        searches = request.server_tools
        known = (instructions, freeform, offered, searches)
        if same is not None and same[:4] == known and same[4] is request.tools:
            return self._head
        fields: dict[str, Any] = {"model": self._model}
        if instructions or self._rules.wants_every_field:
            fields["instructions"] = instructions
        tools = self._tools(request)
        if self._profile.tools:
            tools += map(_search, searches)
        if tools or self._rules.wants_every_field:
            fields["tools"] = tools
        self._head = dumped(fields)[:-1] + b',"input":['
        self._head_of = (*known, request.tools)
        # The names of earlier calls depend on the tools: items of another set of tools are not the same bytes.
        named = [self.names.to_wire(tool.name) for tool in request.tools] if tools else []
        self._tools_digest = hashlib.sha256(dumped(named)).hexdigest()[:16]
        return self._head

    def _instructions(self, request: ModelRequest) -> str:
        """A model that cannot be held to a shape is told of it in words; its answer is checked either way."""
        if request.output_schema is None or self._profile.structured_output:
            return request.instructions
        said = answer_in_words(request.output_schema)
        return f"{request.instructions}\n\n{said}" if request.instructions else said

    def _tools(self, request: ModelRequest) -> list[dict[str, Any]]:
        if not self._profile.tools:
            return []
        tools: list[dict[str, Any]] = []
        changes: list[str] = []
        for tool in asked_tools(self._offered(request), request.tools):
            if _is_freeform(request) and tool.freeform is not None and tool.name in self.names.freeform:
                grammar = {"type": "grammar", "syntax": "lark", "definition": tool.freeform.grammar}
                named = {"name": self.names.to_wire(tool.name), "description": tool.description}
                tools.append({"type": "custom", **named, "format": grammar})
                continue
            emitted = emit(tool.input_schema, self._schemas, "openai")
            changes += [f"{tool.name}: {change}" for change in emitted.changes]
            tools.append(
                {
                    "type": "function",
                    "name": self.names.to_wire(tool.name),
                    "description": tool.description,
                    "parameters": emitted.schema,
                    "strict": self._schemas == "strict" and emitted.strict,
                }
            )
        self._changes = tuple(changes)
        return tools

    def _tail(self, request: ModelRequest) -> bytes:
        settings, rules = request.settings, self._rules
        background = is_background(settings) and rules.keeps_answers
        fields: dict[str, Any] = {
            # What the provider makes by itself it has to keep until it was asked for.
            "store": self._store or background,
            "stream": request.stream or rules.always_streams,
        }
        if background:
            fields["background"] = True
        fields.update(self._tool_use(request))
        fields.update(self._reasoning(request))
        text = self._text(request)
        if text:
            fields["text"] = text
        key = cache_key(request)
        if key and "prompt_cache_key" in self._profile.prompt:
            fields["prompt_cache_key"] = key
        fields.update(self._written(settings).fields)
        return b"]," + dumped(fields)[1:]

    def _tool_use(self, request: ModelRequest) -> dict[str, Any]:
        every = self._rules.wants_every_field
        if not request.tools or not self._profile.tools:
            return {"tool_choice": "auto", "parallel_tool_calls": False} if every else {}
        fields: dict[str, Any] = {}
        choice = self._choice(request)
        if choice != "auto" or every:
            fields["tool_choice"] = self._said_choice(choice, request)
        asked = request.settings.parallel_tool_calls
        parallel = asked if asked is not None else None if self._profile.parallel_tool_calls else False
        if parallel is not None or every:
            fields["parallel_tool_calls"] = True if parallel is None else parallel
        return fields

    def _choice(self, request: ModelRequest) -> ToolChoice:
        can = bool(request.tools) and self._profile.tools and self._profile.forced_tool_choice
        return "auto" if forces(request.tool_choice) and not can else request.tool_choice

    def _offered(self, request: ModelRequest) -> ToolChoice:
        """OpenAI's own endpoint can be told several names; elsewhere the other tools are not offered."""
        choice = self._choice(request)
        return choice if is_several(choice) and provider_name(self._provider) != VENDOR else "auto"

    def _said_choice(self, choice: ToolChoice, request: ModelRequest) -> Any:
        if not isinstance(choice, tuple):
            return choice
        bare = self.names.freeform if _is_freeform(request) else {}
        named = [
            {"type": "custom" if name in bare else "function", "name": self.names.to_wire(name)} for name in choice
        ]
        if len(named) == 1:
            return named[0]
        own = provider_name(self._provider) == VENDOR
        return {"type": "allowed_tools", "mode": "required", "tools": named} if own else "required"

    def _reasons(self, request: ModelRequest) -> bool:
        """Declared, not known, or asked for by somebody who knows the model better than its profile does."""
        return self._profile.reasoning is not False or bool(reasoning_of(request.settings, self._profile))

    def _reasoning(self, request: ModelRequest) -> dict[str, Any]:
        settings = request.settings
        reasoning = reasoning_of(settings, self._profile)
        include = list(settings.vendor(VENDOR).get("include") or ())
        # A model that does not reason refuses to be asked for it; of one that is not known, its own replies tell.
        known = self._profile.reasoning is None and self._has_reasoned(request)
        if (self._profile.reasoning or reasoning or known) and ENCRYPTED not in include:
            include.append(ENCRYPTED)
        fields: dict[str, Any] = {}
        if reasoning or self._rules.wants_every_field:
            fields["reasoning"] = reasoning or None
        if include or self._rules.wants_every_field:
            fields["include"] = include
        return fields

    def _has_reasoned(self, request: ModelRequest) -> bool:
        """Whether the newest reply in the history is this provider's and holds reasoning."""
        for at in range(len(request.history) - 1, -1, -1):
            if isinstance(item := request.history[at], AssistantItem):
                thoughts = (part for part in item.parts if isinstance(part, Thinking))
                return any(
                    part.provider == self._provider and part.opaque.get("type") == "reasoning" for part in thoughts
                )
        return False

    def _text(self, request: ModelRequest) -> dict[str, Any]:
        text = text_of(request.settings)
        form = self._form(request)
        if form is not None:
            described = {"type": "json_schema", "name": form.name, "schema": form.schema, "strict": form.strict}
            text["format"] = described
        return text


def cache_key(request: ModelRequest) -> str | None:
    """What the provider may cache the prompt under: the caller's word, else the frame's; None: it is not to."""
    if request.settings.cache is False:
        return None
    own = request.settings.vendor(VENDOR).get("prompt_cache_key")
    cache = request.frame.cache if request.frame is not None else None
    return str(own) if own else cache.prompt_cache_key if cache is not None else None


def _listed(items: Sequence[bytes]) -> list[bytes]:
    """Chunks without those that say nothing, and without the comma before the first."""
    chunks = [chunk for chunk in items if chunk]
    if chunks:
        chunks[0] = chunks[0][1:]
    return chunks


def _unsayable(message: str) -> ModelFailure:
    return ModelFailure(message, kind="contract_error", stage="send", retryable=False)


def _is_freeform(request: ModelRequest) -> bool:
    return bool(request.settings.vendor(VENDOR).get(FREEFORM))


def _search(tool: ServerTool) -> dict[str, Any]:
    """The provider's own search, in its words."""
    where = {"filters": {"allowed_domains": list(tool.allowed_domains)}} if tool.allowed_domains else {}
    return {"type": tool.kind, **where}
