"""Names that say by themselves that a value is a secret, and how such values are hidden.

The rule of redaction that needs no declaration. What a tool's declaration adds to it is in `decisions.redaction`, which
is the function that everything that leaves the runtime goes through; declarations and metadata are cleaned by name here
already, when they are read.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

REDACTED = "[redacted]"
MAX_DEPTH = 100
"""What is nested deeper is hidden whole: nobody reads it, and walking it could end the process."""

SENSITIVE_WORDS = (
    "apikey",
    "authorization",
    "authtoken",
    "bearer",
    "cookie",
    "credential",
    "nonce",
    "password",
    "privatekey",
    "secret",
    "token",
)
COUNT_WORDS = (
    "tokens",
    "tokencount",
    "tokenusage",
    "tokenlimit",
    "tokenbudget",
    "tokenceiling",
    "tokenestimate",
    "tokentotal",
)
"""A name that says how many tokens there are. Only numbers pass under it: a text is still hidden."""
SCHEMA_FLAGS = ("sensitive", "x-sensitive", "secret", "writeOnly")
"""How a JSON Schema says that what it describes is a secret; `format: password` says so too."""

PLAIN, COUNT, SENSITIVE = 0, 1, 2
_SEPARATORS = str.maketrans("", "", "_- ")


@lru_cache(maxsize=4096)
def verdict(key: str) -> int:
    """PLAIN, COUNT or SENSITIVE."""
    name = key.lower().translate(_SEPARATORS)
    found = [word for word in SENSITIVE_WORDS if word in name]
    if not found:
        return PLAIN
    if found == ["token"] and any(word in name for word in COUNT_WORDS):
        return COUNT
    return SENSITIVE


def is_sensitive(key: str) -> bool:
    """Does the name alone say that the value is a secret?"""
    return verdict(key) == SENSITIVE


def is_flagged(schema: Mapping[str, Any]) -> bool:
    """Does the schema itself say that the value is a secret?"""
    return schema.get("format") == "password" or any(schema.get(flag) is True for flag in SCHEMA_FLAGS)


def hide_by_name(value: Any, depth: int = 0) -> Any:
    """A copy in which every value under a sensitive name is `[redacted]`, in objects and lists at every depth."""
    if isinstance(value, dict):
        if depth >= MAX_DEPTH:
            return REDACTED
        copy = {}
        for key, inner in value.items():
            found = verdict(key) if isinstance(key, str) else PLAIN
            if found == PLAIN:
                copy[key] = hide_by_name(inner, depth + 1) if isinstance(inner, dict | list | tuple) else inner
            elif found == COUNT:
                copy[key] = only_numbers(inner, depth + 1)
            else:
                copy[key] = REDACTED
        return copy
    if isinstance(value, list | tuple):
        if depth >= MAX_DEPTH:
            return REDACTED
        return [hide_by_name(inner, depth + 1) for inner in value]
    return value


def only_numbers(value: Any, depth: int) -> Any:
    """Under a name that counts tokens: numbers stay, words are hidden, objects are walked by their own names."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return hide_by_name(value, depth)
    if isinstance(value, list | tuple) and depth < MAX_DEPTH:
        return [only_numbers(inner, depth + 1) for inner in value]
    return REDACTED
