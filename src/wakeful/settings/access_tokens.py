"""Tokens of callers that come over the network, in `tokens.json` of the home. A token is shown once; its hash is kept.

Whoever can write the file can let anybody in: it is readable and writable by its owner alone, and no agent reaches it.
"""

import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.contracts.errors import InvalidConfig, InvalidRequest
from wakeful.settings.home import home

FILE = "tokens.json"
PREFIX = "wk_"
SCOPES = ("observe", "operate", "reveal")
_LENGTH = 32


class AccessToken(NamedTuple):
    """A token as it is kept."""

    name: str
    scopes: tuple[str, ...]
    digest: str
    created_at: float
    created_by: str = ""


def tokens_path(environ: Mapping[str, str] = os.environ) -> Path:
    return home(environ) / FILE


def new_token() -> str:
    """A token that nobody guesses."""
    return PREFIX + secrets.token_urlsafe(_LENGTH)


def digest_of(token: str) -> str:
    """Tokens are long and random, so that a plain hash of one says nothing about it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def read_tokens(path: Path) -> list[AccessToken]:
    """All tokens, the oldest first. Raises InvalidConfig for a file that is none of ours."""
    try:
        data: Any = json.loads(path.read_text("utf-8"))
        return [AccessToken(**{**each, "scopes": tuple(each["scopes"])}) for each in data["tokens"]]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise InvalidConfig(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}",
            "Move it away, and create the tokens again: wakeful token create NAME",
        ) from None


def match(tokens: list[AccessToken], token: str) -> AccessToken | None:
    """The token that was given. Every one is compared, in a time that says nothing about any of them."""
    given, found = digest_of(token), None
    for each in tokens:
        if hmac.compare_digest(each.digest, given):
            found = each
    return found


def add_token(path: Path, name: str, scopes: tuple[str, ...], *, at: float, by: str, token: str | None = None) -> str:
    """Make a token, and return it: it cannot be had again. Raises InvalidRequest for a name that is taken."""
    if not name or not name.isprintable() or any(each in name for each in " :/"):
        raise InvalidRequest(f"{name!r} is not a name for a token", "Give a word, such as: phone")
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        told = f"there is no scope {unknown[0]!r}" if unknown else "a token needs a scope"
        raise InvalidRequest(told, f"Give one or more of: {', '.join(SCOPES)}.")
    made = token if token is not None else new_token()
    with _changing(path) as tokens:
        if any(each.name == name for each in tokens):
            raise InvalidRequest(
                f"there is a token called {name!r}", f"Give another name, or: wakeful token revoke {name}"
            )
        tokens.append(AccessToken(name, scopes, digest_of(made), at, by))
    return made


def remove_token(path: Path, name: str) -> AccessToken:
    """Raises InvalidRequest with the names there are."""
    with _changing(path) as tokens:
        found = next((each for each in tokens if each.name == name), None)
        if found is None:
            names = ", ".join(each.name for each in tokens) or "none"
            raise InvalidRequest(f"there is no token called {name!r}", f"There are: {names}.")
        tokens.remove(found)
    return found


@contextmanager
def _changing(path: Path) -> Iterator[list[AccessToken]]:
    """The tokens, written back as a whole when the block ends: one at a time, and never half."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(path.with_name(f"{FILE}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tokens = read_tokens(path)
        yield tokens
        fresh = path.with_name(f"{FILE}.new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123  (a handle, not a path)
            json.dump({"tokens": [each._asdict() for each in tokens]}, file, indent=1)
            file.flush()
            os.fsync(descriptor)
        fresh.replace(path)
    finally:
        os.close(lock)
