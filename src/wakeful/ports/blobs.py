"""Blobs: bytes that are too long for a fact, under the hash of what they are."""

from typing import Protocol

from wakeful.contracts.content import BlobRef


class Blobs(Protocol):
    """Keeps bytes."""

    async def put_blob(self, data: bytes, media_type: str) -> BlobRef:
        """Keep bytes under the hash of what they are. On disk before any event can refer to them."""
        ...

    async def get_blob(self, digest: str) -> bytes:
        """Raises StoreDamaged when the bytes do not match their name."""
        ...
