"""A collection of text files: a name and a folder. Searched as the files are now.

Files are read from beneath the folder, so that no link leads out of it. What is not text, hidden, or too large is left
out. The index follows the files: before a search, what changed is read again.
"""

import asyncio
import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path, PurePosixPath

from wakeful.contracts.errors import InvalidConfig, ToolReported
from wakeful.contracts.knowledge import Passage
from wakeful.retrieval.index import Index
from wakeful.workspaces import Workspace

PATTERNS = ("*.md", "*.markdown", "*.txt", "*.rst", "*.adoc", "*.org")
MAX_FILE_BYTES = 4_000_000
MAX_FILES = 50_000


class TextFiles:
    """Text files below a folder. Give it to an agent: `Agent(..., collections=[TextFiles("handbook", "docs")])`.

    `patterns` say which files count. `index` is a file to keep the index in; without one it is in memory, and is made
    again in each process. `untrusted` says that anybody may have written the files.
    """

    def __init__(
        self,
        name: str,
        folder: "str | PathLike[str]",
        *,
        patterns: Sequence[str] = PATTERNS,
        index: "str | PathLike[str] | None" = None,
        untrusted: bool = False,
    ) -> None:
        if not name or not name.isprintable() or ":" in name:
            raise InvalidConfig(f"{name!r} cannot be a collection's name", "give a printable name without a colon")
        if isinstance(patterns, str) or not patterns:
            raise InvalidConfig(f"collection {name!r}: patterns={patterns!r}", 'give a list: patterns=["*.md"]')
        self.name = name
        self.untrusted = untrusted
        self._folder = Workspace.at(folder)
        self._patterns = tuple(patterns)
        self._location = Path(index) if index is not None else None
        self._index: Index | None = None
        self._one_at_a_time = threading.Lock()

    def __repr__(self) -> str:
        return f"TextFiles({self.name!r}, {str(self._folder.named)!r})"

    async def search(self, question: str, limit: int = 8) -> Sequence[Passage]:
        """The passages nearest to the question, best first. Works off the event loop."""
        return await asyncio.to_thread(self._search, question, limit)

    def close(self) -> None:
        """Let the index go; the next search makes it again."""
        with self._one_at_a_time:
            if self._index is not None:
                self._index.close()
                self._index = None

    def _search(self, question: str, limit: int) -> list[Passage]:
        with self._one_at_a_time:
            index = self._brought_up_to_date()
            return [
                Passage(
                    ref=f"{self.name}:{found.path}#L{found.first_line}-L{found.last_line}",
                    text=found.text,
                    title=found.title,
                    digest=found.digest,
                    score=round(found.score, 6),
                )
                for found in index.search(question, limit)
            ]

    def _brought_up_to_date(self) -> Index:
        if self._index is None:
            self._index = Index(self._location)
        index = self._index
        known = dict(index.stamps())
        for path, stamp in self._files():
            if known.pop(path, None) == stamp:
                continue
            try:
                data = self._folder.read(path, MAX_FILE_BYTES).data
            except ToolReported:  # it leads out, is too large, or is gone: no part of the collection
                index.drop(path)
                continue
            text = "" if b"\x00" in data[:8_000] else data.decode("utf-8", "replace")
            index.put(path, stamp, "sha256:" + hashlib.sha256(data).hexdigest(), text)
        for path in known:
            index.drop(path)
        return index

    def _files(self) -> Iterator[tuple[str, str]]:
        """Every file that counts, with how it looks now; in a fixed order."""
        root = self._folder.root
        seen = 0
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                if name.startswith(".") or not any(PurePosixPath(name).match(each) for each in self._patterns):
                    continue
                path = Path(folder) / name
                try:
                    found = path.stat()
                except OSError:
                    continue
                seen += 1
                if seen > MAX_FILES:
                    return
                yield path.relative_to(root).as_posix(), f"{found.st_mtime_ns}-{found.st_size}-{found.st_ino}"
