"""A request to the Messages API, as chunks of JSON.

The body is head (model, tools, system), messages, tail (settings). The head is made once, each item of the history is
encoded once, and the tail is small: what a round costs does not grow with the conversation, and consecutive requests of
a turn have their whole prefix in common but for the one moving cache mark. Rule: a setting this API or this model
refuses is left out and named in `left_out`, never dropped in silence.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from wakeful.contracts.model_settings import ModelSettings, ToolChoice
from wakeful.contracts.tools import ServerTool, ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.anthropic.block_writer import BlockWriter
from wakeful.providers.anthropic.context_editing import CAPABILITY, SETTING, edits_of
from wakeful.providers.anthropic.message_joins import messages
from wakeful.providers.anthropic.settings_writer import is_thinking, written
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.answer_forms import AnswerForm, AnswerForms, answer_in_words
from wakeful.providers.wire.attachments import Attachments
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.schemas import emit
from wakeful.providers.wire.server_tools import untaken_tools
from wakeful.providers.wire.setting_fields import SettingFields, asked_tools, forces
from wakeful.providers.wire.text import dump

SYSTEM_MARKS = 2
"""The API takes four cache marks: one is on the tools, one moves with the conversation."""
SEARCH = "web_search_20250305"
"""The version of the search that every model with one takes."""
_CHOICES: dict[ToolChoice, str] = {"auto": "auto", "required": "any", "none": "none"}


class AnthropicEncoder:
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
        attachments: Attachments | None = None,
    ) -> None:
        self.names = names or WireNames(tools)
        self._profile = profile
        self._tools = tuple(tools) if profile.tools else ()
        self._no_tools = bool(tools) and not profile.tools
        self._caches = "prompt_cache_blocks" in profile.prompt
        self._sampling = frozenset[str]() if refuses_sampling else profile.sampling
        self._attachments = attachments or Attachments(f"{provider}:{model}", profile, "anthropic")
        self._writer = BlockWriter(provider, self.names, self._attachments)
        self._wire = self._format()
        self._model = model
        self._changes: list[str] = []
        self._listed = self._tool_list()
        self._heads: dict[tuple[Any, ...], bytes] = {}
        self._settings: tuple[ModelSettings, SettingFields] | None = None
        self._answers = AnswerForms("anthropic")

    def body(self, request: ModelRequest) -> list[bytes]:
        """The request as chunks. They are handed over as they are: joining them would copy the whole conversation."""
        form = self._answer_form(request.output_schema)
        blocks = _prompt(request)
        if request.output_schema is not None and form is None:
            blocks.append((answer_in_words(request.output_schema), True))
        mark = self._mark(request.settings)
        inside = messages(request.history, self._wire, self._writer, mark=mark)
        head = self._head(tuple(blocks), mark, self._choice(request), request.server_tools)
        return [head, *inside, self._tail(request, form)]

    def changes(self, request: ModelRequest) -> tuple[str, ...]:
        """What of the tools' schemas and of the answer's had to be rewritten for this provider."""
        form = self._answer_form(request.output_schema)
        return (*self._changes, *(f"answer: {change}" for change in form.changes)) if form else tuple(self._changes)

    def left_out(self, request: ModelRequest) -> tuple[str, ...]:
        """Settings of this request that are not sent, because they would be refused."""
        left = list(self._written(request.settings).left_out)
        if self._no_tools:
            left.append("tools")
        if not self._profile.tools:
            left += untaken_tools(request.server_tools)
        if self._tools and forces(request.tool_choice) and not self._can_force(request):
            left.append("tool_choice")
        return tuple(left)

    def edits(self, request: ModelRequest) -> dict[str, Any] | None:
        """What the provider may clear of the conversation; None when nobody asked, or this model has no such thing."""
        return edits_of(request.settings.vendor("anthropic")) if CAPABILITY in self._profile.prompt else None

    def _can_force(self, request: ModelRequest) -> bool:
        """May the model be told that it must call a tool? Never while it thinks."""
        return self._profile.forced_tool_choice and not is_thinking(self._written(request.settings))

    def _choice(self, request: ModelRequest) -> ToolChoice:
        return "auto" if forces(request.tool_choice) and not self._can_force(request) else request.tool_choice

    def _written(self, settings: ModelSettings) -> SettingFields:
        """Made once for a turn: its requests have the same settings."""
        if self._settings is None or self._settings[0] is not settings:
            self._settings = settings, written(settings, self._profile, self._sampling)
        return self._settings[1]

    def _mark(self, settings: ModelSettings) -> dict[str, str] | None:
        """What ends a part of the prompt that is to be cached; None: nothing is."""
        if not self._caches or settings.cache is False:
            return None
        return {"type": "ephemeral", **({"ttl": settings.cache} if isinstance(settings.cache, str) else {})}

    # --- head: the same for every request of a turn ---

    def _head(
        self,
        blocks: tuple[tuple[str, bool], ...],
        mark: dict[str, str] | None,
        choice: ToolChoice,
        searches: tuple[ServerTool, ...],
    ) -> bytes:
        offered = tuple(tool.name for tool in asked_tools(choice, self._tools))
        of = (blocks, mark and mark.get("ttl"), mark is None, offered, searches)
        head = self._heads.get(of)
        if head is None:
            if len(self._heads) > 16:
                self._heads.clear()
            tools = self._offered(offered, searches, mark)
            head = b'{"model":' + dump(self._model) + tools + self._system(blocks, mark) + b',"messages":['
            self._heads[of] = head
        return head

    def _tool_list(self) -> list[dict[str, Any]]:
        listed = []
        for tool in self._tools:
            emitted = emit(tool.input_schema, "relaxed", "anthropic")
            self._changes += [f"{tool.name}: {change}" for change in emitted.changes]
            entry: dict[str, Any] = {"name": self.names.to_wire(tool.name)}
            if tool.description:
                entry["description"] = tool.description
            listed.append({**entry, "input_schema": emitted.schema})
        return listed

    def _offered(self, names: Sequence[str], searches: Sequence[ServerTool], mark: dict[str, str] | None) -> bytes:
        pairs = zip(self._tools, self._listed, strict=True)
        listed = [entry for tool, entry in pairs if tool.name in names]
        if self._profile.tools:
            listed += map(_search, searches)
        if not listed:
            return b""
        if mark is not None:  # the tools change only with the agent itself
            listed[-1] = {**listed[-1], "cache_control": mark}
        return b',"tools":' + dump(listed)

    def _system(self, blocks: tuple[tuple[str, bool], ...], mark: dict[str, str] | None) -> bytes:
        said = [(text, marked) for text, marked in blocks if text.strip()]
        marks = [at for at, (_, marked) in enumerate(said) if marked][-SYSTEM_MARKS:] if mark is not None else []
        listed = [
            {"type": "text", "text": text, **({"cache_control": mark} if at in marks else {})}
            for at, (text, _) in enumerate(said)
        ]
        return b',"system":' + dump(listed) if listed else b""

    # --- tail: what holds for this request ---

    def _tail(self, request: ModelRequest, form: AnswerForm | None) -> bytes:
        fields = dict(self._written(request.settings).fields)
        if form is not None:
            output = {**fields.get("output_config", {}), "format": {"type": "json_schema", "schema": form.schema}}
            fields["output_config"] = output
        parallel = request.settings.parallel_tool_calls is not False and self._profile.parallel_tool_calls
        choice = self._tool_choice(self._choice(request), parallel=parallel)
        optional = {"tool_choice": choice, SETTING: self.edits(request)}
        fields |= {name: value for name, value in optional.items() if value is not None}
        return b"]," + dump({**fields, "stream": request.stream})[1:]

    def wraps(self, request: ModelRequest) -> bool:
        """Whether the answer is asked for as the one property of an object."""
        form = self._answer_form(request.output_schema)
        return form is not None and form.wrapped

    def _answer_form(self, source: dict[str, Any] | None) -> AnswerForm | None:
        """The schema the API holds the answer to; None when the model is told it instead, or there is none."""
        return None if source is None or not self._profile.structured_output else self._answers.form(source)

    def _tool_choice(self, choice: ToolChoice, *, parallel: bool) -> dict[str, Any] | None:
        if not self._tools or (choice == "auto" and parallel):
            return None
        if isinstance(choice, tuple):  # of several the others are not offered
            named = {"type": "tool", "name": self.names.to_wire(choice[0])} if len(choice) == 1 else {"type": "any"}
        else:
            named = {"type": _CHOICES[choice]}
        return named if choice == "none" or parallel else {**named, "disable_parallel_tool_use": True}

    def _format(self) -> str:
        """Items are kept under this name: whatever changes their bytes changes it."""
        writer = [[tool.name, self.names.to_wire(tool.name)] for tool in self._tools]
        known = dump([writer, self._attachments.key])
        return f"anthropic_messages/{self._writer.provider}/{hashlib.sha256(known).hexdigest()[:16]}"


def _search(tool: ServerTool) -> dict[str, Any]:
    """The provider's own search, in its words."""
    options: dict[str, Any] = {"max_uses": tool.max_uses}
    options |= {"allowed_domains": list(tool.allowed_domains), "blocked_domains": list(tool.blocked_domains)}
    return {"type": SEARCH, "name": tool.kind, **{name: value for name, value in options.items() if value}}


def _prompt(request: ModelRequest) -> list[tuple[str, bool]]:
    """What is said before the conversation, and after which of it the frame wants a cache to end."""
    frame = request.frame
    if frame is None:
        return [(request.instructions, True)]
    blocks = [(block.text, block.cache_breakpoint) for block in frame.system_blocks]
    return (blocks or [(frame.system_prompt, True)]) + [
        (block.text, block.cache_breakpoint) for block in frame.context_blocks
    ]
