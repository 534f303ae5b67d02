"""The answer a caller wants: its JSON Schema for the model, and the model's text as the caller's type.

Plain `str` asks for nothing and passes through. What does not fit is an error in words the model can act on.
"""

import re
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.validation import path_of

MAX_PROBLEMS = 10
_FENCED = re.compile(r"\A\s*```[\w-]*\s*\n(?P<inside>.*?)\n?\s*```\s*\Z", re.DOTALL)


class AnswerRejected(ValueError):
    """The model's answer is not of the type that was asked for; the message is for the model."""


class OutputType:
    """One `output_type`. Its validator is compiled when it is first needed."""

    __slots__ = ("_adapter", "_schema", "type")

    def __init__(self, output_type: Any) -> None:
        self.type = output_type
        self._adapter: TypeAdapter[Any] | None = None
        self._schema: dict[str, Any] | None = None

    @property
    def is_text(self) -> bool:
        return self.type is str

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
        """The answer. Raises AnswerRejected, saying what is wrong with it."""
        if self.is_text:
            return text
        # Models like to put JSON between fences; what is inside is judged as strictly as without them.
        fenced = _FENCED.match(text)
        try:
            return self._validator().validate_json(fenced["inside"] if fenced else text)
        except ValidationError as error:
            raise AnswerRejected(_in_words(error)) from None

    def _validator(self) -> TypeAdapter[Any]:
        if self._adapter is None:
            try:
                self._adapter = TypeAdapter(self.type)
            except PydanticUserError as error:
                raise _unfit(self.type, error) from None
        return self._adapter


def _unfit(output_type: Any, error: Exception) -> InvalidConfig:
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
