"""Whose word a message carries, and what a chain of causes comes to: the lowest word in it."""

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

Authority: TypeAlias = Literal["operator_instruction", "runtime_instruction", "integration_signal", "external_evidence"]
"""Highest first. A signal has a verified sender, and who wrote what it carries is not known; of evidence neither is."""


class _Ranks(dict[str, int]):
    """The lower a word, the higher its number."""

    def __missing__(self, word: str) -> int:
        return len(self)


_LOWER = _Ranks(operator_instruction=0, runtime_instruction=1, integration_signal=2, external_evidence=3)


def lowest(words: Iterable[str]) -> str:
    """The lowest of them. A word that nobody knows is below all others; of none, it is the operator's."""
    return max(words, key=_LOWER.__getitem__, default="operator_instruction")


_WORDS: dict[str, Authority] = {word: word for word in get_args(Authority)}


def known_authority(word: str) -> Authority:
    """The word, or the lowest there is for one that nobody knows."""
    return _WORDS.get(word, "external_evidence")
