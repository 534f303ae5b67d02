"""Which blobs something refers to, known without reading the log again: each of its rows is read once, when it is new.

Whatever looks like the hash of a blob counts as a reference, wherever it stands: in a fact, in another blob that is
referred to, in a row that does not follow from facts. Rows that do follow name what their facts name. A name is noted
where it is written as one (`sha256:`) or a blob of that name is there: contents are stored before a fact names them.

What may expire is noted with its row, and goes with it; all else with its agent. Reading is done on a connection and a
thread of the caller's own. What is not noted yet is read beside what is: the answer is that of reading everything.
"""

from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import apsw

from wakeful.contracts.errors import StoreDamaged
from wakeful.decisions.retention import FOR_READERS, OF_ITS_TURN
from wakeful.store.blob_names import HASH, MARKED, beside_outputs, names_in, names_in_blob
from wakeful.store.encoding import NO_ROW, EncodedFact, read_row
from wakeful.store.single_facts import read_single
from wakeful.store.sqlite.bundles import Bundles
from wakeful.store.sqlite.connection import Statements
from wakeful.store.sqlite.streams import SHIFT
from wakeful.store.tables import TABLES

EXPIRING = FOR_READERS | OF_ITS_TURN
"""Kinds of events that may leave their row."""
PAGE = 1_000
_OWN = {"appends", "bundles", "events", "agents", "blobs", "blob_doubts", "blob_references", "blob_readings"}
_BESIDE = _OWN | {"blob_contents", "meta", "leases", "late_owners", "turn_claims"} | {table.name for table in TABLES}
"""Tables that name no blob which the log does not name."""


class BlobMention(NamedTuple):
    """Where a blob is named."""

    digest: str
    row: int


class BlobReading(NamedTuple):
    """What was new: how far the log of each agent was read, the names in it, and those in each blob."""

    upto: dict[int, int]
    places: dict[BlobMention, bool]
    """Is it a use, and not only where a result is kept in full?"""
    contents: dict[str, set[str]]


def read_new(again: Callable[[], apsw.Connection], folder: Path, *, anew: bool = False) -> BlobReading:
    """Read what was not noted; `anew`: everything. Holds no lock, and no snapshot."""
    with closing(again()) as connection:
        return _reading(Statements(connection), folder, anew)


def blobs_there(again: Callable[[], apsw.Connection], folder: Path) -> set[str]:
    """The names of all blobs."""
    with closing(again()) as connection:
        return _small(Statements(connection)) | _files(folder).keys()


def named_blobs(
    again: Callable[[], apsw.Connection], folder: Path, *, beside: bool = False, anew: bool = False
) -> set[str]:
    """The names of all blobs that something refers to, at one moment; `beside` what only says where a result is kept in
    full. `anew`: what was noted is not believed."""
    with closing(again()) as connection:
        connection.execute("BEGIN")  # what another pass notes or forgets meanwhile is not half seen
        sql = Statements(connection)
        new = _reading(sql, folder, anew)
        noted = () if anew else sql.all("SELECT digest, is_use FROM blob_references")
        waiting = [str(digest) for digest, is_use in noted if is_use or not beside]
        waiting += [place.digest for place, is_use in new.places.items() if is_use or not beside]
        waiting += names_in(_texts_beside(sql))
        contents: dict[str, Iterable[str]] = dict(new.contents)
        if not anew:
            contents |= {str(name): str(names).split() for name, names in sql.all("SELECT * FROM blob_contents")}
        found: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in contents and name not in found:
                found.add(name)
                waiting += contents[name]
        return found


