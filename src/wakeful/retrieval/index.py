"""The full-text index of one set of files: disposable, made again from the files whenever they changed.

Used by one thread at a time.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import apsw

from wakeful.retrieval.passages import cut
from wakeful.retrieval.search_words import query, spaced

_SCHEMA = """
CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, stamp TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS passages (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, first_line INTEGER NOT NULL, last_line INTEGER NOT NULL,
    title TEXT NOT NULL, text TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS passages_of_file ON passages (path);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    title, text, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 2"
);
"""


class Found(NamedTuple):
    """A passage of a file, as a search found it."""

    path: str
    first_line: int
    last_line: int
    title: str
    text: str
    digest: str
    score: float


class Index:
    """An index in memory, or in a file of its own."""

    def __init__(self, location: Path | None = None) -> None:
        self._connection = apsw.Connection(str(location) if location is not None else ":memory:")
        # Nothing here is the only copy of anything: a lost index costs the time to make it again.
        self._connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA busy_timeout=5000")
        self._connection.execute(_SCHEMA)

    def stamps(self) -> Mapping[str, str]:
        """The files it has, and how each looked when it was read."""
        return dict(self._connection.execute("SELECT path, stamp FROM files"))

    def put(self, path: str, stamp: str, digest: str, text: str) -> None:
        """Take a file in, in the place of what there was of it."""
        with self._connection:
            self._forget(path)
            self._connection.execute("INSERT INTO files VALUES (?, ?, ?)", (path, stamp, digest))
            for passage in cut(text):
                self._connection.execute(
                    "INSERT INTO passages (path, first_line, last_line, title, text) VALUES (?, ?, ?, ?, ?)",
                    (path, passage.first_line, passage.last_line, passage.title, passage.text),
                )
                self._connection.execute(
                    "INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)",
                    (self._connection.last_insert_rowid(), spaced(passage.title), spaced(passage.text)),
                )

    def drop(self, path: str) -> None:
        """Forget a file."""
        with self._connection:
            self._forget(path)

    def search(self, question: str, limit: int) -> list[Found]:
        """The passages nearest to a question, best first."""
        terms = query(question)
        if not terms:
            return []
        rows = self._connection.execute(
            "SELECT p.path, p.first_line, p.last_line, p.title, p.text, f.digest, -bm25(words, 2.0, 1.0) AS score "
            "FROM words JOIN passages p ON p.id = words.rowid JOIN files f ON f.path = p.path "
            "WHERE words MATCH ? ORDER BY score DESC, p.path, p.first_line LIMIT ?",
            (terms, limit),
        )
        return [Found(*row) for row in rows]

    def close(self) -> None:
        self._connection.close()

    def _forget(self, path: str) -> None:
        self._connection.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE path = ?)", (path,))
        self._connection.execute("DELETE FROM passages WHERE path = ?", (path,))
        self._connection.execute("DELETE FROM files WHERE path = ?", (path,))
