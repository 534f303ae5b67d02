"""What is wrong with a script, in words: where, which key, and what was probably meant."""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from wakeful.contracts.errors import MalformedScript
from wakeful.contracts.models import TokenUsage
from wakeful.providers.scripted.schema import CallStep, FailStep, ScriptFile, Step

Place = tuple[int | str, ...]
"""A way into the data: keys and positions."""

HINT = "A step is a text, or a mapping with any of: " + ", ".join(Step.model_fields) + "."
SHOWN = 5
"""More problems than these are counted, not listed."""

_INSIDE: dict[str, type[BaseModel]] = {"calls": CallStep, "fail": FailStep, "usage": TokenUsage}


def in_steps(where: str, number: int, error: ValidationError) -> MalformedScript:
    """One step of a list, or one that a function gave, does not hold."""
    return _malformed(where, (_line((number, *found["loc"]), found) for found in error.errors()))


def in_file(where: str, error: ValidationError, line_of: Callable[[Place], int | None]) -> MalformedScript:
    """A file can be read and is not a script."""
    lines = []
    for found in error.errors():
        place = tuple(part for position, part in enumerate(found["loc"]) if not (position == 2 and part == "step"))
        line = line_of(place)
        lines.append((f"line {line}, " if line else "") + _line(_numbered(place), found))
    return _malformed(where, lines)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'calls'?`, or nothing."""
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def _malformed(where: str, lines: Iterable[str]) -> MalformedScript:
    found = list(lines)
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return MalformedScript("\n".join(f"{where}: {line}" for line in [*found[:SHOWN], *more]), HINT)


def _numbered(place: Place) -> Place:
    """Steps are counted from 1, as people do; what stands outside them has no number."""
    if len(place) >= 2 and place[0] == "steps" and isinstance(place[1], int):
        return (place[1] + 1, *place[2:])
    return place


def _line(place: Place, found: ErrorDetails) -> str:
    number, path = (f"step {place[0]}", place[1:]) if place and isinstance(place[0], int) else ("", place)
    if found["type"] == "extra_forbidden":
        word = str(path[-1])
        known = _known_keys(path[:-1], inside_a_step=bool(number))
        return ": ".join(filter(None, (number, _spell(path[:-1]), f"unknown key {word!r}{did_you_mean(word, known)}")))
    return ": ".join(filter(None, (number, _spell(path), _words(found))))


def _known_keys(path: Place, *, inside_a_step: bool) -> Iterable[str]:
    if not inside_a_step:
        return ScriptFile.model_fields
    if not path:
        return Step.model_fields
    inner = _INSIDE.get(str(path[0]))
    return inner.model_fields if inner else ()


def _spell(path: Place) -> str:
    """`calls[0].arguments`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _words(found: ErrorDetails) -> str:
    given, context = found["input"], found.get("ctx", {})
    kind = type(given).__name__
    match found["type"]:
        case "model_type" | "model_attributes_type" | "dict_type":
            also = " (put it in quotes)" if isinstance(given, bool | int | float) or given is None else ""
            return f"must be a text or a mapping, not {kind} {given!r}{also}"
        case "missing":
            return "is missing"
        case "literal_error":
            allowed = re.findall(r"'([^']+)'", str(context.get("expected", "")))
            near = did_you_mean(given, allowed) if isinstance(given, str) else ""
            return f"{given!r} is not one of {', '.join(allowed)}{near}"
        case "value_error":
            return str(context.get("error", found["msg"]))
        case _:
            return f"{found['msg'][0].lower()}{found['msg'][1:]}, not {given!r}"
