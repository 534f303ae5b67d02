"""The full-text index of one agent's memory, in a file of its own: disposable, and made again from its sources.

A search looks at a bounded number of entries, however many there are: of each word, those that were written last. So
a word that stands in every entry costs no more than one in a thousand. Who may find an entry is part of the index, as
words of its own: what a reader may not find is not looked at.

Used by one thread at a time. Raises `apsw.Error` where the file cannot be read or written; `open_index` begins a new
one in the place of a file that is damaged, of another version, or of another store.
"""

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from wakeful.contracts.memory import MemoryEntry
from wakeful.retrieval.index import spaced, terms_of

VERSION = 2
MAX_TERMS = 32
"""How many words of a question are looked for: of a longer one, those that it begins and those that it ends with."""
SHORT_WORD = 3
"""Letters of words that a question with too many of them is looked for without."""
MOST_MATCHES = 1_024
"""How many entries are looked at for each of them: the newest."""
MOST_RANKED = 64
"""How many of those are read and compared."""
SNIPPET = 240

_SCHEMA = f"""
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, ref TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
    title TEXT NOT NULL, body TEXT NOT NULL, updated_at INTEGER NOT NULL, workspace_id TEXT NOT NULL,
    principal TEXT NOT NULL, untrusted TEXT NOT NULL, source_path TEXT NOT NULL, metadata TEXT NOT NULL
) STRICT;
CREATE INDEX entries_by_age ON entries (updated_at, id);
CREATE VIRTUAL TABLE words USING fts5 (
    title, body, scope, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 2"
);
PRAGMA user_version = {VERSION};
"""
_COLUMNS = "key, kind, title, body, updated_at, workspace_id, principal, untrusted, source_path, metadata"


class Reach(NamedTuple):
    """What a reader may find; None: everything."""

    principals: Collection[str] | None = None
    """Whose entries; blank is the agent's own."""
    workspaces: Collection[str] | None = None
    """Of which workspaces; blank is what belongs to the agent wherever it works."""


EVERYTHING = Reach()


class FoundEntry(NamedTuple):
    """An entry, as a search found it."""

    entry: MemoryEntry
    ref: str
    snippet: str
    score: float


