"""The answer a caller wants: its JSON Schema for the model, and the model's text as the caller's type.

Plain `str`, and a class or a `NewType` of it, ask for nothing and take any text. What does not fit is an error in words
the model can act on.
"""

import json
from enum import Enum
from typing import Any, NewType

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.validation import path_of
from wakeful.decisions.answer_shapes import unfenced
from wakeful.decisions.schema_keywords import MAX_STEPS, TooMuchWork
from wakeful.decisions.schema_size import is_recursive
from wakeful.decisions.schema_validator import SchemaValidator

MAX_PROBLEMS = 10


class AnswerMisfit(ValueError):
    """The model's answer is not of the type that was asked for; the message is for the model."""


class OutputType:
    """One `output_type`. Its validator is compiled when it is first needed."""

    __slots__ = ("_adapter", "_schema", "_text", "type")

    def __init__(self, output_type: Any) -> None:
        self.type = output_type
        self._text = _text_type(output_type)
        self._adapter: TypeAdapter[Any] | None = None
        self._schema: dict[str, Any] | None = None

    @property
    def is_text(self) -> bool:
        """Any text will do: `str`, a `NewType` of it, or a class of it that says nothing about what it takes."""
        return self._text is not None

    @property
    def schema(self) -> dict[str, Any] | None:
        """None when any text will do."""
        if self.is_text:
            return None
        if self._schema is None:
            try:
                self._schema = self._validator().json_schema()
            except (PydanticUserError, PydanticInvalidForJsonSchema) as error:
                raise _unfit(self.type, error) from None
        return self._schema

    def parse(self, text: str) -> Any:
        """The answer. Raises AnswerMisfit, saying what is wrong with it."""
        if self._text is not None:
            return text if self._text is str else self._text(text)
        inside = unfenced(text)
        self._check_work(inside)
        try:
            return self._validator().validate_json(inside)
        except ValidationError as error:
            raise AnswerMisfit(_in_words(error)) from None

    def _check_work(self, text: str) -> None:
        """A type that contains itself may take twice as long with each level of an answer: that is counted first."""
        schema = self.schema
        if schema is None or not is_recursive(schema):
            return
        try:
            next(SchemaValidator(schema).errors(json.loads(text)), None)
        except (TooMuchWork, RecursionError):
            words = f"The answer takes more than {MAX_STEPS:,} steps to check: give one that is less deeply nested."
            raise AnswerMisfit(words) from None
        except (ValueError, InvalidConfig):
            return  # no JSON, or a type that JSON Schema cannot tell: the validator says what is wrong

    def _validator(self) -> TypeAdapter[Any]:
        if self._adapter is None:
            try:
                self._adapter = TypeAdapter(self.type)
            except PydanticUserError as error:
                raise _unfit(self.type, error) from None
        return self._adapter


def _text_type(output_type: Any) -> type[str] | None:
    """The class that holds any text; None for a type with a shape of its own."""
    while isinstance(output_type, NewType):
        output_type = output_type.__supertype__
    if output_type is str:
        return str
    plain = (
        isinstance(output_type, type)
        and issubclass(output_type, str)
        and not issubclass(output_type, Enum)
        and not hasattr(output_type, "__get_pydantic_core_schema__")
        and (output_type.__new__, output_type.__init__) == (str.__new__, str.__init__)
    )
    return output_type if plain else None


def _unfit(output_type: Any, error: Exception) -> InvalidConfig:
    if isinstance(output_type, str):
        return InvalidConfig(
            f"output_type={output_type!r} is the name of a type", "give the type itself, without quotes"
        )
    if getattr(error, "code", None) == "class-not-fully-defined":
        return InvalidConfig(
            f"output_type={output_type!r} names a type that is not defined yet",
            "define every type that it names before the agent, in the same module, or call its model_rebuild()",
        )
    return InvalidConfig(
        f"output_type={output_type!r} cannot be described to a model: {str(error).splitlines()[0]}",
        "use str, a JSON type, a dataclass, a TypedDict or a pydantic model",
    )


def _in_words(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    if found[0]["type"] == "json_invalid":
        return f"The answer must be JSON and nothing else. {found[0]['msg'][:300]}."
    lines = [f"- {path_of(each['loc']) or 'the answer'}: {each['msg'][:300]}" for each in found[:MAX_PROBLEMS]]
    if len(found) > MAX_PROBLEMS:
        lines.append(f"- and {len(found) - MAX_PROBLEMS} more")
    return "The answer does not fit:\n" + "\n".join(lines)
