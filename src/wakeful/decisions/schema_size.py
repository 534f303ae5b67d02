"""How large a JSON Schema is once its references are followed: a few hundred bytes can stand for billions of parts.

The rule: a schema is not worked with before this was asked. Whoever prepares a schema for a model or reads parameters
off it follows references; one that doubles thirty times would take all the memory there is.
"""

from collections.abc import Iterator, Mapping
from typing import Any

MAX_PARTS = 100_000
"""Of a schema with every reference followed once on each way to it."""
MAX_PARTS_OF_A_VALUE = 2_000
"""Of those that all speak about one and the same value."""
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("if", "then", "else", "not")


def multiplying(schema: Any) -> str | None:
    """Why a schema is too much to work with, or None."""
    root = schema if isinstance(schema, Mapping) else {}
    counted: dict[int, int] = {}
    if _parts(schema, root, counted, set()) > MAX_PARTS:
        return f"a JSON Schema whose references stand for more than {MAX_PARTS:,} parts"
    of_a_value: dict[int, int] = {}
    for part in _every(schema):
        found = _parts_of_a_value(part, root, of_a_value, set())
        if found is None:
            return "a JSON Schema in which a reference leads back to itself, about the same value"
        if found > MAX_PARTS_OF_A_VALUE:
            return f"a JSON Schema in which more than {MAX_PARTS_OF_A_VALUE:,} parts speak about one value"
    return None


def is_recursive(schema: Any) -> bool:
    """Does a part contain itself? Only then is what a value costs not bounded by its size."""
    root = schema if isinstance(schema, Mapping) else {}
    closed: set[int] = set()
    above: set[int] = set()

    def returns(part: Any) -> bool:
        if isinstance(part, list):
            return any(map(returns, part))
        if not isinstance(part, Mapping) or id(part) in closed:
            return False
        if id(part) in above:
            return True
        above.add(id(part))
        inner = [value for key, value in part.items() if key not in ("$defs", "definitions")]
        found = returns([*inner, _referred(part, root)])
        above.discard(id(part))
        closed.add(id(part))
        return found

    return returns(schema)


def _every(schema: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _parts(part: Any, root: Mapping[str, Any], counted: dict[int, int], above: set[int]) -> int:
    """All parts, each counted as often as it is reached; one that contains itself once."""
    if isinstance(part, list):
        return sum(_parts(inner, root, counted, above) for inner in part)
    if not isinstance(part, Mapping) or id(part) in above:
        return 0
    known = counted.get(id(part))
    if known is None:
        above.add(id(part))
        inner = [value for key, value in part.items() if key not in ("$defs", "definitions")]
        known = 1 + _parts([*inner, _referred(part, root)], root, counted, above)
        above.discard(id(part))
        counted[id(part)] = known
    return known


def _parts_of_a_value(part: Any, root: Mapping[str, Any], counted: dict[int, int], above: set[int]) -> int | None:
    """The parts that speak about the value this one speaks about; None when that never ends."""
    if not isinstance(part, Mapping):
        return 0
    if id(part) in above:
        return None
    known = counted.get(id(part))
    if known is not None:
        return known
    above.add(id(part))
    total = 1
    for inner in _beside(part, root):
        found = _parts_of_a_value(inner, root, counted, above)
        if found is None:
            return None
        total += found
    above.discard(id(part))
    counted[id(part)] = total
    return total


def _beside(part: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Any]:
    yield _referred(part, root)
    for word in _LISTS:
        listed = part.get(word)
        yield from listed if isinstance(listed, list) else ()
    for word in _SINGLE:
        yield part.get(word)
    dependent = part.get("dependentSchemas")
    yield from dependent.values() if isinstance(dependent, Mapping) else ()


def _referred(part: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """What a reference inside the schema names; None for any other."""
    reference = part.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    place: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step:
            known = step.replace("~1", "/").replace("~0", "~")
            if isinstance(place, list) and known.isdigit() and int(known) < len(place):
                place = place[int(known)]
            else:
                place = place.get(known) if isinstance(place, Mapping) else None
    return place