class MemoryIndex:
    """An index in memory, or in a file."""

    def __init__(self, location: Path | None, identity: str) -> None:
        self._connection = apsw.Connection(str(location) if location is not None else ":memory:")
        try:
            self._connection.execute(
                "PRAGMA busy_timeout=5000; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-8000"
            )
            self.is_new = self._begin(identity)
        except BaseException:
            self._connection.close()
            raise

    def _begin(self, identity: str) -> bool:
        with self._connection:
            version = int(self._connection.pragma("user_version"))
            if version == 0 and not self._connection.execute("SELECT count(*) FROM sqlite_schema").get:
                self._connection.execute(_SCHEMA)
                self._connection.execute("INSERT INTO about VALUES ('identity', ?)", (identity,))
                return True
            if version != VERSION:
                raise apsw.NotADBError(f"the index has version {version}, and this wakeful writes {VERSION}")
            of = self._connection.execute("SELECT value FROM about WHERE name = 'identity'").get
            if of != identity:
                raise apsw.NotADBError(f"the index belongs to {of}")
        return False

    # --- what it holds ----------------------------------------------------------------------------------------------

    def marks(self) -> dict[str, Any]:
        """Up to where its sources were read."""
        found = self._connection.execute("SELECT value FROM about WHERE name = 'marks'").get
        return dict(json.loads(found)) if found is not None else {}

    def apply(self, entries: Iterable[tuple[str, MemoryEntry]], gone: Iterable[str], marks: dict[str, Any]) -> None:
        """Take entries in, each with its handle, in the place of what there was of them; and note how far it is."""
        with self._connection:
            for key in gone:
                self._forget(key)
            for ref, entry in entries:
                if self.entry(entry.key) != entry:
                    self._forget(entry.key)
                    self._put(ref, entry)
            self._connection.execute("INSERT OR REPLACE INTO about VALUES ('marks', ?)", (json.dumps(marks),))

    def keys(self, prefix: str) -> list[str]:
        """The keys of all entries of a kind."""
        last = f"{prefix}\U0010ffff"
        rows = self._connection.execute("SELECT key FROM entries WHERE key >= ? AND key < ?", (prefix, last))
        return [key for (key,) in rows]

    def entry(self, key: str) -> MemoryEntry | None:
        row = self._connection.execute(f"SELECT {_COLUMNS} FROM entries WHERE key = ?", (key,)).get
        return _entry(row) if row is not None else None

    def count(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM entries").get)

    def get(self, ref: str) -> MemoryEntry | None:
        row = self._connection.execute(f"SELECT {_COLUMNS} FROM entries WHERE ref = ?", (ref,)).get
        return _entry(row) if row is not None else None

    def refs(self, beginning: str, limit: int) -> list[str]:
        """Handles that begin like this."""
        rows = self._connection.execute(
            "SELECT ref FROM entries WHERE ref >= ? AND ref < ? LIMIT ?", (beginning, f"{beginning}\U0010ffff", limit)
        )
        return [ref for (ref,) in rows]

    def newest(self, limit: int, after: str | None = None) -> list[tuple[str, MemoryEntry]]:
        """The entries that were written last, with their handles, the newest first; `after`: behind that one."""
        behind = "" if after is None else "WHERE (updated_at, id) < (SELECT updated_at, id FROM entries WHERE ref = ?)"
        rows = self._connection.execute(
            f"SELECT ref, {_COLUMNS} FROM entries {behind} ORDER BY updated_at DESC, id DESC LIMIT ?",
            (limit,) if after is None else (after, limit),
        )
        return [(row[0], _entry(row[1:])) for row in rows]

    # --- search -----------------------------------------------------------------------------------------------------

    def search(self, question: str, reach: Reach, limit: int) -> list[FoundEntry]:
        """The entries nearest to a question, best first; of those that are equally near, the newest."""
        total = max(self.count(), 1)
        scores: dict[int, float] = {}
        weights: dict[str, float] = {}
        for term in _looked_for(question):
            places = self._matches(term, reach)
            if not places:
                continue
            is_common = len(places) > MOST_MATCHES
            weights[term] = weight = math.log(1 + total / (total if is_common else len(places)))
            for place in places[:MOST_MATCHES]:
                scores[place] = scores.get(place, 0.0) + weight
        best = sorted(scores, key=lambda place: (-scores[place], -place))[:MOST_RANKED]
        found: list[tuple[float, int, str, MemoryEntry]] = []
        for place, ref, row in self._read(best):
            entry = _entry(row)
            found.append((scores[place] + _closeness(entry, weights), place, ref, entry))
        found.sort(key=lambda each: (-each[0], -each[1]))
        return [
            FoundEntry(entry, ref, _snippet(entry.body, weights), round(score, 4))
            for score, _, ref, entry in found[:limit]
        ]

    def _matches(self, term: str, reach: Reach) -> list[int]:
        wanted = [f"{{title body}} : {term}"]
        if reach.principals is not None:
            wanted.append(_any_of("p", reach.principals))
        if reach.workspaces is not None:
            wanted.append(_any_of("w", reach.workspaces))
        rows = self._connection.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?",
            (" AND ".join(f"({each})" for each in wanted), MOST_MATCHES + 1),
        )
        return [place for (place,) in rows]

    def _read(self, places: Sequence[int]) -> Iterable[tuple[int, str, tuple[Any, ...]]]:
        marks = ",".join("?" * len(places))
        rows = self._connection.execute(f"SELECT id, ref, {_COLUMNS} FROM entries WHERE id IN ({marks})", places)
        return [(row[0], row[1], row[2:]) for row in rows]

    def close(self) -> None:
        self._connection.close()

    def _put(self, ref: str, entry: MemoryEntry) -> None:
        values = (entry.key, ref, *entry[1:-1], json.dumps(entry.metadata))
        self._connection.execute(
            "INSERT INTO entries (key, ref, kind, title, body, updated_at, workspace_id, principal, untrusted, "
            "source_path, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )
        scope = f"{_token('p', entry.principal)} {_token('w', entry.workspace_id)}"
        self._connection.execute(
            "INSERT INTO words (rowid, title, body, scope) VALUES (?, ?, ?, ?)",
            (self._connection.last_insert_rowid(), spaced(entry.title), spaced(entry.body), scope),
        )

    def _forget(self, key: str) -> None:
        place = self._connection.execute("SELECT id FROM entries WHERE key = ?", (key,)).get
        if place is not None:
            self._connection.execute("DELETE FROM words WHERE rowid = ?", (place,))
            self._connection.execute("DELETE FROM entries WHERE id = ?", (place,))


@dataclass(frozen=True, slots=True)
class OpenedIndex:
    """An index, and what had to be done to have it."""

    index: MemoryIndex
    problem: str = ""
    """Why it is not the one that was there, or stands in memory; blank: nothing was wrong."""


def open_index(location: Path | None, identity: str) -> OpenedIndex:
    """The index of a place. A file that cannot be used is replaced; where none can be, it is kept in memory alone."""
    if location is None:
        return OpenedIndex(MemoryIndex(None, identity))
    try:
        location.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return OpenedIndex(MemoryIndex(location, identity))
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError) as damage:
        problem = f"the index was unusable and is made again: {damage}"
    except (apsw.Error, OSError) as damage:
        return OpenedIndex(MemoryIndex(None, identity), f"the index cannot be written and is in memory: {damage}")
    try:
        discard_index(location)
        return OpenedIndex(MemoryIndex(location, identity), problem)
    except (apsw.Error, OSError):
        return OpenedIndex(MemoryIndex(None, identity), problem)


