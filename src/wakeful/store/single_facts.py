"""Rows with one fact each, as stores up to version 6 wrote them. They stay and are read here; no more are written.

Header: a JSON list of kind, payload version, time, writer, ids; empty ends are cut off. Body: 8 random bytes, then the
payload as JSON. `hash = H(previous, header, H(body))`.
"""

from hashlib import blake2b

from pydantic_core import from_json

from wakeful.store.chain import SALT, SIZE
from wakeful.store.encoding import EncodedFact, Head

_FIELDS = len(Head._fields)


def read_single(seq: int, header: bytes, body: bytes) -> EncodedFact:
    """The one fact of a row. Raises ValueError or TypeError for bytes that are no such row."""
    # A later version may have added ids at the end.
    return EncodedFact(seq, Head(*from_json(header)[:_FIELDS]), body[SALT:])


def link_single(previous: bytes, header: bytes, body: bytes) -> bytes:
    """The hash of such a row, given the hash of the one before it."""
    digest = blake2b(body, digest_size=SIZE).digest()
    return blake2b(previous + header + digest, digest_size=SIZE).digest()
