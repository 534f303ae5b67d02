"""A call of Gemini's whose arguments come piece by piece, put together as Google describes it.

The first piece names the tool and says `willContinue`; each that follows has `partialArgs`, values with the JSONPath of
their place, where a text may come in several pieces; the last says `willContinue` no more. Rule: a call is one when its
last piece came. What does not fit together is a ValueError: no half of it is ever run.
"""

import math
import re
from itertools import pairwise
from typing import Any

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class GrowingCall:
    """One call, from the piece that names it."""

    __slots__ = ("_arguments", "_open_text", "is_open", "part")

    def __init__(self, part: dict[str, Any]) -> None:
        self.part = part
        """The part as if it had come at once, as far as it has come."""
        call = part["functionCall"] = dict(part["functionCall"])
        given = call.get("args")
        self._arguments: dict[str, Any] = dict(given) if isinstance(given, dict) else {}
        self._open_text: str | None = None
        """The place of a text of which more is to come."""
        self.is_open = True
        self._take(call)

    def grow(self, part: dict[str, Any]) -> None:
        """One more piece."""
        call = part["functionCall"]
        if call.get("name") and call.get("id") != self.part["functionCall"].get("id", ""):
            raise ValueError(f"{call['name']!r} was called before the call of {self.name!r} had its end")
        for key, value in part.items():
            if key != "functionCall":
                self.part.setdefault(key, value)
        self._take(call)

    @property
    def name(self) -> str:
        """As it was called on the wire."""
        return str(self.part["functionCall"]["name"])

    def _take(self, call: dict[str, Any]) -> None:
        pieces = call.get("partialArgs") or ()
        for piece in pieces:
            self._put(piece)
        self.is_open = bool(call.get("willContinue"))
        if not self.is_open and self._open_text is not None:
            raise ValueError(f"the call of {self.name!r} ended in the middle of {self._open_text}")
        whole = self.part["functionCall"]
        whole["args"] = self._arguments
        for piece_field in ("partialArgs", "willContinue"):
            whole.pop(piece_field, None)

    def _put(self, piece: dict[str, Any]) -> None:
        path, value = piece["jsonPath"], _value(piece)
        steps = _steps(path)
        goes_on = self._open_text == path
        if self._open_text is not None and not (goes_on and isinstance(value, str)):
            raise ValueError(f"{path} came before {self._open_text} had its end")
        held: Any = self._arguments
        for step, next_step in pairwise(steps):
            held = _entered(held, step, [] if isinstance(next_step, int) else {}, path)
        if goes_on:
            held[steps[-1]] += value
        else:
            _entered(held, steps[-1], None, path, must_be_new=True)
            held[steps[-1]] = value
        self._open_text = path if isinstance(value, str) and piece.get("willContinue") else None


def _entered(held: Any, step: str | int, empty: Any, path: str, *, must_be_new: bool = False) -> Any:
    """What stands at a step, made where there is nothing: lists grow at their end only."""
    if isinstance(step, int):
        if not isinstance(held, list) or step > len(held):
            raise ValueError(f"there is no place {path}")
        if step == len(held):
            held.append(empty)
            return held[step]
    else:
        if not isinstance(held, dict):
            raise ValueError(f"there is no place {path}")
        if step not in held:
            held[step] = empty
            return held[step]
    if must_be_new:
        raise ValueError(f"{path} was given twice")
    return held[step]


def _steps(path: str) -> list[str | int]:
    """The names and numbers of a path such as `$.foo.bar[0].data` or `$['foo'][0]`."""
    steps: list[str | int] = []
    at = 1
    while path[:1] == "$" and at < len(path) and (step := _STEP.match(path, at)):
        name, number, single, double = step.groups()
        quoted = single if single is not None else double
        if number is not None:
            steps.append(int(number))
        else:
            steps.append(name if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        at = step.end()
    if not steps or at < len(path) or isinstance(steps[0], int):
        raise ValueError(f"{path!r} is no path to an argument")
    return steps


def _value(piece: dict[str, Any]) -> Any:
    """The one value of a piece."""
    given = [name for name in _VALUES if name in piece]
    if len(given) != 1:
        raise ValueError(f"{piece['jsonPath']} has {len(given)} values")
    value = piece[given[0]]
    match given[0]:
        case "stringValue" if isinstance(value, str):
            return value
        case "boolValue" if isinstance(value, bool):
            return value
        case "numberValue" if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return value
        case "nullValue":
            return None
    raise ValueError(f"{piece['jsonPath']} has the {given[0]} {value!r}")
