"""Rows with one fact each, as stores up to version 6 wrote them. They stay and are read here; no more are written.

Header: a JSON list of kind, payload version, time, writer, ids; empty ends are cut off. Body: 8 random bytes, then the
payload as JSON. `hash = H(previous, header, H(body))`. Of an expired fact the digest stands in the place of the body.
"""

from hashlib import blake2b

from pydantic_core import from_json

from wakeful.store.chain import SALT, SIZE
from wakeful.store.encoding import EncodedFact, Head
from wakeful.store.hollow_rows import HOLLOW_BODY, is_hollow

_FIELDS = len(Head._fields)


def read_single(seq: int, header: bytes, body: bytes) -> EncodedFact:
    """The one fact of a row. Raises ValueError or TypeError for bytes that are no such row."""
    # A later version may have added ids at the end.
    return EncodedFact(seq, Head(*from_json(header)[:_FIELDS]), None if is_hollow(body) else body[SALT:])


def link_single(previous: bytes, header: bytes, body: bytes) -> bytes:
    """The hash of such a row, given the hash of the one before it."""
    digest = body[len(HOLLOW_BODY) :] if is_hollow(body) else blake2b(body, digest_size=SIZE).digest()
    return blake2b(previous + header + digest, digest_size=SIZE).digest()


def hollow_single(body: bytes) -> bytes:
    """The body of an expired fact: its digest alone."""
    return HOLLOW_BODY + blake2b(body, digest_size=SIZE).digest()
