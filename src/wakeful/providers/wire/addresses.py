"""Addresses of providers: how a path is put behind one, and whether it is this machine's.

A base URL may have a query (`?api-version=2024-10-21`), which belongs behind every path. Nothing here guesses who a
server is: that is what its owner says.
"""

from ipaddress import ip_address
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit


def trimmed(base_url: str) -> str:
    """A base URL without a slash at the end of its path, and without a fragment."""
    parts = urlsplit(base_url.strip())
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), parts.query, ""))


def joined(base_url: str, path: str) -> str:
    """A path below a base URL, with the base URL's query behind it."""
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + path, parts.query, ""))


def with_query(url: str, pairs: list[tuple[str, str]]) -> str:
    """A URL with some more in its query."""
    parts = urlsplit(url)
    query = "&".join(part for part in (parts.query, urlencode(pairs)) if part)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


def has_in_query(url: str, name: str) -> bool:
    """Whether a URL's query has that name."""
    return any(key == name for key, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True))


def is_loopback(url: str) -> bool:
    """Whether it leads to this machine. A name like `127.evil.example` is no address."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        found = ip_address(host)
    except ValueError:
        return False
    # An address of the older kind inside one of the newer: some versions of Python do not look inside it.
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
