"""From pydantic's words to ours: one error with the contract's code, the path and the reason."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from wakeful.contracts.errors import InvalidValue

ModelT = TypeVar("ModelT", bound=BaseModel)


def path_of(location: Iterable[str | int]) -> str:
    """`("messages", 2, "role")` as `messages[2].role`."""
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path


def refused(error: ValidationError, code: str, at: str = "") -> InvalidValue:
    """The first of pydantic's complaints, as ours."""
    first = error.errors(include_url=False, include_input=False)[0]
    path = path_of(first["loc"])
    if at:
        path = f"{at}.{path}" if path else at
    return InvalidValue(code, path, first["msg"].removeprefix("Value error, "))


def validated(model: type[ModelT], raw: Any, code: str, at: str = "") -> ModelT:
    """The value, or InvalidValue with its code and path."""
    if isinstance(raw, model):
        return raw
    if not isinstance(raw, Mapping):
        raise InvalidValue(code, at, f"expected an object, not a {type(raw).__name__}")
    try:
        return model.model_validate(dict(raw))
    except ValidationError as error:
        raise refused(error, code, at) from None
