"""What an agent says about how it works (planning, budget awareness, people, children, compaction): what it may be.

One check for each kind of value. An agent is made with them whoever describes it (a program, a file, a payload), so
that no way in accepts what another refuses. Whether tools that are named exist is checked where tools are.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.values import Value

MAX_PARALLEL_SUBAGENTS: Final = 7
PER_MESSAGE: Final = "per-message"
AWARENESS: Final = r"^(per-message|limit:(0|[1-9][0-9]?|100))$"
"""What a schema says of `budget_awareness`."""
_REFERENCE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*[:/]\S")
_LIMIT = re.compile(r"limit:(0|[1-9][0-9]?|100)")


def is_model_reference(text: object) -> bool:
    """Does it name a provider and a model, as `provider:model` or `provider/model`?"""
    return isinstance(text, str) and _REFERENCE.match(text) is not None


def awareness_limit(budget_awareness: str | None) -> int | None:
    """The percentage of `limit:<n>`; None for any other kind of awareness."""
    found = _LIMIT.fullmatch(budget_awareness or "")
    return int(found[1]) if found else None


# --- one check for each kind of field; `where` names the agent and the field ------------------------------------------


def checked_flag(where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidConfig(f"{where}={value!r}", "give True or False")
    return value


def checked_text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidConfig(f"{where}={value!r}", "give a text")
    return value


def checked_reference(where: str, value: Any) -> str | None:
    if value is not None and not is_model_reference(value):
        raise InvalidConfig(f"{where}={value!r} does not name a provider and a model", "write provider:model")
    return value if value is None else str(value)


def checked_awareness(where: str, value: Any) -> str | None:
    known = value is None or (isinstance(value, str) and (value == PER_MESSAGE or awareness_limit(value) is not None))
    if not known:
        raise InvalidConfig(f"{where}={value!r}", "give 'per-message', or 'limit:<n>' with n a whole number, 0 to 100")
    return value if value is None else str(value)


def checked_names(where: str, value: Any) -> tuple[str, ...]:
    """A list of names, in the order they were given."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidConfig(f"{where}={value!r}", "give a list of names")
    listed = tuple(value)
    for name in listed:
        if not isinstance(name, str) or not name.strip():
            raise InvalidConfig(f"{where} has {name!r}", "give names: texts that are not empty")
    return listed


def checked_injected_args(where: str, value: Any) -> dict[str, str]:
    """Names and descriptions, and nothing else: that is what travels unchanged everywhere."""
    if not isinstance(value, Mapping):
        raise InvalidConfig(f"{where}={value!r}", 'give a dict: {"reason": "Why you call this tool."}')
    for name, description in value.items():
        if not isinstance(name, str) or not name.strip():
            raise InvalidConfig(f"{where} has a name {name!r}", "a name is a text that is not empty")
        if not isinstance(description, str):
            raise InvalidConfig(
                f"{where}[{name!r}] is a {type(description).__name__}",
                "give the description alone; an injected field is always an optional text",
            )
    return dict(value)


def checked_parallel(where: str, value: Any) -> int:
    """How many children one call may start. Checked when an agent is made, and again for every call."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_PARALLEL_SUBAGENTS:
        raise InvalidConfig(f"{where}={value!r}", f"give a whole number, 1 to {MAX_PARALLEL_SUBAGENTS}")
    return value


class CompactionPolicy(Value):
    """When a conversation that grows too long for its model is folded into a summary."""

    enabled: bool = True
    threshold: float = 0.8
    """The share of the model's window from which on it is folded."""
    keep_user_turns: int = 4
    """The newest messages of the user that stay word for word, with everything after them."""
    model: str | None = None
    """The model that writes the summary; None: the agent's own."""

    if not TYPE_CHECKING:  # a type checker makes the constructor from the fields

        def __init__(self, **given: Any) -> None:
            """Raises InvalidConfig, naming the field and its value."""
            for name in given:
                if name not in type(self).model_fields:
                    known = ", ".join(type(self).model_fields)
                    raise InvalidConfig(f"compaction has no field {name!r}", f"known are: {known}")
            checked_flag("compaction: enabled", given.get("enabled", True))
            checked_reference("compaction: model", given.get("model"))
            _check_share("compaction: threshold", given.get("threshold", 0.8))
            _check_count("compaction: keep_user_turns", given.get("keep_user_turns", 4))
            super().__init__(**given)


def _check_share(where: str, share: Any) -> None:
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise InvalidConfig(f"{where}={share!r}", "give a share of the window, above 0 and at most 1")


def _check_count(where: str, count: Any) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidConfig(f"{where}={count!r}", "give a whole number, 1 or more")


def checked_compaction(who: str, value: Any) -> CompactionPolicy:
    """A policy, or the same as data; None is the default."""
    if value is None:
        return CompactionPolicy()
    if isinstance(value, CompactionPolicy):
        return value
    if not isinstance(value, Mapping):
        raise InvalidConfig(f"{who}: compaction={value!r}", "give CompactionPolicy(threshold=0.7) or the like")
    try:
        return CompactionPolicy(**value)
    except InvalidConfig as wrong:
        raise InvalidConfig(f"{who}: {wrong.message}", wrong.hint) from None
