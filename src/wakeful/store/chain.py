"""The hash chain: each event of an agent vouches for all before it.

`hash = H(previous, header, H(body))` over the bytes as they are stored. The body enters as its digest, so that a body
can go one day and the chain still holds. An agent's chain begins with the hash of its id: rows moved to another agent's
stream do not fit there.
"""

from hashlib import blake2b

SIZE = 32


def origin(agent_id: str) -> bytes:
    """What the first event of an agent is chained to."""
    return blake2b(agent_id.encode(), digest_size=SIZE).digest()


def link(previous: bytes, header: bytes, body: bytes) -> bytes:
    """The hash of an event, given the hash of the one before it."""
    # Both ends are of fixed length, so no two different headers and digests make the same input.
    digest = blake2b(body, digest_size=SIZE).digest()
    return blake2b(previous + header + digest, digest_size=SIZE).digest()
