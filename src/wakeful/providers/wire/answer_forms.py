"""The answer that a caller wants, as a wire says it: as a schema that the provider holds the model to, or in words.

Strict wherever a strict schema takes every answer that the caller's takes; its nulls for what was left out are taken
out of the answer again. What no provider can be held to, a map for one, is described instead. The answer is checked
when it is here, whichever way it was asked for.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from wakeful.contracts.content import Text
from wakeful.contracts.models import Reply
from wakeful.decisions.answer_shapes import as_object, needs_wrapping, unfenced, unwrapped
from wakeful.providers.wire.schema_answers import without_added_nulls
from wakeful.providers.wire.schema_reader import Schema, is_recursive
from wakeful.providers.wire.schemas import Dialect, emit

ANSWER_IN_JSON = (
    "When you give your final answer, answer with one JSON value and nothing else: no words before or after it and "
    "no code fence. It has to fit this JSON Schema:\n"
)


class AnswerForm(NamedTuple):
    """What is sent for one `output_schema`."""

    schema: Schema
    strict: bool
    changes: tuple[str, ...]
    wrapped: bool
    """The answer comes as the one property of an object."""

    @property
    def name(self) -> str:
        """What OpenAI's format calls it."""
        return re.sub(r"[^A-Za-z0-9_-]+", "_", str(self.schema.get("title") or "output"))[:64] or "output"


class AnswerForms:
    """The form of a turn's answer in one dialect. The schema is the same object in each request of a turn."""

    __slots__ = ("_dialect", "_known")

    def __init__(self, dialect: Dialect) -> None:
        self._dialect: Dialect = dialect
        self._known: tuple[Mapping[str, Any], AnswerForm | None] | None = None

    def form(self, source: dict[str, Any]) -> AnswerForm | None:
        """None: this provider cannot be held to it, and the model has to be told."""
        if self._known is None or self._known[0] is not source:
            self._known = source, _form(source, self._dialect)
        return self._known[1]


def answer_in_words(schema: Mapping[str, Any]) -> str:
    """The answer's shape, said to a model that cannot be held to it."""
    return ANSWER_IN_JSON + json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def as_asked(reply: Reply, schema: dict[str, Any], *, wrapped: bool) -> Reply:
    """A reply in terms of the schema it was asked for."""
    texts = [part for part in reply.item.parts if isinstance(part, Text)]
    if not texts:
        return reply
    said = texts[0] if len(texts) == 1 else Text(reply.item.text)  # an answer may come in several parts
    meant = _as_asked(said, schema, wrapped)
    if meant is said:
        return reply
    parts = tuple(meant if part is texts[0] else part for part in reply.item.parts if part not in texts[1:])
    return reply.model_copy(update={"item": reply.item.model_copy(update={"parts": parts})})


def _form(source: dict[str, Any], dialect: Dialect) -> AnswerForm | None:
    whole = as_object(source)
    wrapped = needs_wrapping(source)
    strict = emit(whole, "strict", dialect)
    if dialect == "anthropic":
        if not strict.faithful or is_recursive(whole):
            return None
        return AnswerForm(strict.schema, True, strict.changes, wrapped)
    if strict.faithful:
        return AnswerForm(strict.schema, True, strict.changes, wrapped)
    relaxed = emit(whole, "relaxed", dialect)
    return AnswerForm(relaxed.schema, False, relaxed.changes, wrapped)


def _as_asked(part: Text, schema: dict[str, Any], wrapped: bool) -> Text:
    text = unwrapped(part.text) if wrapped else part.text
    try:
        value = json.loads(unfenced(text))
    except (ValueError, RecursionError):
        return part
    meant = without_added_nulls(schema, value)
    if meant != value:
        text = json.dumps(meant, ensure_ascii=False)
    return part if text == part.text else part.model_copy(update={"text": text})
