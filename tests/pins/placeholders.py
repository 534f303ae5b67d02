"""What is different in every run or on every machine, replaced by placeholders.

Ids, keys and digests get a number by their first appearance, so that a golden still shows which of them are the same:
`<turn 1>`, `<sha256 2>`. Times, durations, sizes of blobs, paths and versions get a word.
"""

import platform
import re
import sys
from pathlib import Path
from typing import Any

from wakeful import __version__

_ID = re.compile(
    r"(?P<kind>[A-Za-z][A-Za-z0-9.-]*?)_[0-9A-HJKMNP-TV-Z]{16}(?P<rest>(?:[0-9A-HJKMNP-TV-Z]{10})?)(?![0-9A-Za-z])"
)
"""Whole, or as people see it: without its last ten letters."""
_SHORT_ID = re.compile(r"\b(?P<kind>rt|ws)_[0-9a-f]{16}\b")
_KEY = re.compile(r"\b(?P<kind>wk)-[0-9a-f]{32}\b")
_SHA256 = re.compile(r"\bsha256:[0-9a-f]{64}\b")
_HEX = re.compile(r"(?<![0-9a-fA-F])[0-9a-f]{32,64}(?![0-9a-fA-F])")
_SHORT_HEX = re.compile(r"\b[0-9a-f]{12}\b")
"""The beginning of an id, as people may type it."""
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|\+00:00)?")
_EPOCH = re.compile(r"\b1[789]\d{8}\.\d+\b")
_DATE = re.compile(r"\b20\d{2}-\d{2}-\d{2}\b")
_CLOCK = re.compile(r"\b\d{2}:\d{2}:\d{2}(?:\.\d{3})?\b")
_TOOK = re.compile(r"(?<![\w.<])(?<!to )\d+(?:\.\d+)? ?(?:ms|s|min)\b(?! doubling)")
"""But for those of a retry policy: `0.2 s doubling to 8 s`."""
_LOCAL = re.compile(r"\blocal:\d+\b")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:.*\n)*?(?=\S+(?:Error|Exception|Broke))")

_MEASURED = ("_ms",)
_MOMENTS = ("_at", "at")
_CONFIGURED = frozenset({"timeout_ms", "retry_after_ms", "max_backoff_ms"})
"""Durations that were set, not measured: they are pinned."""


class Placeholders:
    """One for a whole golden: the same id is the same placeholder from its beginning to its end."""

    def __init__(self, **places: Path) -> None:
        """`places` are folders whose path is replaced by their name."""
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        found = [(str(form), f"<{name}>") for name, path in places.items() for form in {path, path.resolve()}]
        found += [(sys.executable, "<python>"), (sys.prefix, "<prefix>")]
        self._places = sorted(found, key=lambda each: len(each[0]), reverse=True)

    def text(self, text: str) -> str:
        """A text with placeholders, as far as they are the same in JSON and in words."""
        for path, name in self._places:
            text = text.replace(path, name)
        text = _TRACEBACK.sub("<traceback>\n", text)
        text = _LOCAL.sub("local:<uid>", text)
        text = _ID.sub(
            lambda found: self._numbered(found["kind"], found[0][: found.start("rest") - found.start()]), text
        )
        for pattern in (_SHORT_ID, _KEY):
            text = pattern.sub(lambda found: self._numbered(found["kind"], found[0]), text)
        text = _SHA256.sub(lambda found: self._numbered("sha256", found[0]), text)
        for pattern in (_UUID, _HEX):
            text = pattern.sub(lambda found: self._numbered("id", found[0]), text)
        text = _SHORT_HEX.sub(self._shortened, text)
        text = _DATE_TIME.sub("<time>", text)
        text = _EPOCH.sub("<time>", text)
        text = _DATE.sub("<date>", text)
        return text.replace(f"wakeful {__version__}", "wakeful <version>").replace(
            f"Python {platform.python_version()}", "Python <version>"
        )

    def words(self, text: str) -> str:
        """What a person was shown: durations and times of day too."""
        return _TOOK.sub("<took>", _CLOCK.sub("<clock>", self.text(text)))

    def value(self, value: Any, name: str = "") -> Any:
        """JSON data, by the names of its fields."""
        match value:
            case dict():
                return {key: self._field(value, key) for key in value}
            case list() | tuple():
                return [self.value(each, name) for each in value]
            case str():
                return self.text(value)
            case int() | float() if not isinstance(value, bool) and _is_measured(name):
                return "<ms>" if name.endswith("_ms") else "<time>"
            case _:
                return value

    def _field(self, holder: dict[str, Any], name: str) -> Any:
        if name == "size" and "digest" in holder:
            return "<size>"
        if name == "size_bytes" and _EPOCH.search(str(holder)):
            return "<size>"  # of a text with times in it, whose last digits may be missing
        if name == "backoff_ms" and not holder[name]:
            return 0
        return self.value(holder[name], name)

    def _shortened(self, found: re.Match[str]) -> str:
        return next((f"{known[:-1]}...>" for name, known in self._names.items() if name.startswith(found[0])), found[0])

    def _numbered(self, kind: str, name: str) -> str:
        if name not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[name] = f"<{kind} {self._counts[kind]}>"
        return self._names[name]


def _is_measured(name: str) -> bool:
    return name.endswith((*_MEASURED, *_MOMENTS)) and name not in _CONFIGURED
