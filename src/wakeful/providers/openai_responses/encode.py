"""Requests to the Responses API: a head, the history, a tail, as chunks that are made once.

The head (model, instructions, tools) and each item of the history are encoded once and handed over as they are, so that
consecutive requests of a turn share their bytes from the first to the last old item. Pure: no clock, no network. What a
setting asked for and this model does not take is left out and reported, never left out in silence.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.errors import InvalidConfig, ModelFailure
from wakeful.ports import ModelRequest
from wakeful.providers.openai_responses.items import ItemEncoder, dumped
from wakeful.providers.profiles import OPEN_SAMPLING, ModelProfile
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.schemas import Mode, emit

ENCRYPTED = "reasoning.encrypted_content"
FREEFORM = "freeform_tools"
"""A setting: tools that take one text are offered as such, with their grammar."""
OURS = frozenset(
    {
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "stream",
        "store",
        "previous_response_id",
        "conversation",
    }
)
"""Fields that follow from the request or the client; a setting of that name would break what they promise."""
READ = frozenset(
    {
        "max_tokens",
        "max_output_tokens",
        "reasoning",
        "reasoning_effort",
        "reasoning_summary",
        "text",
        "verbosity",
        "include",
        "parallel_tool_calls",
        "prompt_cache_key",
        "background",
        FREEFORM,
        *OPEN_SAMPLING,
    }
)
"""Settings that have a place of their own; others go to the provider as they are."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How an endpoint that speaks this format differs from OpenAI's own."""

    always_streams: bool = False
    """There is no other way to be answered."""
    limits_output: bool = True
    """Takes `max_output_tokens`."""
    wants_every_field: bool = False
    """Fields stand in the request even when they are empty."""
    item_ids: bool = False
    """Wants the ids of its own items back, and has what they name."""


OPENAI_RULES = Rules()
CODEX_RULES = Rules(always_streams=True, limits_output=False, wants_every_field=True)
"""The rules of an endpoint with the quirk `codex`."""


class Encoded(NamedTuple):
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


