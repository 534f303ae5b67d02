"""Arguments against the declared JSON Schema (2020-12), with errors a model can act on.

A schema is compiled once and must not change afterwards. Messages say what is wanted and of which kind the given value
is, never the value itself: it may be long, and it may be a secret. Nothing is fetched: a schema that points elsewhere
fits nothing. The work is bounded (`decisions.schema_validator`): what would take too much of it is refused.
"""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.validation import path_of
from wakeful.decisions.schema_keywords import MAX_STEPS, TooMuchWork
from wakeful.decisions.schema_validator import SchemaValidator, patterns_in
from wakeful.gate.quick_validation import quick_check

if TYPE_CHECKING:
    from jsonschema import ValidationError

MAX_VIOLATIONS = 10
"""How many of a call's mistakes are told at once."""
MAX_MESSAGE_CHARS = 300
MAX_COMPILED = 1024
"""How many schemas are kept compiled."""

_compiled: dict[int, tuple[dict[str, Any], "Validator"]] = {}
_by_text: dict[str, "Validator"] = {}


class Violation(NamedTuple):
    """One thing that is wrong with the arguments."""

    path: str
    """`items[2].price`; empty for the arguments as a whole."""
    message: str
    missing: str | None = None
    """The name of a required parameter of the tool that was not given."""


class Validator:
    """One compiled schema."""

    __slots__ = ("_accepts", "_full", "schema")

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self._accepts = quick_check(schema)
        self._full: SchemaValidator | None = None
        if self._accepts is None:  # a quick check is only made of schemas it knows every word of
            self.judge()

    def judge(self) -> SchemaValidator:
        """The real validator. Importing it costs more than importing wakeful: arguments that plainly fit never do.

        Raises InvalidConfig when the schema is none, or none that can be checked."""
        if self._full is None:
            self._full = SchemaValidator(self.schema)
        return self._full

    def check(self, arguments: dict[str, Any]) -> list[Violation]:
        """What is wrong; an empty list when the arguments fit. Does not raise."""
        if self._accepts is not None and self._accepts(arguments):
            return []
        from referencing.exceptions import Unresolvable

        found: list[Violation] = []
        try:
            for error in self.judge().errors(arguments):
                found.extend(_violations(error))
                if len(found) >= MAX_VIOLATIONS:
                    break
        except Unresolvable as error:
            return [Violation("", _short(f"the tool's own schema points to what is not in it: {error}"))]
        except TooMuchWork:
            words = (
                f"it takes more than {MAX_STEPS:,} steps to check this against the tool's schema: send less at a time"
            )
            return [Violation("", words)]
        except RecursionError:
            return [Violation("", "nested too deeply")]
        except Exception as error:
            # A pattern that is none, a number past all numbers: what cannot be checked is not let by.
            words = f"cannot be checked against the tool's schema: {type(error).__name__}: {error}"
            return [Violation("", _short(words))]
        return sorted(found[:MAX_VIOLATIONS], key=lambda each: each.path)


def compile(schema: dict[str, Any]) -> Validator:
    """The validator of a schema, made when it is first asked for. Raises InvalidConfig when it is no JSON Schema."""
    known = _compiled.get(id(schema))
    if known is None:
        if len(_compiled) >= MAX_COMPILED:
            _compiled.pop(next(iter(_compiled)))
        # Its schema is kept alive: no other object can get that id while it is in here.
        known = _compiled[id(schema)] = schema, _equal_to(schema)
    return known[1]


def _equal_to(schema: dict[str, Any]) -> Validator:
    """The validator of a schema that says the same: an agent that is made again has the tools it had."""
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError):
        return Validator(schema)
    validator = _by_text.get(text)
    if validator is None:
        validator = Validator(json.loads(text))
        if len(_by_text) >= MAX_COMPILED:
            _by_text.pop(next(iter(_by_text)))
        _by_text[text] = validator
    return validator


def schema_problem(schema: Any) -> str | None:
    """What is wrong with a schema that a model wrote; None when it can be held to. It may hold no patterns."""
    if not isinstance(schema, dict):
        return "a JSON Schema is an object"
    place = next((place for place, _ in patterns_in(schema)), None)
    if place is not None:
        return f"{path_of(place)}: patterns are not supported here; describe the text in the description instead"
    try:
        Validator(schema).judge()
    except InvalidConfig as error:
        return error.message
    return None


def _violations(error: "ValidationError") -> list[Violation]:
    """One of jsonschema's errors as one violation a field."""
    steps, rule, wanted = list(error.absolute_path), error.validator, error.validator_value
    if rule == "required" and isinstance(wanted, list) and isinstance(error.instance, dict):
        # jsonschema reports each missing name on its own; its message is the only place that says which.
        name = next((name for name in wanted if error.message.startswith(repr(name))), None)
        if name is not None:
            return [Violation(path_of([*steps, name]), "is required", None if steps else name)]
    inside = error.schema if isinstance(error.schema, dict) else {}
    given = error.instance if isinstance(error.instance, dict) else {}
    if rule == "additionalProperties" and wanted is False and "patternProperties" not in inside:
        known = inside.get("properties", {})
        told = f"is not known here; known are: {', '.join(known) or 'none'}"
        return [Violation(path_of([*steps, name]), _short(told)) for name in given if name not in known]
    return [Violation(path_of(steps), _short(_words(error)))]


def _words(error: "ValidationError") -> str:
    rule, wanted = str(error.validator), error.validator_value
    match rule:
        case "type":
            kinds = wanted if isinstance(wanted, list) else [wanted]
            return f"must be {' or '.join(map(str, kinds))}, not {_kind(error.instance)}"
        case "enum":
            return f"must be one of {_json(wanted)}"
        case "const":
            return f"must be {_json(wanted)}"
        case "anyOf" | "oneOf" if error.context:
            reasons = list(dict.fromkeys(_inner(inner) for inner in error.context))
            return f"fits none of the allowed forms: {'; '.join(reasons[:5])}"
        case _:
            return f"must satisfy {rule} {_json(wanted)}"


def _inner(error: "ValidationError") -> str:
    """A reason inside an `anyOf`, with its place below the value."""
    place = path_of(error.relative_path)
    first = _violations(error)[0] if error.validator in ("required", "additionalProperties") else None
    if first is not None:
        return f"{first.path} {first.message}"
    return f"{place} {_words(error)}" if place else _words(error)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return type(value).__name__


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _short(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE_CHARS else text[: MAX_MESSAGE_CHARS - 1] + "…"
