"""Parameters as JSON Schema (2020-12), and JSON arguments as Python values: one pydantic validator for both.

The schema is what a model is shown and what the gate checks; the validator then turns `"2026-01-01"` into a date and an
object into the caller's own class. Arguments that were left out stay out, so that the function's own defaults hold.
"""

from collections.abc import Callable, Mapping
from inspect import Signature
from typing import Annotated, Any, NamedTuple, NotRequired, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, to_jsonable_python
from typing_extensions import TypedDict

from wakeful.contracts.errors import ForTheModel, InvalidConfig
from wakeful.contracts.validation import path_of
from wakeful.tools import parameters
from wakeful.tools.parameters import Parameters


class ArgumentsRefused(ForTheModel):
    """Arguments that fit the schema and not the tool's own types; `problems` are (path, message)."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {message}" if path else message for path, message in problems))
        self.problems = problems


class CompiledSchema(NamedTuple):
    """One tool's schema and validator."""

    schema: dict[str, Any]
    adapter: TypeAdapter[dict[str, Any]]
    sensitive: tuple[str, ...]
    """Parameters whose values are secrets."""

    def arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        """JSON arguments as the function takes them. Raises ArgumentsRefused."""
        try:
            return self.adapter.validate_python(given)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False, include_context=False)[:10]
            raise ArgumentsRefused([(path_of(each["loc"]), each["msg"][:300]) for each in found]) from None
        except Exception as error:  # a validator of the caller's own that breaks: nothing has run, and nothing will
            words = f"could not be checked: {type(error).__name__}: {error}"
            raise ArgumentsRefused([("", words[:300])]) from error


class _Untitled(GenerateJsonSchema):
    """Titles only repeat the names, and a model pays for each of them."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def compile_parameters(taken: Parameters, described: dict[str, str]) -> CompiledSchema:
    """The schema and the validator of a function. Raises InvalidConfig, naming function and parameter."""
    fields = {
        parameter.name: _field(hint, parameter.default is not parameter.empty, described.get(parameter.name))
        for parameter, hint in _hints(taken)
    }
    try:
        adapter, schema = _adapter(fields)
    except (PydanticUserError, PydanticSchemaGenerationError, PydanticInvalidForJsonSchema) as error:
        raise _unfit(taken.label, fields, error) from None
    schema.pop("title", None)
    schema.setdefault("properties", {})
    for parameter in taken.named:
        _show_default(schema["properties"][parameter.name], parameter.default, parameter.empty)
    secret = [name for name, inner in schema["properties"].items() if _is_secret(inner)]
    return CompiledSchema(schema, adapter, tuple(secret))


class OwnParameters(NamedTuple):
    """What a tool of ours takes, as a method says it."""

    signature: Signature
    compiled: CompiledSchema


_OWN: dict[tuple[object, tuple[tuple[str, str], ...]], OwnParameters] = {}


def compile_method(method: Callable[..., Any], described: Mapping[str, str]) -> OwnParameters:
    """The parameters of a method of a tool that is made anew for every turn: compiled for the first of them."""
    key = getattr(method, "__func__", method), tuple(described.items())
    if key not in _OWN:
        read = parameters.read(method)
        _OWN[key] = OwnParameters(read.signature, compile_parameters(read, dict(described)))
    return _OWN[key]


def _hints(taken: Parameters) -> list[tuple[Any, Any]]:
    """Each parameter with its annotation, text annotations resolved."""
    resolved = []
    for parameter in taken.named:
        hint = Any if parameter.annotation is parameter.empty else parameter.annotation
        try:
            holder = type("_", (), {"__annotations__": {"hint": hint}})
            hint = get_type_hints(holder, taken.globals, taken.locals, include_extras=True)["hint"]
        except Exception as error:
            raise InvalidConfig(
                f"{taken.label}(): the type {hint!r} of {parameter.name!r} cannot be resolved: {error}",
                "import the name outside `if TYPE_CHECKING`, or define it before the tool is used",
            ) from None
        resolved.append((parameter, hint))
    return resolved


def _field(hint: Any, optional: bool, description: str | None) -> Any:
    own = any(isinstance(extra, FieldInfo) and extra.description for extra in getattr(hint, "__metadata__", ()))
    if description and not own:
        hint = Annotated[hint, Field(description=description)]
    return NotRequired[hint] if optional else hint


def _adapter(fields: dict[str, Any]) -> tuple[TypeAdapter[dict[str, Any]], dict[str, Any]]:
    # A TypedDict, not a model: any parameter name works in it, and what was not given stays absent.
    make: Any = TypedDict
    shape = make("arguments", fields)
    shape.__pydantic_config__ = ConfigDict(extra="forbid")
    adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(shape)
    return adapter, adapter.json_schema(schema_generator=_Untitled)


def _unfit(label: str, fields: dict[str, Any], error: Exception) -> InvalidConfig:
    """Which parameter was it?"""
    for name, hint in fields.items():
        try:
            _adapter({name: hint})
        except Exception as own:
            return InvalidConfig(
                f"{label}(): the type of {name!r} cannot be described to a model: {str(own).splitlines()[0]}",
                "use JSON types, dataclasses, TypedDicts, enums or pydantic models",
            )
    return InvalidConfig(f"{label}(): its parameters cannot be described to a model: {str(error).splitlines()[0]}")


def _show_default(schema: dict[str, Any], default: Any, empty: Any) -> None:
    if default is empty or "default" in schema:
        return
    try:
        schema["default"] = to_jsonable_python(default)
    except (PydanticSerializationError, ValueError):
        pass  # the model is not told; the function uses it all the same


def _is_secret(schema: dict[str, Any]) -> bool:
    return any(option.get("writeOnly") is True for option in (schema, *schema.get("anyOf", ())))
