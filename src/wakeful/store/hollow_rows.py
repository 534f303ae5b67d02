"""Rows some of whose facts have expired: header and chain are as they were, and the bodies are gone.

Body: 8 zero bytes, the number of this form, a checksum, one byte a fact (1: expired), for each fact its digest if it
has expired and its salt if it has not, then the payloads that are left, packed. The salt that all came from is gone, so
that a digest reveals nothing of what it was made of (`store.chain`).
"""

import zlib
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from wakeful.store import chain
from wakeful.store.chain import SALT, SIZE
from wakeful.store.row_compression import as_it_is, pack, unpack

HOLLOW = 2
"""Where other rows have the number of their packing."""
HOLLOW_BODY = bytes(SALT) + bytes((HOLLOW,))
_INSIDE = len(HOLLOW_BODY) + 4


class HollowFact(NamedTuple):
    """One fact of such a row."""

    digest: bytes
    salt: bytes | None
    """None: it has expired."""
    payload: bytes | None


def is_hollow(body: bytes) -> bool:
    """Has any fact of this row expired?"""
    return body[: len(HOLLOW_BODY)] == HOLLOW_BODY


def read_hollow(body: bytes, lengths: Sequence[int]) -> list[HollowFact]:
    """The facts of such a row, given how long each was. Raises ValueError for bytes that are no such row."""
    inside = body[_INSIDE:]
    if body[len(HOLLOW_BODY) : _INSIDE] != zlib.crc32(inside).to_bytes(4, "big"):
        raise ValueError("the row does not match its checksum")
    marks = inside[: len(lengths)]
    at = len(lengths)
    if len(marks) < len(lengths) or any(mark > 1 for mark in marks):
        raise ValueError("the row does not say which of its facts have expired")
    found: list[tuple[bytes | None, bytes | None]] = []
    for mark in marks:
        size = SIZE if mark else SALT
        piece, at = inside[at : at + size], at + size
        if len(piece) != size:
            raise ValueError("the row is cut off")
        found.append((piece, None) if mark else (None, piece))
    kept = unpack(inside[at:], sum(length for length, mark in zip(lengths, marks, strict=True) if not mark))
    facts: list[HollowFact] = []
    begin = 0
    for (digest, salt), length in zip(found, lengths, strict=True):
        if salt is None:
            facts.append(HollowFact(digest or b"", None, None))
            continue
        payload = kept[begin : begin + length]
        begin += length
        facts.append(HollowFact(chain.digest_of(payload, salt), salt, payload))
    return facts


def hollowed(body: bytes, lengths: Sequence[int], places: Collection[int]) -> bytes:
    """The body of a row without the facts at these places. Raises ValueError for bytes that are no row."""
    if is_hollow(body):
        facts = read_hollow(body, lengths)
    else:
        payloads, begin, salt = unpack(body[SALT:], sum(lengths)), 0, body[:SALT]
        facts = []
        for place, length in enumerate(lengths):
            own, payload = chain.salt_of(salt, place), payloads[begin : begin + length]
            facts.append(HollowFact(chain.digest_of(payload, own), own, payload))
            begin += length
    return _written(facts, places, pack)


def loosened_hollow(body: bytes, lengths: Sequence[int]) -> bytes:
    """Such a row with the payloads that are left as they are, not packed. Raises ValueError for bytes that are none."""
    return _written(read_hollow(body, lengths), (), as_it_is)


def _written(facts: Sequence[HollowFact], places: Collection[int], packed: Callable[[bytes], bytes]) -> bytes:
    marks = bytearray()
    pieces: list[bytes] = []
    kept: list[bytes] = []
    for place, fact in enumerate(facts):
        expired = place in places or fact.salt is None or fact.payload is None
        marks.append(expired)
        pieces.append(fact.digest if expired or fact.salt is None else fact.salt)
        if not expired and fact.payload is not None:
            kept.append(fact.payload)
    inside = bytes(marks) + b"".join(pieces) + packed(b"".join(kept))
    return HOLLOW_BODY + zlib.crc32(inside).to_bytes(4, "big") + inside
