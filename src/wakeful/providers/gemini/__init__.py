"""Gemini's own API (`generateContent`), and servers that speak it.

`encode` makes requests (`part_writer` writes parts, `contents` puts them in order), `decode` reads answers
(`part_reader` reads parts), `client` is the Model. Which endpoint and key to use is settled elsewhere.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeful.providers.gemini.client import Gemini as Gemini

__all__ = ["Gemini"]


def __getattr__(name: str) -> object:
    if name == "Gemini":  # loaded when it is used: a program with another provider does not need it
        from wakeful.providers.gemini.client import Gemini

        return Gemini
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
