"""Answers that are no JSON object, as one: providers hold a model to objects, and tools take nothing else.

A list, a number, a choice of words, a union or a map goes out as the one property `result` of an object, and comes back
without it. Rule: an object with named properties stays as it is, so that what most callers ask for is what is sent.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

RESULT = "result"
"""The property that holds a wrapped answer."""
OPENING = re.compile(r'\s*\{\s*"result"\s*:\s*')
"""How a wrapped answer begins."""
_FENCE = "```"
_LANGUAGE = re.compile(r"[\w-]*")
_UNIONS = ("anyOf", "oneOf", "allOf")
_NO_OBJECT = (*_UNIONS, "enum", "const", "not", "if")
_MOST_STEPS = 8


def needs_wrapping(schema: Mapping[str, Any]) -> bool:
    """Whether the schema describes anything but one object with named properties."""
    root: Mapping[str, Any] = schema
    for _ in range(_MOST_STEPS):
        ref = root.get("$ref")
        if ref is None:
            break
        target = _found(schema, ref)
        if target is None:
            return True
        root = {**target, **{key: value for key, value in root.items() if key != "$ref"}}
    if "$ref" in root or any(word in root for word in _NO_OBJECT):
        return True
    if root.get("type", "object") != "object":
        return True
    if root.get("properties"):
        return False
    # A map, or anything at all: closed, as providers want the outermost object, it could hold nothing.
    is_open = root.get("additionalProperties", "properties" not in root) is not False
    return is_open or "patternProperties" in root


def as_object(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object: the schema itself, or the one that holds it as its `result`."""
    if not needs_wrapping(schema):
        return schema
    definitions = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    inside = {key: value for key, value in schema.items() if key not in ("$defs", "definitions", "$schema", "$id")}
    return {
        "type": "object",
        "properties": {RESULT: _moved(inside)},
        "required": [RESULT],
        "additionalProperties": False,
        **{key: _moved(value) for key, value in definitions.items()},
    }


def from_object(schema: Mapping[str, Any], value: Any) -> Any:
    """What was meant by an object that fits `as_object(schema)`."""
    if needs_wrapping(schema) and isinstance(value, dict) and value.keys() == {RESULT}:
        return value[RESULT]
    return value


def unfenced(text: str) -> str:
    """Models like to put JSON between fences; what is inside is judged as strictly as without them."""
    first, newline, rest = text.strip().partition("\n")
    is_fenced = newline and first.startswith(_FENCE) and _LANGUAGE.fullmatch(first[len(_FENCE) :].strip())
    return rest.removesuffix(_FENCE) if is_fenced and rest.endswith(_FENCE) else text


def unwrapped(text: str) -> str:
    """A wrapped answer without its object, to the letter; anything else as it is."""
    inner = unfenced(text)
    opening = OPENING.match(inner)
    closed = inner.rstrip()
    if opening is None or not closed.endswith("}"):
        return text
    held = closed[opening.end() : -1].rstrip()
    try:
        json.loads(held)
    except (ValueError, RecursionError):
        return text  # the object has more than this one property, or is none
    return held


def _found(schema: Mapping[str, Any], ref: Any) -> Mapping[str, Any] | None:
    """What a reference within the schema stands for."""
    if not isinstance(ref, str) or not ref.startswith("#"):
        return None
    found: Any = schema
    for step in ref[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or step not in found:
            return None
        found = found[step]
    return found if isinstance(found, Mapping) else None


def _moved(schema: Any) -> Any:
    """The same schema one level further in: references to its root, or into it, lead to where that is now."""
    if isinstance(schema, list):
        return [_moved(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _led(value) if key == "$ref" else _moved(value) for key, value in schema.items()}


def _led(ref: Any) -> Any:
    if not isinstance(ref, str) or not ref.startswith("#") or ref.startswith(("#/$defs/", "#/definitions/")):
        return _moved(ref)
    return f"#/properties/{RESULT}{ref[1:]}"


class Unwrapper:
    """A wrapped answer as it comes, piece by piece, without its object."""

    def __init__(self) -> None:
        self._begun: bool | None = None
        """Whether the object was opened; None as long as that is not known."""
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown now."""
        if self._begun is False:
            return piece
        text = self._held + piece
        if self._begun is None:
            opening = OPENING.match(text)
            if opening is None:
                if _may_open(text):
                    self._held = text
                    return ""
                self._begun, self._held = False, ""
                return text
            rest = text[opening.end() :]
            if not rest:  # more blanks may follow, which are not the answer's
                self._held = text
                return ""
            self._begun, text = True, rest
        shown = text.rstrip("} \t\r\n")  # what may close the object is held until more has come
        self._held = text[len(shown) :]
        return shown

    def close(self) -> str:
        """What is left when nothing more comes: without the end of the object."""
        held, self._held = self._held, ""
        if not self._begun:
            return held
        return held.rstrip().removesuffix("}").rstrip()


_STEPS = ("{", f'"{RESULT}"', ":")


def _may_open(text: str) -> bool:
    """Whether this can still become the opening of a wrapped answer."""
    rest = text.lstrip()
    for step in _STEPS:
        if not rest.startswith(step):
            return step.startswith(rest)
        rest = rest[len(step) :].lstrip()
    return True