def discard_index(location: Path) -> None:
    """Take the file away, and what SQLite has beside it. Nothing is lost with it."""
    for suffix in ("", "-wal", "-shm"):
        location.with_name(location.name + suffix).unlink(missing_ok=True)


def _entry(row: tuple[Any, ...]) -> MemoryEntry:
    return MemoryEntry(*row)._replace(metadata=json.loads(row[-1]))


def _token(kind: str, name: str) -> str:
    return kind + hashlib.sha256(name.encode()).hexdigest()[:24]


def _any_of(kind: str, names: Collection[str]) -> str:
    said = " OR ".join(_token(kind, name) for name in sorted(names))
    return f"scope : ({said})"


def _looked_for(question: str) -> list[str]:
    """The words to look for. Of a script without spaces each pair of neighbours is one, so that a sentence has many."""
    terms = terms_of(question, most=MAX_TERMS * 32)
    if len(terms) > MAX_TERMS:
        terms = [term for term in terms if " " in term or len(term.strip('"')) > SHORT_WORD] or terms
    return terms if len(terms) <= MAX_TERMS else [*terms[: MAX_TERMS // 2], *terms[-MAX_TERMS // 2 :]]


def _closeness(entry: MemoryEntry, weights: dict[str, float]) -> float:
    """How much an entry is about the words it has: in its title, and how often in how long a text."""
    title, body, near = entry.title.lower(), entry.body.lower(), 0.0
    for term, weight in weights.items():
        word = _plain(term)
        times = body.count(word)
        near += weight * (0.5 * (word in title) + 0.4 * times / (times + 1 + len(body) / 2_000))
    return near


def _snippet(body: str, weights: dict[str, float]) -> str:
    """The stretch of the original words round the rarest one that was found."""
    lowered, at = body.lower(), -1
    for term in sorted(weights, key=lambda each: -weights[each]):
        at = lowered.find(_plain(term))
        if at >= 0:
            break
    start = max(0, at - SNIPPET // 3)
    shown = " ".join(body[start : start + SNIPPET].split())
    return ("… " if start else "") + shown + (" …" if start + SNIPPET < len(body) else "")


def _plain(term: str) -> str:
    """A term without the marks of a phrase: characters of a script without spaces stand next to one another."""
    word = term.strip('"')
    return word.replace(" ", "") if " " in word else word