class Encoder:
    """Encodes the requests of one model for one set of tools."""

    __slots__ = (
        "_changes",
        "_head",
        "_head_of",
        "_items",
        "_model",
        "_profile",
        "_rules",
        "_schemas",
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
        rules: Rules = OPENAI_RULES,
        schemas: Mode = "relaxed",
    ) -> None:
        """`schemas` is how tool schemas are written; strict is for checks, no request at run time uses it."""
        self._schemas: Mode = schemas
        self._model = model
        self._profile = profile
        self.names = names
        self._rules = rules
        self._store = store
        self._items = {
            (reasons, freeform): ItemEncoder(
                names,
                provider=provider,
                ids=rules.item_ids,
                reasons=reasons,
                images=profile.images,
                files=profile.files,
                freeform=freeform,
            )
            for reasons in (True, False)
            for freeform in (True, False)
        }
        self._wire = f"openai_responses/{provider}/{rules.item_ids}/{profile.images}/{profile.files}"
        self._tools_digest = ""
        self._head = b""
        self._head_of: tuple[str, bool, Any] | None = None
        self._changes: tuple[str, ...] = ()

    def body(self, request: ModelRequest) -> list[bytes]:
        """The request's JSON, as chunks."""
        return self.encoded(request).body()

    def encoded(self, request: ModelRequest) -> Encoded:
        """The request in its pieces. Raises ModelFailure for a request that this format cannot say."""
        try:
            head, tail = self._head_for(request), self._tail(request)
        except InvalidConfig as error:  # a schema that no provider takes
            raise _unsayable(str(error)) from None
        how = self._reasons(request), _is_freeform(request)
        wire = f"{self._wire}/{how[0]}/{how[1]}/{self._tools_digest}"
        return Encoded(head, request.history.encoded(wire, self._items[how].encode), tail)

    def reply(self, request: ModelRequest, item: AssistantItem) -> bytes:
        """An answer to the request as it will stand in the next one's history."""
        return self._items[self._reasons(request), _is_freeform(request)].encode(item)

    def include(self, request: ModelRequest) -> list[str]:
        """What an answer has to hold beyond the usual; to be asked for again by whoever asks for the answer by id."""
        return list(self._reasoning(request.settings).get("include") or ())

    def changes(self, request: ModelRequest) -> list[str]:
        """What of the request's schemas had to be written differently for this provider."""
        self._head_for(request)
        if request.output_schema is None or not self._profile.structured_output:
            return list(self._changes)
        return [*self._changes, *(f"answer: {change}" for change in emit(request.output_schema).changes)]

    def left_out(self, request: ModelRequest) -> list[str]:
        """Settings that this model or endpoint does not take."""
        settings = request.settings
        left = [name for name in sorted(OPEN_SAMPLING - self._profile.sampling) if settings.get(name) is not None]
        if not self._rules.limits_output:
            left += [name for name in ("max_tokens", "max_output_tokens") if settings.get(name) is not None]
        if request.tools and not self._profile.tools:
            left.append("tools")
        if request.tools and not self._may_choose(request):
            left.append("tool_choice=required")
        if _own_cache_key(request) and "prompt_cache_key" not in self._profile.prompt:
            left.append("prompt_cache_key")
        if self._rules.always_streams and not request.stream:
            left.append("stream=false")
        return left

    def _head_for(self, request: ModelRequest) -> bytes:
        same, instructions, freeform = self._head_of, self._instructions(request), _is_freeform(request)
        if same is not None and same[:2] == (instructions, freeform) and same[2] is request.tools:
            return self._head
        fields: dict[str, Any] = {"model": self._model}
        if instructions or self._rules.wants_every_field:
            fields["instructions"] = instructions
        tools = self._tools(request)
        if tools or self._rules.wants_every_field:
            fields["tools"] = tools
        self._head = dumped(fields)[:-1] + b',"input":['
        self._head_of = (instructions, freeform, request.tools)
        # The names of earlier calls depend on the tools: items of another set of tools are not the same bytes.
        self._tools_digest = hashlib.sha256(dumped([tool["name"] for tool in tools])).hexdigest()[:16]
        return self._head

    def _instructions(self, request: ModelRequest) -> str:
        """A model that cannot be held to a shape is told of it in words; its answer is checked either way."""
        if request.output_schema is None or self._profile.structured_output:
            return request.instructions
        shape = json.dumps(request.output_schema, ensure_ascii=False)
        said = f"Give your final answer as one JSON object that fits this JSON Schema, and nothing else: {shape}"
        return f"{request.instructions}\n\n{said}" if request.instructions else said

    def _tools(self, request: ModelRequest) -> list[dict[str, Any]]:
        if not self._profile.tools:
            return []
        tools: list[dict[str, Any]] = []
        changes: list[str] = []
        for tool in request.tools:
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
        taken = sorted(OURS & settings.keys())
        if taken:
            raise _unsayable(f"settings.{taken[0]} is not a setting: it follows from the request")
        background = is_background(settings)
        fields: dict[str, Any] = {
            # What the provider makes by itself it has to keep until it was asked for.
            "store": self._store or background,
            "stream": request.stream or rules.always_streams,
        }
        if background:
            fields["background"] = True
        fields.update(self._tool_use(request))
        fields.update(self._reasoning(settings))
        text = self._text(request)
        if text:
            fields["text"] = text
        limit = settings.get("max_output_tokens", settings.get("max_tokens"))
        if limit is not None and rules.limits_output:
            fields["max_output_tokens"] = limit
        if settings.get("prompt_cache_key") and "prompt_cache_key" in self._profile.prompt:
            fields["prompt_cache_key"] = settings["prompt_cache_key"]
        fields.update(
            {name: value for name, value in settings.items() if name not in READ or name in self._profile.sampling}
        )
        return b"]," + dumped(fields)[1:]

    def _tool_use(self, request: ModelRequest) -> dict[str, Any]:
        every = self._rules.wants_every_field
        if not request.tools or not self._profile.tools:
            if request.tool_choice == "required":
                raise _unsayable("a tool call is required, and there is no tool this model could call")
            return {"tool_choice": "auto", "parallel_tool_calls": False} if every else {}
        fields: dict[str, Any] = {}
        choice = request.tool_choice if self._may_choose(request) else "auto"
        if choice != "auto" or every:
            fields["tool_choice"] = choice
        parallel = request.settings.get("parallel_tool_calls", None if self._profile.parallel_tool_calls else False)
        if parallel is not None or every:
            fields["parallel_tool_calls"] = True if parallel is None else bool(parallel)
        return fields

    def _may_choose(self, request: ModelRequest) -> bool:
        return request.tool_choice != "required" or self._profile.forced_tool_choice

    def _reasons(self, request: ModelRequest) -> bool:
        """Declared, or asked for by somebody who knows the model better than its profile does."""
        return bool(self._profile.reasoning or _asked_reasoning(request.settings))

    def _reasoning(self, settings: dict[str, Any]) -> dict[str, Any]:
        reasoning = _asked_reasoning(settings)
        include = list(settings.get("include") or ())
        if (self._profile.reasoning or reasoning) and ENCRYPTED not in include:
            include.append(ENCRYPTED)
        fields: dict[str, Any] = {}
        if reasoning or self._rules.wants_every_field:
            fields["reasoning"] = reasoning or None
        if include or self._rules.wants_every_field:
            fields["include"] = include
        return fields

    def _text(self, request: ModelRequest) -> dict[str, Any]:
        settings = request.settings
        text = dict(settings["text"]) if isinstance(settings.get("text"), dict) else {}
        if settings.get("verbosity") is not None:
            text["verbosity"] = settings["verbosity"]
        if request.output_schema is not None and self._profile.structured_output:
            text["format"] = output_format(request.output_schema)
        return text


