"""Which contents a text names: whatever looks like the hash of a blob. A page of a conversation is unpacked first."""

import re
from collections.abc import Iterable

from wakeful.contracts.errors import StoreDamaged
from wakeful.decisions.thread_pages import unpacked

HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
MARKED = re.compile(rb"sha256:([0-9a-f]{64})(?![0-9a-f])")
"""A hash that says what it is, as every reference to a blob does."""

_OF_AN_OUTPUT = re.compile(
    rb'"(?:output_ref|offloaded_artifact_id)":"sha256:[0-9a-f]{64}"|"sha256":"[0-9a-f]{64}"'
    rb'|"result_ref":\{"digest":"sha256:[0-9a-f]{64}"|"artifact_refs":\[[^\]]*\]'
)
"""How a result that was kept in full is named by the facts that say so."""


def beside_outputs(text: bytes) -> bytes:
    """A text without what only says where a result is kept in full: every other name of it is a use."""
    return _OF_AN_OUTPUT.sub(b"", text)


def names_in(texts: Iterable[bytes | None]) -> set[str]:
    return {found.decode() for text in texts if text is not None for found in HASH.findall(text)}


def names_in_blob(data: bytes) -> set[str]:
    """Raises StoreDamaged for a page that cannot be read: what it names is not known then."""
    try:
        return names_in([unpacked(data)])
    except ValueError as error:
        raise StoreDamaged(f"a stored page cannot be read: {error}", "wakeful store verify") from None
