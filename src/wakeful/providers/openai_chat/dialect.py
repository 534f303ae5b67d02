"""How one endpoint speaks Chat Completions: the points on which servers that call themselves compatible differ.

The defaults are what the widest range of servers takes. What loosens a check (`needs_done`) is never a default: it has
to be switched on for an endpoint by somebody who knows that endpoint.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from wakeful.contracts.errors import InvalidConfig

REASONING = ("reasoning_content", "reasoning", "reasoning_text")
"""Where servers put reasoning. One that fills two of them says the same in both."""
IN_CONTENT = "content"
"""Stands for reasoning inside the content: `thinking` parts, `<think>` blocks."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One endpoint's habits. Every field can be set by name as an endpoint's quirk."""

    system_role: Literal["system", "developer"] = "system"
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    needs_done: bool = True
    """False: this server ends its streams without `[DONE]`, and a finish reason alone makes them whole."""
    stream_usage: bool = True
    """May be asked for usage at the end of a stream (`stream_options`)."""
    strict_field: bool = True
    """Knows `strict` in a function declaration."""
    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    """The kind of schema that it can enforce. The answer is checked against the schema in any case."""
    content_parts: bool = True
    """Takes a list of parts as content, also where there is nothing but text; otherwise texts are joined."""
    json_arguments: bool = True
    """Reads the arguments of earlier calls as JSON, so that malformed ones have to be wrapped to be shown at all."""
    call_ids: Literal["any", "forty", "nine"] = "any"
    """Which ids of calls it takes: any, up to 40 characters, or exactly nine letters and digits."""
    prompt_cache_key: bool = False
    user_after_tool: bool = True
    """Takes a user message right after tool results; otherwise a short assistant message stands between them."""
    returns: tuple[str, ...] = (*REASONING, "reasoning_details", IN_CONTENT)
    """Fields of an assistant message that go back to this server as it gave them; `content`: reasoning in the text."""
    required: tuple[str, ...] = ()
    """Fields that each assistant message must have: an empty text where there is nothing to hand back."""
    known_fields: tuple[str, ...] = ("reasoning_effort", "user")
    """Fields that not every server takes and this one does: reasoning_effort, service_tier, user, metadata."""

    def with_quirks(self, quirks: Mapping[str, Any]) -> "Dialect":
        """The dialect with what an endpoint's settings say. Raises InvalidConfig for a quirk nobody has heard of."""
        hints = get_type_hints(Dialect)
        changed: dict[str, Any] = {}
        for name, value in quirks.items():
            if name not in hints:
                raise InvalidConfig(
                    f"Chat Completions has no quirk {name}",
                    f"known are: {', '.join(field.name for field in fields(self))}",
                )
            changed[name] = _fitting(name, value, hints[name])
        return replace(self, **changed)


def _fitting(name: str, value: Any, hint: Any) -> Any:
    """A value the field can hold: settings come from files, and the text "false" is not false."""
    if hint is bool:
        if isinstance(value, bool):
            return value
        raise InvalidConfig(f"the quirk {name} is {value!r}", "write true or false")
    if get_origin(hint) is Literal:
        if value in get_args(hint):
            return value
        raise InvalidConfig(f"the quirk {name} is {value!r}", f"write one of: {', '.join(get_args(hint))}")
    if isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise InvalidConfig(f"the quirk {name} is {value!r}", "write a list of names")


COMPATIBLE = Dialect()
"""For an endpoint nobody has described."""
OPENAI = Dialect(
    json_arguments=False,
    call_ids="forty",
    prompt_cache_key=True,
    returns=(),
    known_fields=("metadata", "reasoning_effort", "service_tier", "user"),
)
"""OpenAI's own endpoint."""
