"""What a tool of an agent may do with a `Runtime` and its handles: read, and send messages. The rest is refused.

A program that hands its runtime to its own tools hands it to whatever its models make of them. So each class names the
methods that are open to tools, and any other one raises NotEntitled in the code of a tool and in all that it starts,
as operations do. A method that is added is refused until it is named.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from wakeful.service.operations.operation import check_outside_tools

Handle = TypeVar("Handle")


def open_to_tools(*names: str) -> "Callable[[type[Handle]], type[Handle]]":
    """A class of whose public methods a tool may call these, and no others."""

    def close(made: "type[Handle]") -> "type[Handle]":
        for name, method in list(vars(made).items()):
            if isinstance(method, FunctionType) and not name.startswith("_") and name not in names:
                setattr(made, name, _refusing(method, f"call {made.__name__}.{name}()"))
        return made

    return close


def _refusing(method: FunctionType, doing: str) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(method):

        @wraps(method)
        async def refusing(*given: Any, **named: Any) -> Any:
            check_outside_tools(doing)
            return await method(*given, **named)

        return refusing

    @wraps(method)
    def refusing_first(*given: Any, **named: Any) -> Any:
        check_outside_tools(doing)
        return method(*given, **named)

    return refusing_first
