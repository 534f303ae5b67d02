"""What a delivery carries, read within bounds after its signature was checked."""

import json
from typing import Any, Final, NamedTuple

from wakeful.contracts.messages import JsonBody
from wakeful.contracts.triggers import Refusal

MAX_DEPTH: Final = 64
"""Lists and objects inside one another."""


class BodyProblem(NamedTuple):
    """Why a body is not taken."""

    reason: Refusal
    message: str


def read_body(raw: bytes, content_type: str) -> str | JsonBody | BodyProblem | None:
    """Words, data, or why it is neither; None: there is nothing in it."""
    if not raw.strip():
        return None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return BodyProblem("invalid_body", "the body is not UTF-8 text")
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        return text
    if depth_of(raw) > MAX_DEPTH:
        return BodyProblem("too_deep", f"the body is nested deeper than {MAX_DEPTH}")
    try:
        value = json.loads(text, parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError) as problem:
        return BodyProblem("invalid_body", f"the body is not JSON: {str(problem)[:200]}")
    return JsonBody(value=value)


def depth_of(raw: bytes) -> int:
    """How deep lists and objects stand inside one another; what is in strings does not count."""
    depth = deepest = 0
    in_string = is_escaped = False
    for byte in raw:
        if in_string:
            if is_escaped:
                is_escaped = False
            elif byte == 0x5C:
                is_escaped = True
            elif byte == 0x22:
                in_string = False
        elif byte == 0x22:
            in_string = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
            if deepest > MAX_DEPTH:
                break
        elif byte in b"]}":
            depth -= 1
    return deepest


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")