def is_background(settings: Mapping[str, Any]) -> bool:
    """Is the provider to work at the request by itself? Raises ModelFailure for a setting that is no yes or no."""
    wanted = settings.get("background")
    if wanted not in (None, True, False):
        raise _unsayable(f"settings.background is {wanted!r}; it is True or False")
    return bool(wanted)


def _asked_reasoning(settings: dict[str, Any]) -> dict[str, Any]:
    reasoning = dict(settings["reasoning"]) if isinstance(settings.get("reasoning"), dict) else {}
    for name, field in (("reasoning_effort", "effort"), ("reasoning_summary", "summary")):
        if settings.get(name) is not None:
            reasoning[field] = settings[name]
    return reasoning


def _own_cache_key(request: ModelRequest) -> bool:
    """Somebody chose the key; otherwise it is the frame's, for those who can use it."""
    key, cache = request.settings.get("prompt_cache_key"), request.frame.cache if request.frame is not None else None
    return bool(key) and (cache is None or key != cache.prompt_cache_key)


def _listed(items: Sequence[bytes]) -> list[bytes]:
    """Chunks without those that say nothing, and without the comma before the first."""
    chunks = [chunk for chunk in items if chunk]
    if chunks:
        chunks[0] = chunks[0][1:]
    return chunks


def output_format(schema: dict[str, Any]) -> dict[str, Any]:
    """The shape of the answer. Strict where that changes nothing about the shape, so that what is valid stays valid."""
    relaxed = emit(schema, "relaxed", "openai").schema
    title = re.sub(r"[^A-Za-z0-9_-]+", "_", str(schema.get("title") or "output"))[:64]
    return {
        "type": "json_schema",
        "name": title or "output",
        "schema": relaxed,
        "strict": relaxed == emit(schema, "strict", "openai").schema,
    }


def _unsayable(message: str) -> ModelFailure:
    return ModelFailure(message, kind="contract_error", stage="send", retryable=False)


def _is_freeform(request: ModelRequest) -> bool:
    return bool(request.settings.get(FREEFORM))
