"""A request to Gemini's API, as chunks of JSON.

The body is head (instructions, tools), contents, tail (settings). The head is made once, each item of the history is
encoded once, and the tail is small: what a round costs does not grow with the conversation, and consecutive requests of
a turn have their whole prefix in common. Rule: a setting this API or this model refuses is left out and named in
`left_out`, never dropped in silence.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from wakeful.contracts.model_settings import ModelSettings, ToolChoice
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.answer_shapes import as_object, needs_wrapping
from wakeful.ports import ModelRequest
from wakeful.providers.gemini.contents import contents
from wakeful.providers.gemini.part_writer import PartWriter
from wakeful.providers.gemini.schema_writer import gemini_schema
from wakeful.providers.gemini.settings_writer import GENERATION, check, written
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.answer_forms import AnswerForm, answer_in_words
from wakeful.providers.wire.attachments import Attachments
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.server_tools import untaken_options, untaken_tools
from wakeful.providers.wire.setting_fields import SettingFields, forces
from wakeful.providers.wire.text import dump

_MODES: dict[str, str] = {"auto": "AUTO", "required": "ANY", "none": "NONE"}


class GeminiEncoder:
    """Encodes requests of one model with one set of tools. Holds nothing of any one request."""

    def __init__(
        self,
        model: str,
        profile: ModelProfile,
        tools: Sequence[ToolDeclaration] = (),
        *,
        names: WireNames | None = None,
        provider: str = "gemini",
        attachments: Attachments | None = None,
    ) -> None:
        self.names = names or WireNames(tools)
        self._profile = profile
        self._tools = tuple(tools) if profile.tools else ()
        self._no_tools = bool(tools) and not profile.tools
        self._attachments = attachments or Attachments(f"{provider}:{model}", profile, "gemini")
        # The models that are told their effort in a word are those that demand a signature on each step's first call.
        self._writer = PartWriter(provider, self.names, self._attachments, signs=profile.effort)
        self._wire = self._format()
        self._changes: list[str] = []
        self._listed = self._tool_list()
        self._heads: dict[tuple[Any, ...], bytes] = {}
        self._settings: tuple[ModelSettings, SettingFields] | None = None
        self._answer: tuple[dict[str, Any], AnswerForm] | None = None

    def body(self, request: ModelRequest) -> list[bytes]:
        """The request as chunks. They are handed over as they are: joining them would copy the whole conversation."""
        check(request.settings)
        form = self._answer_form(request)
        blocks = _prompt(request)
        if request.output_schema is not None and form is None:
            blocks.append(answer_in_words(request.output_schema))
        inside = contents(request.history, self._wire, self._writer)
        return [self._head(tuple(blocks), self._searches(request)), *inside, self._tail(request, form)]

    def changes(self, request: ModelRequest) -> tuple[str, ...]:
        """What of the tools' schemas and of the answer's had to be rewritten for this provider."""
        form = self._answer_form(request)
        return (*self._changes, *(f"answer: {change}" for change in form.changes)) if form else tuple(self._changes)

    def left_out(self, request: ModelRequest) -> tuple[str, ...]:
        """Settings of this request that are not sent, because they would be refused."""
        left = list(self._written(request.settings).left_out)
        if request.server_tools:
            searches = self._searches(request)
            left += untaken_options(request.server_tools, ()) if searches else untaken_tools(request.server_tools)
        if self._no_tools:
            left.append("tools")
        elif self._tools and forces(request.tool_choice) and not self._profile.forced_tool_choice:
            left.append("tool_choice")
        return tuple(left)

    def wraps(self, request: ModelRequest) -> bool:
        """Whether the answer is asked for as the one property of an object."""
        form = self._answer_form(request)
        return form is not None and form.wrapped

    def _written(self, settings: ModelSettings) -> SettingFields:
        """Made once for a turn: its requests have the same settings."""
        if self._settings is None or self._settings[0] is not settings:
            self._settings = settings, written(settings, self._profile)
        return self._settings[1]

    # --- head: the same for every request of a turn ---

    def _searches(self, request: ModelRequest) -> bool:
        """Whether Gemini may search. Older models refuse that beside tools of ours."""
        allowed = self._profile.tools and (not self._listed or self._profile.schema_beside_tools)
        return bool(request.server_tools) and allowed

    def _head(self, blocks: tuple[str, ...], searches: bool) -> bytes:
        head = self._heads.get((blocks, searches))
        if head is None:
            if len(self._heads) > 16:
                self._heads.clear()
            fields: dict[str, Any] = {}
            tools = [{"functionDeclarations": self._listed}] if self._listed else []
            if tools or searches:
                fields["tools"] = [*tools, *([{"googleSearch": {}}] if searches else [])]
            if said := [{"text": text} for text in blocks if text.strip()]:
                fields["systemInstruction"] = {"parts": said}
            opening = dump(fields)[:-1] + b"," if fields else b"{"
            head = self._heads[blocks, searches] = opening + b'"contents":['
        return head

    def _tool_list(self) -> list[dict[str, Any]]:
        listed = []
        for tool in self._tools:
            emitted = gemini_schema(tool.input_schema)
            self._changes += [f"{tool.name}: {change}" for change in emitted.changes]
            entry: dict[str, Any] = {"name": self.names.to_wire(tool.name), "description": tool.description}
            if emitted.schema.get("properties"):  # a tool without parameters is declared without a schema
                entry["parametersJsonSchema"] = emitted.schema
            listed.append(entry)
        return listed

    # --- tail: what holds for this request ---

    def _tail(self, request: ModelRequest, form: AnswerForm | None) -> bytes:
        fields = dict(self._written(request.settings).fields)
        if form is not None:
            answer = {"responseMimeType": "application/json", "responseJsonSchema": form.schema}
            fields[GENERATION] = {**fields.get(GENERATION, {}), **answer}
        choice = self._tool_choice(request.tool_choice)
        config: dict[str, Any] = {} if choice is None else {"functionCallingConfig": choice}
        if self._listed and self._searches(request):
            config["includeServerSideToolInvocations"] = True  # Gemini wants it where both are offered
        if config:
            fields["toolConfig"] = config
        return b"]," + dump(fields)[1:] if fields else b"]}"

    def _answer_form(self, request: ModelRequest) -> AnswerForm | None:
        """The schema the API holds the answer to; None when the model is told it instead, or there is none."""
        source = request.output_schema
        if source is None or not self._profile.structured_output:
            return None
        if self._listed and not self._profile.schema_beside_tools:
            return None
        if self._answer is None or self._answer[0] is not source:
            emitted = gemini_schema(as_object(source))
            self._answer = source, AnswerForm(emitted.schema, False, emitted.changes, needs_wrapping(source))
        return self._answer[1]

    def _tool_choice(self, choice: ToolChoice) -> dict[str, Any] | None:
        if not self._tools or choice == "auto" or (forces(choice) and not self._profile.forced_tool_choice):
            return None
        if isinstance(choice, tuple):
            return {"mode": "ANY", "allowedFunctionNames": [self.names.to_wire(name) for name in choice]}
        return {"mode": _MODES[choice]}

    def _format(self) -> str:
        """Items are kept under this name: whatever changes their bytes changes it."""
        names = [[tool.name, self.names.to_wire(tool.name)] for tool in self._tools]
        known = dump([names, self._attachments.key, self._profile.effort])
        return f"gemini/{self._writer.provider}/{hashlib.sha256(known).hexdigest()[:16]}"


def _prompt(request: ModelRequest) -> list[str]:
    """What is said before the conversation."""
    frame = request.frame
    if frame is None:
        return [request.instructions]
    blocks = [block.text for block in frame.system_blocks] or [frame.system_prompt]
    return blocks + [block.text for block in frame.context_blocks]
