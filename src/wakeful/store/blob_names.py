"""Which contents a text names: whatever looks like the hash of a blob. A page of a conversation is unpacked first."""

import re
from collections.abc import Iterable

from wakeful.contracts.errors import StoreDamaged
from wakeful.decisions.thread_pages import unpacked

HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def names_in(texts: Iterable[bytes | None]) -> set[str]:
    return {found.decode() for text in texts if text is not None for found in HASH.findall(text)}


def names_in_blob(data: bytes) -> set[str]:
    """Raises StoreDamaged for a page that cannot be read: what it names is not known then."""
    try:
        return names_in([unpacked(data)])
    except ValueError as error:
        raise StoreDamaged(f"a stored page cannot be read: {error}", "wakeful store verify") from None
