"""From a signature to JSON Schema, and from JSON arguments to Python values."""

import enum
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Literal, Optional

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, SecretStr
from typing_extensions import TypedDict

from wakeful.contracts.errors import InvalidConfig
from wakeful.tools import docstrings
from wakeful.tools.context import RunContext
from wakeful.tools.decorator import tool


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Address(BaseModel):
    street: str
    number: int = 1


@dataclass
class Line:
    sku: str
    count: int


class Extra(TypedDict):
    gift: bool


def test_every_common_kind_of_annotation_has_a_schema() -> None:
    @tool(effect="pure")
    def order(
        ctx: RunContext[None],
        to: Address,
        lines: list[Line],
        size: Size,
        mode: Literal["fast", "slow"],
        when: datetime,
        extra: Extra,
        notes: dict[str, int],
        maybe: Optional[str] = None,  # noqa: UP045
        count: Annotated[int, Field(ge=1, description="How many.")] = 1,
    ) -> None: ...

    schema = order.declaration.input_schema
    Draft202012Validator.check_schema(schema)
    fields = schema["properties"]
    assert schema["required"] == ["to", "lines", "size", "mode", "when", "extra", "notes"]
    assert schema["additionalProperties"] is False
    assert "ctx" not in fields
    assert fields["lines"]["type"] == "array"
    assert fields["mode"] == {"enum": ["fast", "slow"], "type": "string"}
    assert fields["when"] == {"format": "date-time", "type": "string"}
    assert fields["notes"]["additionalProperties"] == {"type": "integer"}
    assert fields["maybe"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert fields["count"] == {"description": "How many.", "minimum": 1, "type": "integer", "default": 1}
    assert schema["$defs"]["Size"]["enum"] == ["small", "large"]


async def test_json_arguments_become_the_python_values_of_the_signature() -> None:
    seen: dict[str, Any] = {}

    @tool(effect="pure")
    def order(to: Address, lines: list[Line], size: Size, when: datetime, day: date, tags: set[str]) -> None:
        seen.update(to=to, lines=lines, size=size, when=when, day=day, tags=tags)

    await order.invoke(
        RunContext(None),
        {
            "to": {"street": "Elm"},
            "lines": [{"sku": "a", "count": 2}],
            "size": "large",
            "when": "2026-01-02T03:04:05",
            "day": "2026-01-02",
            "tags": ["x", "x"],
        },
    )
    assert seen == {
        "to": Address(street="Elm"),
        "lines": [Line("a", 2)],
        "size": Size.LARGE,
        "when": datetime(2026, 1, 2, 3, 4, 5),
        "day": date(2026, 1, 2),
        "tags": {"x"},
    }


def test_names_that_mean_something_to_pydantic_are_ordinary_parameters() -> None:
    @tool(effect="pure")
    def odd(schema: str, copy: int, model_config: str, _hidden: int, json: str) -> None: ...

    assert list(odd.declaration.input_schema["properties"]) == ["schema", "copy", "model_config", "_hidden", "json"]


def test_text_annotations_are_resolved_also_inside_a_function() -> None:
    class Local(BaseModel):
        x: int

    @tool(effect="pure")
    def use(ctx: "RunContext[Local]", value: "Local", others: "list[Line]") -> None: ...

    assert use.needs_deps
    assert use.declaration.input_schema["properties"]["value"] == {"$ref": "#/$defs/Local"}
    assert set(use.declaration.input_schema["$defs"]) == {"Local", "Line"}


def test_a_type_that_does_not_exist_is_named() -> None:
    @tool(effect="pure")
    def use(value: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidConfig, match=r"use\(\).*'value' cannot be resolved.*Nowhere"):
        _ = use.declaration


def test_a_type_that_has_no_schema_is_named() -> None:
    class Socket: ...

    @tool(effect="pure")
    def use(first: int, socket: Socket) -> None: ...

    with pytest.raises(InvalidConfig, match=r"use\(\): the type of 'socket' cannot be described to a model"):
        _ = use.declaration


def test_a_default_that_json_cannot_hold_is_the_functions_own_affair() -> None:
    @tool(effect="pure")
    def use(value: Any = object) -> None: ...

    assert use.declaration.input_schema["properties"] == {"value": {}}


def test_a_secret_parameter_is_known_as_one() -> None:
    @tool(effect="pure")
    def use(plain: str, token: SecretStr, maybe: SecretStr | None = None) -> None: ...

    assert use.declaration.sensitive_parameters == ("token", "maybe")


def _star(*numbers: int) -> None: ...
def _star_star(**named: int) -> None: ...
def _positional(first: int, /) -> None: ...
def _second(order: str, ctx: RunContext[None]) -> None: ...
def _untyped(ctx, order: str) -> None: ...  # type: ignore[no-untyped-def]
def _method(self, order: str) -> None: ...  # type: ignore[no-untyped-def]
def _generator(order: str) -> Any:
    yield order


@pytest.mark.parametrize(
    ("fn", "said"),
    [
        (_star, r"_star\(\) has a parameter 'numbers' which takes any number"),
        (_star_star, r"_star_star\(\) has a parameter 'named' which takes any keyword"),
        (_positional, r"_positional\(\) has a parameter 'first' which is positional-only"),
        (_second, r"'ctx' which is a RunContext, but not the first"),
        (_untyped, r"'ctx' without a type"),
        (_method, r"'self': it is a method"),
        (_generator, r"_generator\(\) is a generator"),
        (dict.fromkeys, r"fromkeys\(\) "),
    ],
)
def test_what_no_model_can_call_is_refused_with_function_and_parameter(fn: Any, said: str) -> None:
    with pytest.raises(InvalidConfig, match=said):
        tool(fn)


GOOGLE = """Refund an order.

    More about it.

    Args:
        order: The order's number,
            as printed.
        cents (int): How much: in cents.
        *rest: Anything.

    Returns:
        A receipt.
    """
NUMPY = """Refund an order.

    More about it.

    Parameters
    ----------
    order : str
        The order's number,
        as printed.
    cents, rest : int, optional
        How much: in cents.

    Returns
    -------
    str
        A receipt.
    """
SPHINX = """Refund an order.

    More about it.

    :param order: The order's number,
        as printed.
    :param int cents: How much: in cents.
    :type cents: int
    :raises ValueError: never
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_a_docstring_describes_the_tool_and_its_parameters(docstring: str) -> None:
    described = docstrings.read(docstring)
    assert described.parameters["order"] == "The order's number, as printed."
    assert described.parameters["cents"] == "How much: in cents."
    assert described.description.startswith("Refund an order.\n\nMore about it.")
    assert "as printed" not in described.description


def test_what_follows_the_parameters_stays_in_the_description() -> None:
    assert "A receipt." in docstrings.read(GOOGLE).description
    assert "A receipt." in docstrings.read(NUMPY).description


def test_no_docstring_is_no_description() -> None:
    assert docstrings.read(None) == ("", {})


def test_descriptions_of_the_docstring_reach_the_schema_unless_the_annotation_has_its_own() -> None:
    @tool(effect="pure")
    def refund(order: str, cents: Annotated[int, Field(description="Mine.")]) -> None:
        """Refund.

        Args:
            order: The number.
            cents: Not this.
        """

    fields = refund.declaration.input_schema["properties"]
    assert (fields["order"]["description"], fields["cents"]["description"]) == ("The number.", "Mine.")
