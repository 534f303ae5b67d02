"""The base of every value in the contracts: immutable, closed, JSON-serialisable."""

from typing import TypeAlias

from pydantic import BaseModel, ConfigDict

JsonScalar: TypeAlias = str | int | float | bool | None
# Recursive aliases cost a fortune in schema building; what is inside was checked when it was parsed.
JsonValue: TypeAlias = JsonScalar | list["JsonValue"] | dict[str, "JsonValue"]
JsonObject: TypeAlias = dict[str, "JsonValue"]


class Value(BaseModel):
    """An immutable value with no unknown fields."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", defer_build=True
    )
