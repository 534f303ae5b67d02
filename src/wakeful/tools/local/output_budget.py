"""How much of a command's output a model is shown: the beginning and the end, and how much is missing between.

A budget is in tokens, estimated as elsewhere; whatever it says, no result is longer than a result may be.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wakeful.contracts.budgets import MAX_TOOL_RESULT_BYTES
from wakeful.contracts.errors import InvalidConfig, inside
from wakeful.contracts.tools import MAX_RESULT_TOKENS
from wakeful.settings.owner_file import check_names
from wakeful.tools.results import BYTES_PER_TOKEN, clean

MAX_TOKENS = 64_000
DEFAULT_SETTING, MAX_SETTING = "default_tool_output_tokens", "max_tool_output_tokens"
_TWO_BYTES = frozenset('"\\\n\r\t\b\f')


@dataclass(frozen=True, slots=True)
class OutputBudget:
    """What a call gets that asks for nothing, and the most that any call gets. In estimated tokens."""

    default_tokens: int = MAX_RESULT_TOKENS
    max_tokens: int = MAX_TOKENS

    @classmethod
    def from_settings(cls, runtime: Mapping[str, Any], environ: Mapping[str, str]) -> "OutputBudget":
        """From the `runtime` table of the owner's settings; a variable of the environment beats it."""
        check_names(runtime, (DEFAULT_SETTING, MAX_SETTING), "[runtime] has", "runtime")
        found = {}
        for name, otherwise in ((DEFAULT_SETTING, MAX_RESULT_TOKENS), (MAX_SETTING, MAX_TOKENS)):
            variable = f"WAKEFUL_{name.upper()}"
            if environ.get(variable):
                found[name] = _count(variable, environ[variable])
            else:
                with inside("runtime", name):
                    found[name] = _count(f"runtime.{name}", runtime.get(name, otherwise))
        return cls(found[DEFAULT_SETTING], found[MAX_SETTING])

    def tokens(self, asked: int | None) -> int:
        return min(self.default_tokens if asked is None else asked, self.max_tokens)

    def most_bytes(self, asked: int | None) -> int:
        """What that is in bytes, and never more than a result may have."""
        return min(self.tokens(asked) * BYTES_PER_TOKEN, MAX_TOOL_RESULT_BYTES)


def both_ends(data: bytes, dropped: int, most: int) -> tuple[str, bool]:
    """Output as text of at most `most` bytes in JSON, and whether that is less than all of it."""
    text = clean(data.decode(errors="replace"))
    if not dropped and len(text) <= most and sum(map(_size, text)) <= most:
        return text, False
    room = max(0, most - 120)
    head = _fitting(text, room // 2)
    tail = _fitting(text[len(head) :][::-1], room - room // 2)[::-1]
    missing = len(data) + dropped - len(head.encode()) - len(tail.encode())
    return f"{head}\n[{missing:,} bytes are left out here]\n{tail}", True


def share(stdout: int, stderr: int, most: int) -> tuple[int, int]:
    """One budget for two streams: what the smaller does not need, the larger gets."""
    half = most // 2
    if stderr <= half:
        return most - stderr, stderr
    if stdout <= half:
        return stdout, most - stdout
    return half, most - half


def _fitting(text: str, most: int) -> str:
    used = 0
    for index, character in enumerate(text):
        used += _size(character)
        if used > most:
            return text[:index]
    return text


def _size(character: str) -> int:
    """Bytes of a character inside a JSON text."""
    if character < " ":
        return 2 if character in _TWO_BYTES else 6
    if character < "\x80":
        return 2 if character in _TWO_BYTES else 1
    return len(character.encode())


def _count(name: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = 0
    if number < 1 or isinstance(value, bool | float):
        raise InvalidConfig(f"{name} is {value!r}", "give a whole number of tokens, 1 or more")
    return number
