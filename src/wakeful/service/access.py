"""Who asks, and what they may. A caller is known by how it came, never by what it says of itself.

local:UID       through the socket of the home, as the user of that number
token:NAME      over the network, with a token
"""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from wakeful.contracts.values import Value
from wakeful.settings.access_tokens import (
    SCOPES,
    AccessToken,
    add_token,
    match,
    new_token,
    read_tokens,
    remove_token,
    tokens_path,
)

LOCAL = "local:"
IMPLIED = {"operate": ("observe",), "reveal": ("observe",)}
"""A scope that opens another as well."""


class Caller(NamedTuple):
    """Somebody who asks, and the scopes they have."""

    name: str
    scopes: frozenset[str]

    @property
    def is_local(self) -> bool:
        """A user of this machine, through the socket of the home."""
        return self.name.startswith(LOCAL)

    def may(self, scope: str) -> bool:
        return scope in self.scopes


class TokenRecord(Value):
    """A token of a caller; the token itself is not kept."""

    name: str
    scopes: tuple[str, ...]
    created_at: float
    created_by: str = ""


class NewTokenRecord(TokenRecord):
    """A token that was made just now: the only time that it is shown."""

    token: str


def local_caller(uid: int) -> Caller:
    """A user of this machine, who could open the socket: everything is theirs."""
    return Caller(f"{LOCAL}{uid}", frozenset(SCOPES))


def opened(scopes: Iterable[str]) -> frozenset[str]:
    """The scopes with what they imply."""
    given = set(scopes)
    return frozenset(given.union(*(IMPLIED.get(scope, ()) for scope in given)))


@dataclass(slots=True)
class TokenBook:
    """The tokens that open this home: those on file, and those that its process was started with.

    The file is looked at again when it changed, so that a revoked token opens nothing at the next request.
    """

    given: Sequence[AccessToken] = ()
    path: Path = field(default_factory=tokens_path)
    _seen: tuple[int, int] = (0, 0)
    _tokens: Sequence[AccessToken] = ()

    def caller(self, token: str, *, looks: bool = True) -> Caller | None:
        """Whose token it is. Without `looks`: as the newest look at the file has it. Raises InvalidConfig."""
        found = match([*self.given, *(self._read() if looks else self._tokens)], token)
        return None if found is None else _caller(found)

    def is_empty(self) -> bool:
        return not self.given and not self._read()

    @property
    def edition(self) -> tuple[int, int]:
        """Another one after every change of the file. Raises InvalidConfig for one that cannot be read."""
        self._read()
        return self._seen

    def _read(self) -> Sequence[AccessToken]:
        try:
            found = os.stat(self.path)  # noqa: PTH116  (for every request: half of what `Path.stat` takes)
        except OSError:
            self._seen, self._tokens = (0, 0), ()
            return ()
        stamp = (found.st_mtime_ns, found.st_ino)
        if stamp != self._seen:
            self._tokens = read_tokens(self.path)
            self._seen = stamp
        return self._tokens


@lru_cache(maxsize=256)
def _caller(token: AccessToken) -> Caller:
    return Caller(f"token:{token.name}", opened(token.scopes))


def token_of_digest(digest: str, name: str = "given") -> AccessToken:
    """A token that a process is started with; it is on no file."""
    return AccessToken(name, ("operate",), digest, time.time())


def create_token(name: str, scopes: Sequence[str], *, by: str) -> NewTokenRecord:
    """Make a token for a caller. Raises InvalidRequest."""
    made, at = new_token(), time.time()
    add_token(tokens_path(), name, tuple(scopes), at=at, by=by, token=made)
    return NewTokenRecord(name=name, scopes=tuple(scopes), created_at=at, created_by=by, token=made)


def list_tokens() -> list[TokenRecord]:
    return [_record(each) for each in read_tokens(tokens_path())]


def revoke_token(name: str) -> TokenRecord:
    """It opens nothing from now on. Raises InvalidRequest with the names there are."""
    return _record(remove_token(tokens_path(), name))


def _record(each: AccessToken) -> TokenRecord:
    return TokenRecord(name=each.name, scopes=each.scopes, created_at=each.created_at, created_by=each.created_by)
