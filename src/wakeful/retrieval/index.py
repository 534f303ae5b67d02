"""The full-text index of one set of files: disposable, made again from the files whenever they changed.

Used by one thread at a time.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

import apsw

_CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3040-\u309f\u30a0-\u30ff\u3100-\u312f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\U0001b000-\U0001b16f\U00020000-\U0003134f"
)
_CHARACTER = re.compile(f"([{_CJK}])")
_TOKENS = re.compile(f"[{_CJK}]+|[^\\W{_CJK}]+")
MAX_TERMS = 48


def spaced(text: str) -> str:
    """A text with a space round every character of a script that has none."""
    return _CHARACTER.sub(r" \1 ", _folded(text))


def _folded(text: str) -> str:
    """Full and half width, and characters that are put together of parts, are the same letters."""
    return normalize("NFKC", text)


def query(question: str) -> str:
    """A question in anybody's words as a search for any of them; empty when there is nothing to look for."""
    return " OR ".join(terms_of(question))


def terms_of(question: str, most: int = MAX_TERMS) -> list[str]:
    """What is looked for, each once: words, and pairs of neighbours in a script without spaces, as phrases."""
    terms: dict[str, None] = {}
    for token in _TOKENS.findall(_folded(question)):
        if _CHARACTER.match(token):
            pairs = [token[at : at + 2] for at in range(len(token) - 1)] or [token]
            for pair in pairs:
                terms[f'"{" ".join(pair)}"'] = None
        elif len(token) > 1 or token.isdigit():
            terms[f'"{token.lower()}"'] = None
        if len(terms) >= most:
            break
    return list(terms)[:most]


TARGET_CHARS = 1_200
"""A passage is closed once it is this long."""
MAX_CHARS = 2_400
"""A paragraph longer than this is cut at a line, and a line at this many characters."""


class FilePassage(NamedTuple):
    """A passage of one file."""

    first_line: int
    last_line: int
    title: str
    """The nearest heading above it."""
    text: str


def cut(text: str) -> list[FilePassage]:
    """The passages of a text, in order. No word of it is in two of them."""
    found: list[FilePassage] = []
    open_from, title, size = 1, "", 0
    lines = text.splitlines()
    pieces: list[str] = []

    def close(last: int) -> None:
        nonlocal pieces, size
        said = "\n".join(pieces).strip("\n")
        if said.strip():
            found.append(FilePassage(open_from, last, title, said))
        pieces, size = [], 0

    for number, line in enumerate(lines, 1):
        is_heading = line.startswith("#")
        ends_paragraph = not line.strip() and size >= TARGET_CHARS
        if pieces and (is_heading or ends_paragraph or size + len(line) > MAX_CHARS):
            close(number - 1)
        if is_heading:
            title = line.lstrip("#").strip()
        if not pieces:
            open_from = number
        for start in range(0, max(len(line), 1), MAX_CHARS):
            if start:
                close(number)
                open_from = number
            pieces.append(line[start : start + MAX_CHARS])
            size += len(pieces[-1]) + 1
    close(len(lines))
    return found


VERSION = 1
"""Of how words are cut. What an index of another one holds is read again from the files."""
_DROPPED = "DROP TABLE IF EXISTS files; DROP TABLE IF EXISTS passages; DROP TABLE IF EXISTS words;"
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


class FoundPassage(NamedTuple):
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
        with self._connection:
            if self._connection.pragma("user_version") != VERSION:
                self._connection.execute(f"{_DROPPED} PRAGMA user_version = {VERSION}")
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

    def search(self, question: str, limit: int) -> list[FoundPassage]:
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
        return [FoundPassage(*row) for row in rows]

    def close(self) -> None:
        self._connection.close()

    def _forget(self, path: str) -> None:
        self._connection.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE path = ?)", (path,))
        self._connection.execute("DELETE FROM passages WHERE path = ?", (path,))
        self._connection.execute("DELETE FROM files WHERE path = ?", (path,))
