"""Old rows of the log, many of them packed together: they say the same in the same words, over and over.

A bundle is pure storage. Every row comes out of it with the header, the salt, the digests and the payloads that it went
in with, so that the chain is checked as for any other row. Its bytes: one deflate stream of pairs, each as two lengths
of 4 bytes, header and body; the payloads of a body are in it unpacked.
"""

import zlib
from collections.abc import Sequence
from typing import TypeAlias

from wakeful.store.chain import SALT
from wakeful.store.hollow_rows import is_hollow, loosened_hollow
from wakeful.store.row_compression import loosened

MOST_BYTES = 65_536
"""Of header and body, as they go into a bundle: what one read of a row in it unpacks."""
MOST_ROWS = 256
_LEVEL = 6

Pair: TypeAlias = tuple[bytes, bytes]
"""Header and body of a row."""


def loose(header: bytes, body: bytes, lengths: Sequence[int]) -> Pair:
    """A row with its payloads unpacked. Raises ValueError for bytes that are no row."""
    if is_hollow(body):
        return header, loosened_hollow(body, lengths)
    return header, body[:SALT] + loosened(body[SALT:], sum(lengths))


def bundle(rows: Sequence[Pair]) -> bytes:
    """Rows, loose, as one piece."""
    parts = [part for header, body in rows for part in (_size(header), _size(body), header, body)]
    return zlib.compress(b"".join(parts), _LEVEL)


def unbundle(data: bytes) -> list[Pair]:
    """Raises ValueError for bytes that are no bundle."""
    try:
        inside = zlib.decompress(data)
    except zlib.error as error:
        raise ValueError(f"the bundle cannot be unpacked: {error}") from error
    rows: list[Pair] = []
    at = 0
    while at < len(inside):
        header, body = (int.from_bytes(inside[place : place + 4], "big") for place in (at, at + 4))
        begin, at = at + 8, at + 8 + header + body
        rows.append((inside[begin : begin + header], inside[begin + header : at]))
    if at != len(inside):
        raise ValueError("the bundle is cut off")
    return rows


def _size(part: bytes) -> bytes:
    return len(part).to_bytes(4, "big")
