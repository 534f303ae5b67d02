"""The hash chain: each append to an agent's stream vouches for all before it.

`hash = H(previous, header, digest of each fact)` over the bytes as they are stored. A fact enters as its digest, so
that its body can go one day and the chain still holds. An agent's chain begins with the hash of its id: rows moved to
another agent's stream do not fit there.

An append has one salt, from which each fact's own follows. When a fact is erased, its digest takes the place of its
body and the salts of the others take the place of the one they came from: what is kept reveals nothing.
"""

from collections.abc import Sequence
from hashlib import blake2b

SIZE = 32
SALT = 8
_AT_ONCE = 8
"""So many salts come from one hash."""


def origin(agent_id: str) -> bytes:
    """What the first append to an agent's stream is chained to."""
    return blake2b(agent_id.encode(), digest_size=SIZE).digest()


def link(previous: bytes, header: bytes, salt: bytes, payloads: Sequence[bytes]) -> bytes:
    """The hash of an append, given the hash of the one before it."""
    parts = [previous, header]
    for place, payload in enumerate(payloads):
        if not place % _AT_ONCE:
            salts = _salts(salt, place)
        at = place % _AT_ONCE * SALT
        parts.append(blake2b(payload, key=salts[at : at + SALT], digest_size=SIZE).digest())
    # Both ends are of fixed length, as the header says how many facts there are: no two appends make the same input.
    return blake2b(b"".join(parts), digest_size=SIZE).digest()


def link_digests(previous: bytes, header: bytes, digests: Sequence[bytes]) -> bytes:
    """The same, of an append some of whose facts are there by their digests alone."""
    return blake2b(b"".join((previous, header, *digests)), digest_size=SIZE).digest()


def salt_of(salt: bytes, place: int) -> bytes:
    """The salt of one fact of an append, which follows from the one that the append has."""
    at = place % _AT_ONCE * SALT
    return _salts(salt, place - place % _AT_ONCE)[at : at + SALT]


def digest_of(payload: bytes, salt: bytes) -> bytes:
    """What a fact enters the chain as, given its own salt."""
    return blake2b(payload, key=salt, digest_size=SIZE).digest()


def _salts(salt: bytes, first: int) -> bytes:
    return blake2b(first.to_bytes(4, "big"), key=salt, digest_size=_AT_ONCE * SALT).digest()
