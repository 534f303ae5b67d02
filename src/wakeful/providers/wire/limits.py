"""What the headers of an answer say about a provider's limits, in the spellings that are in use.

    x-ratelimit-limit-requests: 60           OpenAI, and most servers that speak its format: what is counted stands last
    x-ratelimit-remaining: 0                 servers that count one thing
    anthropic-ratelimit-tokens-reset: ...    Anthropic: what is counted stands in the middle
    ratelimit-reset: 12                      the draft of a standard

Pure. A header that cannot be read is left out: it says nothing, and nothing fails for it.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from wakeful.contracts.models import ProviderLimit

MOST_LIMITS = 12
_COUNTED = "requests"
"""What is meant where a header does not say what is counted."""
_AT_THE_END = re.compile(r"(?:x-)?ratelimit-(limit|remaining|reset)(?:-([a-z0-9_-]{1,40}))?")
_IN_THE_MIDDLE = re.compile(r"anthropic-ratelimit-([a-z0-9_-]{1,40})-(limit|remaining|reset)")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|us|ns|d|h|m|s)")
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_A_DATE = 1e9
"""Numbers above this are moments, in seconds or milliseconds since 1970; smaller ones are seconds to wait."""
_LATEST = 253_402_300_799.0


def limits_of(headers: Mapping[str, str], now: float | None = None) -> tuple[ProviderLimit, ...]:
    """Every limit the headers speak of, in their order. `now` is when they came: some resets count from there."""
    found: dict[str, dict[str, Any]] = {}
    for header, value in headers.items():
        name = header.lower()
        if match := _AT_THE_END.fullmatch(name):
            field, counted = match[1], match[2] or _COUNTED
        elif match := _IN_THE_MIDDLE.fullmatch(name):
            counted, field = match[1], match[2]
        else:
            continue
        read = _moment(value.strip(), now) if field == "reset" else _number(value.strip())
        if read is not None:
            found.setdefault(counted, {})["resets_at" if field == "reset" else field] = read
    return tuple(ProviderLimit(name=name, **fields) for name, fields in list(found.items())[:MOST_LIMITS])


def _number(text: str) -> float | None:
    """The number at the start: some servers add their window after a comma or a semicolon."""
    first = re.split(r"[,;]", text, maxsplit=1)[0].strip()
    return float(first) if re.fullmatch(r"\d{1,15}(\.\d{1,6})?", first) else None


def _moment(text: str, now: float | None) -> str | None:
    """When a limit is full again: a date, a moment since 1970, seconds from now, or `6m0.5s`."""
    number = _number(text)
    if number is not None and number > _A_DATE:
        return _iso(number / 1000 if number > _A_DATE * 1000 else number)
    span = number if number is not None else _span(text)
    if span is not None:
        return _iso(now + span) if now is not None else None
    try:
        return _iso(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError, OSError):
        return None


def _span(text: str) -> float | None:
    if not text or _SPAN.sub("", text):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _SPAN.findall(text))


def _iso(seconds: float) -> str | None:
    if not 0 <= seconds <= _LATEST:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
