"""Replies that are too long for the log, whole again where somebody has to read all of one.

The log keeps the beginning of such a reply and a reference, and so does the state: deciding never needs more. A result
of a child, an answer that has to fit a type, a plan and a summary do. What is not here is fetched, and whoever asked
for it asks again when it has come.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from wakeful.contracts.content import BlobRef, Text
from wakeful.contracts.conversation import AssistantItem
from wakeful.decisions.levels import Level
from wakeful.gate.large_content import Fetch


class WholeTexts:
    """The long replies of one turn, as far as they were needed."""

    def __init__(
        self, fetch: Fetch, spawn: Callable[[Coroutine[Any, Any, None]], Any], come: Callable[[], None]
    ) -> None:
        self._fetch = fetch
        self._spawn = spawn
        self._come = come
        """Told when one has come."""
        self._texts: dict[str, str] = {}
        """By the digest of their blob."""
        self._asked: set[str] = set()

    def is_here(self, level: Level) -> bool:
        """Is the level's newest reply here as a whole? Where it is not, it is on its way."""
        return self.has(*(part.ref for part in _parts(level) if part.ref is not None))

    def has(self, *refs: BlobRef) -> bool:
        missing = [ref.digest for ref in refs if ref.digest not in self._texts]
        for digest in missing:
            if digest not in self._asked:
                self._asked.add(digest)
                self._spawn(self._bring(digest))
        return not missing

    def of(self, level: Level) -> str:
        """The level's newest reply; ask `is_here` before."""
        parts = _parts(level)
        if all(part.ref is None for part in parts):
            return level.answer.final_text
        return "".join(self._texts[part.ref.digest] if part.ref is not None else part.text for part in parts)

    def text(self, ref: BlobRef) -> str:
        return self._texts[ref.digest]

    async def _bring(self, digest: str) -> None:
        self._texts[digest] = (await self._fetch(digest)).decode("utf-8", "replace")
        self._come()


def reference_of(level: Level) -> BlobRef | None:
    """Where the newest reply is, when it is too long for the log; of several texts, the first that is."""
    return next((part.ref for part in _parts(level) if part.ref is not None), None)


def _parts(level: Level) -> list[Text]:
    item = next((item for item in reversed(level.conversation.items) if isinstance(item, AssistantItem)), None)
    return [part for part in item.parts if isinstance(part, Text)] if item is not None else []