class BlobReferences:
    """What is noted, on the writing connection of a store."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def note(self, reading: BlobReading, *, anew: bool) -> None:
        """Keep what was read; `anew`: in place of all that was noted."""
        if anew:
            for table in ("blob_references", "blob_readings", "blob_contents"):
                self._sql.do(f"DELETE FROM {table}")
        self._sql.many(
            "INSERT INTO blob_references VALUES (?, ?, ?) "
            "ON CONFLICT (digest, row) DO UPDATE SET is_use = max(is_use, excluded.is_use)",
            [(*place, int(is_use)) for place, is_use in reading.places.items()],
        )
        # A log that was cut meanwhile is known further than it was read.
        self._sql.many(
            "INSERT INTO blob_readings VALUES (?, ?) ON CONFLICT (agent) DO UPDATE SET seq = max(seq, excluded.seq)",
            reading.upto.items(),
        )
        self._sql.many(
            "INSERT OR IGNORE INTO blob_contents VALUES (?, ?)",
            [(name, " ".join(sorted(names))) for name, names in reading.contents.items()],
        )

    def leave_row(self, row: int, left: Iterable[EncodedFact]) -> None:
        """Some events of a row expired: what only these named is not named by it any more."""
        named = names_in(entry.payload for entry in left if entry.head.kind in EXPIRING)
        noted = self._sql.all("SELECT digest FROM blob_references WHERE row = ?", (row,))
        gone = [(digest, row) for (digest,) in noted if digest not in named]
        self._sql.many("DELETE FROM blob_references WHERE digest = ? AND row = ?", gone)

    def forget_agent(self, agent: int) -> None:
        """Events left its log that may not otherwise: what it names is read again."""
        first, behind = agent << SHIFT, agent + 1 << SHIFT
        self._sql.do("DELETE FROM blob_references WHERE row >= ? AND row < ?", (first, behind))
        self._sql.do("DELETE FROM blob_readings WHERE agent = ?", (agent,))

    def forget_log(self, agent: int, upto: int) -> None:
        """The log of an agent was cut up to an event: what it named before is not named by it."""
        self._sql.do("DELETE FROM blob_references WHERE row >= ? AND row <= ?", (agent << SHIFT, agent << SHIFT | upto))
        self._sql.do("INSERT OR REPLACE INTO blob_readings VALUES (?, ?)", (agent, upto))

    def forget_blob(self, name: str) -> None:
        """It was removed: should it be put again, it is read again."""
        self._sql.do("DELETE FROM blob_contents WHERE digest = ?", (name,))


def _reading(sql: Statements, folder: Path, anew: bool) -> BlobReading:
    behind = "SELECT a.id, a.seq, coalesce(r.seq, 0) FROM agents a LEFT JOIN blob_readings r ON r.agent = a.id"
    agents = [(agent, seq, 0 if anew else read) for agent, seq, read in sql.all(behind)]
    # Only now: a blob that one of these events names was there before it.
    known = set[str]() if anew else {str(name) for (name,) in sql.all("SELECT digest FROM blob_contents")}
    contents: dict[str, set[str]] = {}
    for name in sorted(_small(sql) - known):
        for (data,) in sql.all("SELECT data FROM blobs WHERE digest = ?", (name,)):
            contents[name] = names_in_blob(bytes(data))
    for name, path in _files(folder).items():
        if name not in known:
            contents[name] = names_in_blob(path.read_bytes())
    there = known | contents.keys()
    upto = {agent: seq for agent, seq, read in agents if read < seq}
    places: dict[BlobMention, bool] = {}
    for agent, seq, read in agents:
        for row, entries in _rows(sql, agent << SHIFT, read, seq) if read < seq else ():
            _add_places(places, agent, row, entries, there)
    return BlobReading(upto, places, contents)


def _rows(sql: Statements, base: int, after: int, upto: int) -> Iterator[tuple[int, list[EncodedFact]]]:
    bundles = Bundles(sql)
    for table in ("events", "appends"):
        last, wanted = (
            base | after,
            f"SELECT id, header, body FROM {table} WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
        )
        while rows := sql.all(wanted, (last, base | upto, PAGE)):
            for number, header, body in rows:
                try:
                    if table == "events":
                        yield number, [read_single(number - base, header, body)]
                    else:
                        yield number, read_row(number - base, *bundles.whole(number, header, body))
                except NO_ROW:  # what it referred to is not known, so that nothing may go
                    words = "a row of the log cannot be read: no blob is removed"
                    raise StoreDamaged(words, "wakeful store verify") from None
            last = rows[-1][0]


def _add_places(
    places: dict[BlobMention, bool], agent: int, row: int, entries: Iterable[EncodedFact], there: Set[str]
) -> None:
    for entry in entries:
        named = names_in([entry.payload])
        if entry.payload is None or not named:
            continue
        uses = names_in([beside_outputs(entry.payload)])
        at = row if entry.head.kind in EXPIRING else agent << SHIFT
        for name in (named & there) | {each.decode() for each in MARKED.findall(entry.payload)}:
            place = BlobMention(name, at)
            places[place] = name in uses or places.get(place, False)


def _texts_beside(sql: Statements) -> Iterator[bytes]:
    """Everything else that is stored as text."""
    for (table,) in sql.all("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"):
        if table not in _BESIDE:
            for row in sql.all(f'SELECT * FROM "{table}"'):
                yield " ".join(value for value in row if isinstance(value, str)).encode("utf-8", "surrogatepass")


def _small(sql: Statements) -> set[str]:
    return {str(name) for (name,) in sql.all("SELECT digest FROM blobs")}


def _files(folder: Path) -> dict[str, Path]:
    return {path.name: path for path in folder.glob("*/*/*") if HASH.fullmatch(path.name.encode())}
