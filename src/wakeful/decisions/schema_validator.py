"""JSON Schema (2020-12) in bounded work: what a schema costs is counted, and beyond the limit it is given up.

The rule: no schema and no value, whoever wrote them, keeps the process busy. Every keyword that is looked at is a step,
and more where it looks at more; patterns are matched without backtracking (`linear_patterns`); nothing is fetched. A
schema that cannot be checked like this is refused when it is read. Steps are counted and not timed, so that the same
call comes to the same verdict on every machine and in a replay.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.validation import path_of
from wakeful.decisions.linear_patterns import PatternRefused, found_by
from wakeful.decisions.schema_keywords import TooMuchWork, WorkAllowance, budget, counting_validator
from wakeful.decisions.schema_size import multiplying

if TYPE_CHECKING:
    from jsonschema import ValidationError

MAX_SCHEMA_STEPS = 1_000_000
"""Of one schema against what a schema is: about 5,000 parts."""


class SchemaValidator:
    """One schema, ready to be held against values. Raises InvalidConfig when it is none, or cannot be checked."""

    __slots__ = ("_validator",)

    def __init__(self, schema: Any, steps: WorkAllowance | None = None) -> None:
        problem = schema_problem(schema, steps)
        if problem is not None:
            raise InvalidConfig(problem)
        self._validator = _made(schema)

    def errors(self, value: Any, steps: WorkAllowance | None = None) -> Iterator["ValidationError"]:
        """What is wrong with a value. Raises TooMuchWork, and RecursionError for what is nested too deeply."""
        errors = self._validator.iter_errors(value)
        left = steps or WorkAllowance()
        while True:
            token = budget.set(left)
            try:
                error = next(errors, None)
            finally:
                budget.reset(token)
            if error is None:
                return
            yield error


def schema_problem(schema: Any, steps: WorkAllowance | None = None) -> str | None:
    """Why this is no JSON Schema, or none that can be checked in bounded work; None when it is one."""
    if not isinstance(schema, Mapping | bool):
        return f"not a JSON Schema: it is an object, not {type(schema).__name__}"
    left = steps or WorkAllowance(MAX_SCHEMA_STEPS)
    left.depth = 0
    token = budget.set(left)
    try:
        too_much = multiplying(schema)  # the cheapest question, and the one that the others rest on
        if too_much is not None:
            return too_much
        error = next(_made(_meta_schema()).iter_errors(schema), None)
        if error is not None:
            return f"not a JSON Schema, at {path_of(error.absolute_path) or 'its top'}: {error.message[:300]}"
        for place, pattern in patterns_in(schema):
            try:
                left.spend(found_by(pattern).size // 4)  # making one takes as long as it is large
            except PatternRefused as refused:
                return f"a JSON Schema with a pattern that cannot be used, at {path_of(place)}: {refused}"
    except TooMuchWork:
        return "a JSON Schema that is too large to be checked"
    except RecursionError:
        return "a JSON Schema that is nested too deeply"
    finally:
        budget.reset(token)
    return None


def patterns_in(schema: Any) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Every text that stands where a pattern would, with its place. What only looks like one is named, too."""
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), schema)]
    while waiting:
        place, part = waiting.pop()
        if isinstance(part, Mapping):
            if isinstance(part.get("pattern"), str):
                yield (*place, "pattern"), part["pattern"]
            named = part.get("patternProperties")
            for pattern in named if isinstance(named, Mapping) else ():
                yield (*place, "patternProperties"), str(pattern)
            waiting += [((*place, key), inner) for key, inner in part.items()]
        elif isinstance(part, list):
            waiting += [((*place, index), inner) for index, inner in enumerate(part)]


def _made(schema: Any) -> Any:
    from referencing import Registry

    # An empty registry of its own: jsonschema would otherwise go and fetch what a `$ref` names. Crawled once, or each
    # reference to an anchor would go through the whole schema again.
    kind = counting_validator()
    registry: Any = Registry()
    if isinstance(schema, Mapping):
        from referencing.jsonschema import DRAFT202012

        resource = DRAFT202012.create_resource(schema)
        registry = registry.with_resource(resource.id() or "", resource).crawl()
    return kind(schema, registry=registry)


@cache
def _meta_schema() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator.META_SCHEMA
