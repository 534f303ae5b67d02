"""A request to the Messages API, as chunks of JSON.

The body is head (model, tools, system), messages, tail (settings). The head is made once, each item of the history is
encoded once, and the tail is small: what a round costs does not grow with the conversation, and consecutive requests of
a turn have their whole prefix in common but for the one moving cache mark. Rule: a setting this API or this model
refuses is left out and named in `left_out`, never dropped in silence.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.models import ToolChoice
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.anthropic.block_writing import BlockWriter, dump
from wakeful.providers.anthropic.context_editing import CAPABILITY, SETTING, edits_of
from wakeful.providers.anthropic.joining import messages
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.schemas import Emitted, emit

FEW_TOKENS, MANY_TOKENS = 4_096, 32_000
"""The API wants a number. Without one from the caller: what every model takes, or as much as a long answer needs."""
SAMPLING = ("temperature", "top_p", "top_k")
RESERVED = frozenset(
    {
        "model",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "stream",
        "cache_control",
        "background",
        "freeform_tools",
    }
)
"""What the runtime says itself: a setting of that name would say it twice."""
SYSTEM_MARKS = 2
"""The API takes four cache marks: one is on the tools, one moves with the conversation."""
_MARK = {"type": "ephemeral"}
_CHOICES: dict[ToolChoice, str] = {"auto": "auto", "required": "any", "none": "none"}
_SPELLINGS = {"max_output_tokens": "max_tokens", "stop": "stop_sequences", "reasoning_effort": "effort"}
ANSWER_IN_JSON = (
    "When you give your final answer, answer with one JSON value and nothing else: no words before or after it and "
    "no code fence. It has to fit this JSON Schema:\n"
)


class Encoder:
    """Encodes requests of one model with one set of tools. Holds nothing of any one request."""

    def __init__(
        self,
        model: str,
        profile: ModelProfile,
        tools: Sequence[ToolDeclaration] = (),
        *,
        names: WireNames | None = None,
        provider: str = "anthropic",
        refuses_sampling: bool = False,
    ) -> None:
        self.names = names or WireNames(tools)
        self._profile = profile
        self._tools = tuple(tools) if profile.tools else ()
        self._no_tools = bool(tools) and not profile.tools
        self._caches = "prompt_cache_blocks" in profile.prompt
        self._sampling = frozenset[str]() if refuses_sampling else profile.sampling
        self._writer = BlockWriter(provider, self.names, images=profile.images, files=profile.files)
        self._wire = self._format()
        changes: list[str] = []
        self._start = b'{"model":' + dump(model) + self._tool_list(changes)
        self._changes = tuple(changes)
        self._heads: dict[tuple[tuple[str, bool], ...], bytes] = {}
        self._answer: tuple[dict[str, Any], Emitted | None] | None = None

    def body(self, request: ModelRequest) -> list[bytes]:
        """The request as chunks. They are handed over as they are: joining them would copy the whole conversation."""
        form = self._answer_form(request.output_schema)
        blocks = _prompt(request)
        if request.output_schema is not None and form is None:
            blocks.append((ANSWER_IN_JSON + dump(request.output_schema).decode(), True))
        inside = messages(request.history, self._wire, self._writer, mark=self._caches)
        return [self._head(tuple(blocks)), *inside, self._tail(request, form)]

    def changes(self, request: ModelRequest) -> tuple[str, ...]:
        """What of the tools' schemas and of the answer's had to be rewritten for this provider."""
        form = self._answer_form(request.output_schema)
        return (*self._changes, *(f"answer: {change}" for change in form.changes)) if form else self._changes

    def left_out(self, request: ModelRequest) -> tuple[str, ...]:
        """Settings of this request that are not sent, because they would be refused."""
        settings = _spelled(request.settings)
        refused = [name for name in settings if name in RESERVED or not self._accepts(name, settings)]
        if self._no_tools:
            refused.append("tools")
        elif request.tool_choice == "required" and not self._can_force(settings) and "tool_choice" not in refused:
            refused.append("tool_choice")
        return tuple(refused)

    def _can_force(self, settings: Mapping[str, Any]) -> bool:
        """May the model be told that it must call a tool? Never while it thinks."""
        return self._profile.forced_tool_choice and not _thinks(settings)

    def _accepts(self, name: str, settings: Mapping[str, Any]) -> bool:
        if name in SAMPLING:
            # While it thinks, a model samples as it likes: the API takes no temperature beside that.
            return name in self._sampling and not _thinks(settings)
        return name != SETTING or CAPABILITY in self._profile.prompt

    def edits(self, request: ModelRequest) -> dict[str, Any] | None:
        """What the provider may clear of the conversation; None when nobody asked, or this model has no such thing."""
        return edits_of(request.settings) if self._accepts(SETTING, {}) else None

    # --- head: the same for every request of a turn ---

    def _head(self, blocks: tuple[tuple[str, bool], ...]) -> bytes:
        head = self._heads.get(blocks)
        if head is None:
            if len(self._heads) > 16:
                self._heads.clear()
            head = self._heads[blocks] = self._start + self._system(blocks) + b',"messages":['
        return head

    def _tool_list(self, changes: list[str]) -> bytes:
        if not self._tools:
            return b""
        listed = []
        for tool in self._tools:
            emitted = emit(tool.input_schema, "relaxed", "anthropic")
            changes += [f"{tool.name}: {change}" for change in emitted.changes]
            entry: dict[str, Any] = {"name": self.names.to_wire(tool.name)}
            if tool.description:
                entry["description"] = tool.description
            listed.append({**entry, "input_schema": emitted.schema})
        if self._caches:  # the tools change only with the agent itself
            listed[-1]["cache_control"] = _MARK
        return b',"tools":' + dump(listed)

    def _system(self, blocks: tuple[tuple[str, bool], ...]) -> bytes:
        said = [(text, marked) for text, marked in blocks if text.strip()]
        marks = [at for at, (_, marked) in enumerate(said) if marked][-SYSTEM_MARKS:] if self._caches else []
        listed = [
            {"type": "text", "text": text, **({"cache_control": _MARK} if at in marks else {})}
            for at, (text, _) in enumerate(said)
        ]
        return b',"system":' + dump(listed) if listed else b""

    # --- tail: what holds for this request ---

    def _tail(self, request: ModelRequest, form: Emitted | None) -> bytes:
        settings = _spelled(request.settings)
        refused = set(self.left_out(request))
        given = {name: value for name, value in settings.items() if name not in refused and value is not None}
        parallel = bool(given.pop("parallel_tool_calls", True)) and self._profile.parallel_tool_calls
        output = {**given.pop("output_config", {})}
        given.pop(SETTING, None)
        if "effort" in given:
            output["effort"] = given.pop("effort")
        if form is not None:
            output["format"] = {"type": "json_schema", "schema": form.schema}
        fields = {"max_tokens": most_tokens(self._profile), **given}
        if isinstance(fields.get("stop_sequences"), str):
            fields["stop_sequences"] = [fields["stop_sequences"]]
        unforced = request.tool_choice == "required" and not self._can_force(settings)
        choice = self._tool_choice("auto" if unforced else request.tool_choice, parallel=parallel)
        optional = {"tool_choice": choice, "output_config": output or None, SETTING: self.edits(request)}
        fields |= {name: value for name, value in optional.items() if value is not None}
        return b"]," + dump({**fields, "stream": request.stream})[1:]

    def _answer_form(self, source: dict[str, Any] | None) -> Emitted | None:
        """The schema the API holds the answer to; None when the model is told it instead, or there is none.

        Emitted once a turn: the source is the same object in each of its requests.
        """
        if source is None or not self._profile.structured_output:
            return None
        if self._answer is None or self._answer[0] is not source:
            try:
                self._answer = (source, emit(source, "strict", "anthropic"))
            except InvalidConfig:  # the API takes objects only
                self._answer = (source, None)
        return self._answer[1]

    def _tool_choice(self, choice: ToolChoice, *, parallel: bool) -> dict[str, Any] | None:
        if not self._tools or (choice == "auto" and parallel):
            return None
        if choice == "none" or parallel:
            return {"type": _CHOICES[choice]}
        return {"type": _CHOICES[choice], "disable_parallel_tool_use": True}

    def _format(self) -> str:
        """Items are kept under this name: whatever changes their bytes changes it."""
        writer = [[tool.name, self.names.to_wire(tool.name)] for tool in self._tools]
        known = dump([writer, self._profile.images, self._profile.files])
        return f"anthropic_messages/{self._writer.provider}/{hashlib.sha256(known).hexdigest()[:16]}"


def most_tokens(profile: ModelProfile) -> int:
    """How long an answer may be when the caller does not say."""
    return min(profile.max_output or FEW_TOKENS, MANY_TOKENS)


def _prompt(request: ModelRequest) -> list[tuple[str, bool]]:
    """What is said before the conversation, and after which of it the frame wants a cache to end."""
    frame = request.frame
    if frame is None:
        return [(request.instructions, True)]
    blocks = [(block.text, block.cache_breakpoint) for block in frame.system_blocks]
    return (blocks or [(frame.system_prompt, True)]) + [
        (block.text, block.cache_breakpoint) for block in frame.context_blocks
    ]


def _spelled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings under this API's own names; where both are given, its own wins."""
    theirs = {_SPELLINGS[name]: value for name, value in settings.items() if name in _SPELLINGS}
    return {**theirs, **{name: value for name, value in settings.items() if name not in _SPELLINGS}}


def _thinks(settings: Mapping[str, Any]) -> bool:
    thinking = settings.get("thinking")
    return isinstance(thinking, Mapping) and thinking.get("type") not in (None, "disabled")
