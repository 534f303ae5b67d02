"""Keys out of any text, by their value: wherever a provider, a proxy or a library repeats one.

A key is never recognised by its looks alone; it is known, because it was sent. So what is not a key stays readable.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import quote, urlsplit, urlunsplit

HIDDEN = "[redacted]"
SHORTEST_SECRET = 6
"""Shorter values are words that stand in texts for other reasons (`local`, `none`)."""
PUBLIC_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "anthropic-beta",
        "anthropic-version",
        "cache-control",
        "connection",
        "content-length",
        "content-type",
        "host",
        "http-referer",
        "idempotency-key",
        "openai-beta",
        "originator",
        "user-agent",
        "x-title",
    }
)
"""Headers whose values may be shown; every other header's value counts as a secret."""
_SCHEMES = ("bearer ", "basic ", "token ")


class Secret:
    """A key that does not show itself: not in a repr, a format, a log line or a pickle."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The key. Only for the header that carries it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN!r})"

    def __str__(self) -> str:
        return HIDDEN

    def __reduce__(self) -> str:
        raise TypeError("a key is not written anywhere")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))


class RequestHeaders(dict[str, str]):
    """Headers of a request: what stands in them is sent, and a traceback with locals shows their names alone."""

    def __repr__(self) -> str:
        return f"RequestHeaders({', '.join(self)})"


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets, in the spellings they may appear in."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) < SHORTEST_SECRET:
            continue
        for spelling in {secret, quote(secret, safe=""), quote(secret), repr(secret)[1:-1]}:
            text = text.replace(spelling, HIDDEN)
    return text


def secrets_of(headers: Mapping[str, str]) -> tuple[str, ...]:
    """What of a request's headers must not be repeated; `Bearer KEY` is a secret with and without its first word."""
    found: list[str] = []
    for name, value in headers.items():
        if name.lower() in PUBLIC_HEADERS:
            continue
        found += [value[len(scheme) :].strip() for scheme in _SCHEMES if value.lower().startswith(scheme)]
        found.append(value)
    return tuple(found)


def secrets_of_url(url: str) -> tuple[str, ...]:
    """What of a URL must not be repeated: a password in it, and the values of its query; a version is no secret."""
    parts = urlsplit(url)
    pairs = [pair.partition("=") for pair in parts.query.split("&")] if parts.query else []
    values = [value for name, _, value in pairs if name.lower() != "api-version"]
    return tuple(value for value in (parts.password or "", *values) if value)


def public_url(url: str) -> str:
    """A URL that may be shown: without user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
