"""Secrets by their looks: tokens that name their issuer, and what follows `Bearer`, inside any other text.

The last net, for views alone: nobody said that these are secrets, and nobody has to. It knows the usual shapes and no
others; what is known to be a secret is hidden by its value (`secret_values`), whatever it looks like. Nothing is
changed in the log, nor in what a model and a tool are given.
"""

import re
from typing import Any

from wakeful.contracts.sensitive_names import REDACTED

_TOKENS = (
    r"sk-[\w-]{16,}",  # OpenAI, Anthropic and those who speak like them
    r"(?:gsk|hf|npm|glsa|dop_v1|shpat|shpss|whsec|lin_api|r8)_[A-Za-z0-9_]{20,}",
    r"(?:xai|pypi|glpat|dapi|rnd|tvly)-?[A-Za-z0-9_-]{20,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_\w{20,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"xapp-[A-Za-z0-9-]{10,}",
    r"A(?:KIA|SIA)[A-Z0-9]{16}",
    r"AIza[\w-]{30,}",
    r"ya29\.[\w-]{16,}",
    r"[rsp]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"SG\.[\w-]{16,}\.[\w-]{16,}",
    r"\d{8,10}:AA[\w-]{30,}",  # Telegram
    r"wkt_[0-9a-f]{24}\.[\w-]{40,}",  # addresses of our own triggers
    r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*",
)
# Each begins with letters of its own at the beginning of a word, and is read once: no place is looked at twice.
_SHAPES = re.compile(
    rf"(?<![\w-])(?:{'|'.join(_TOKENS)})"
    r"|(?P<scheme>(?i:\b(?:bearer|basic|token)\s{1,4}))(?P<credential>[A-Za-z0-9._~+/=-]{16,})"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s\\]*+"
    r"|(?P<user>://[^\s/:@]{1,64}:)[^\s/@]{1,128}@"
)
_DIGIT = re.compile(r"[0-9]")


def hide_shapes(text: str) -> str:
    """The text without what looks like a secret."""
    return _SHAPES.sub(_hidden, text) if len(text) >= 12 else text


def hide_shapes_in(value: Any) -> Any:
    """A copy of JSON data without what looks like a secret, at every depth."""
    if isinstance(value, str):
        return hide_shapes(value)
    if isinstance(value, dict):
        return {key: hide_shapes_in(inner) for key, inner in value.items()}
    return [hide_shapes_in(inner) for inner in value] if isinstance(value, list | tuple) else value


def looks_secret(text: str) -> bool:
    """Is there anything in the text that looks like a secret?"""
    return hide_shapes(text) != text


def _hidden(found: re.Match[str]) -> str:
    if found["user"] is not None:
        return f"{found['user']}{REDACTED}@"
    if found["scheme"] is None:
        return REDACTED
    # Words follow "bearer" and "token", too: a credential has a digit in it.
    return f"{found['scheme']}{REDACTED}" if _DIGIT.search(found["credential"]) else found[0]
