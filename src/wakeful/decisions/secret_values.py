"""Secrets by their value: texts that are known to be secret, taken out of whatever repeats them.

Two kinds. *Keys* are the runtime's own (a provider's key): they are hidden wherever they stand, and no model or tool
chose them. *Values* were given to a tool as a secret in this run: a tool that echoes one gives it away, so they are
hidden in what tools return and in what is said. They are not hidden in the arguments of other calls: the model picks
them, and what it calls a password in one place must not blot out what it does in another.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from wakeful.contracts.sensitive_names import MAX_DEPTH, REDACTED

SHORTEST = 6
"""Shorter values are words that stand in texts for other reasons."""
SHORTEST_KEY = 8
"""A key that is shorter than this is a stand-in (`ollama`, `none`)."""
MOST_VALUES = 1_000
"""A run that gives more secrets than this has its oldest ones hidden by name alone."""
ARGUMENTS = frozenset({"arguments", "safe_args", "parameters", "raw_arguments", "injected_args"})
"""Where the arguments of calls stand: names and declarations say what is secret there."""
NAMES = frozenset(
    {
        "type", "kind", "name", "tool_name", "tool", "agent", "agent_name", "status", "decision", "stop_reason", "role",
        "origin", "source", "layer", "policy", "scheduling", "effect", "effects", "error_category", "error_type",
        "schema", "model_ref", "provider", "media_type", "digest", "sha256", "batch_id", "point", "mode",
        "output_ref", "owner",
    }
)  # fmt: skip
"""Fields that hold the runtime's own words: a value that happens to be spelled like one does not blot it out."""
_NAMING = ("_id", "_ref", "_refs", "_sha256", "_at", "_key")


class SecretValues:
    """What must not be shown. Empty, it changes nothing and costs nothing."""

    __slots__ = ("_all", "_keys", "_only_keys", "_values")

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._keys = frozenset(key for key in keys if len(key) >= SHORTEST_KEY)
        self._values: dict[str, None] = {}
        self._only_keys = _Spelled(self._keys)
        self._all = self._only_keys

    def __bool__(self) -> bool:
        return bool(self._keys or self._values)

    def add(self, values: Iterable[str]) -> None:
        """Values that were given to a tool as secrets."""
        new = [value for value in values if len(value) >= SHORTEST and value not in self._values]
        if new:
            self._values.update(dict.fromkeys(new))
            while len(self._values) > MOST_VALUES:
                del self._values[next(iter(self._values))]
            self._all = _Spelled([*self._keys, *self._values])

    def hide(self, text: str) -> str:
        """The text without keys and values, in the spellings they may appear in."""
        return self._all.hide(text)

    def hide_keys(self, text: str) -> str:
        """The text without keys: for arguments, and for what is about to be written down."""
        return self._only_keys.hide(text)

    def hide_bytes(self, data: bytes) -> bytes:
        """Bytes without keys, whatever else they are."""
        for key in self._keys:
            for spelling in _spellings(key):
                data = data.replace(spelling.encode(), REDACTED.encode())
        return data

    def hide_in(self, value: Any) -> Any:
        """A copy of JSON data without them, at every depth."""
        return self.hidden_in(value) if self else value

    def hidden_in(self, value: Any) -> Any:
        """The same, gone through in any case."""
        return _hidden_in(value, self.hide, self.hide_keys, 0)

    def hide_keys_in(self, value: Any) -> Any:
        """The same for keys alone."""
        return _hidden_in(value, self.hide_keys, self.hide_keys, 0) if self._keys else value


def hidden_texts(raw: Any, safe: Any) -> Iterator[str]:
    """The texts that redaction took out, so that they can be found again elsewhere."""
    if isinstance(raw, dict) and isinstance(safe, dict):
        for key, inner in raw.items():
            if key in safe:
                yield from hidden_texts(inner, safe[key])
    elif isinstance(raw, list | tuple) and isinstance(safe, list | tuple):
        for inner, shown in zip(raw, safe, strict=False):
            yield from hidden_texts(inner, shown)
    elif safe == REDACTED:
        yield from _texts(raw)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif value is not None and not isinstance(value, bool) and str(value) not in ("", REDACTED):
        yield str(value)


def _hidden_in(value: Any, hide: Any, in_arguments: Any, depth: int) -> Any:
    if isinstance(value, str):
        return hide(value)
    if depth >= MAX_DEPTH:
        return REDACTED if isinstance(value, dict | list | tuple) else value
    if isinstance(value, dict):
        copy = {}
        for key, inner in value.items():
            if isinstance(inner, str) and (key in NAMES or str(key).endswith(_NAMING)):
                copy[key] = in_arguments(inner)
            else:
                inside = in_arguments if key in ARGUMENTS else hide
                copy[key] = _hidden_in(inner, inside, in_arguments, depth + 1)
        return copy
    if isinstance(value, list | tuple):
        return [_hidden_in(inner, hide, in_arguments, depth + 1) for inner in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        words = str(value)
        return value if hide(words) == words else REDACTED
    return value


class _Spelled:
    """Secrets in every spelling. Nearly no text holds one: that is seen without a pattern, which takes long to make."""

    __slots__ = ("_pattern", "_spellings")

    def __init__(self, secrets: Iterable[str]) -> None:
        spellings = {spelling for secret in secrets for spelling in _spellings(secret)}
        # The longest first: a secret that begins with another one goes whole.
        self._spellings = sorted(spellings, key=len, reverse=True)
        self._pattern: re.Pattern[str] | None = None

    def hide(self, text: str) -> str:
        for spelling in self._spellings:
            if spelling in text:
                break
        else:
            return text
        if self._pattern is None:
            self._pattern = re.compile("|".join(map(re.escape, self._spellings)))
        return self._pattern.sub(REDACTED, text)


def _spellings(secret: str) -> set[str]:
    """As it is, and as URLs, JSON and Python write it."""
    plain = secret.encode("utf-8", "replace").decode()
    return {
        plain,
        quote(plain, safe=""),
        quote(plain),
        repr(plain)[1:-1],
        json.dumps(plain)[1:-1],
        json.dumps(plain, ensure_ascii=False)[1:-1],
    }


NO_SECRETS = SecretValues()


@lru_cache(maxsize=8)
def keys_only(keys: frozenset[str]) -> SecretValues:
    """What hides these keys; made once. Nothing is ever added to it."""
    return SecretValues(keys) if keys else NO_SECRETS
