"""The anchor: a small file beside the database, `NAME-anchor`, that says how far the log had come.

The hash chain proves what is there; it cannot show that its end is missing. SQLite drops everything after the first
damaged frame of its write-ahead log, and a deleted or older file is opened without a word: effects that had happened
would happen again. So every barrier notes here what it made safe, after the database's own sync: the anchor is never
ahead of a healthy database.

    header    what it is, whether it is keyed, and the number of agents that were there before it
    recent    the agents that were written last; these are checked whenever the store is opened
    records   one an agent, at its number: sequence and hash of an event, a checksum, a seal

SQLite loses the end of all commits together, never one in the middle. So when the newest record of every process is
still true, nothing before it is missing either, and opening reads a few records however many agents there are.
`doctor` checks all of them. A record is rewritten in place, within one sector and without a sync of its own: after a
power cut it is the old one or the new one, and both are true. One that is torn fails its checksum and counts as none.

The seal is made with the secret of the home, where there is one: somebody who writes a log anew and computes its chain
again cannot make the seal.
"""

import fcntl
import hmac
import logging
import os
import secrets
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

_log = logging.getLogger("wakeful.store")

MAGIC = b"wakeful\x01"
HEADER_BYTES = 4096
RECENT = 256
_HEADER = struct.Struct("<8sIQ16s")
_STATE_AT, _STATE = 64, struct.Struct("<IQ")
"""1 after a clean end; how often `recent` was written."""
_RECENT_AT = 1024
_RECORD = struct.Struct("<Q32s16s4x")
RECORD_BYTES = 64
_CHECK = struct.Struct("<I")
_NO_SEAL = bytes(16)
_TRIES, _PAUSE = 20, 0.0005


class Mark(NamedTuple):
    """An event of an agent that was on disk: the agent's number here, the event's sequence and hash."""

    agent: int
    seq: int
    hash: bytes
    seal: bytes = _NO_SEAL


class AnchorRecord(NamedTuple):
    """What an anchor says."""

    marks: tuple[Mark, ...]
    closed: bool
    """The last process to use the store ended cleanly."""
    is_keyed: bool = False
    since: int = 0
    """Agents up to this number were there before the anchor, or before it was keyed."""
    seal: bytes = _NO_SEAL


def anchor_path(database: Path) -> Path:
    """Where the anchor of a database is."""
    return database.with_name(f"{database.name}-anchor")


def read_anchor(database: Path, *, whole: bool = False) -> AnchorRecord | None:
    """The records of the agents that were written last, or of all; None where there is no anchor that can be read."""
    try:
        descriptor = os.open(anchor_path(database), os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        header = os.pread(descriptor, HEADER_BYTES, 0)
        known = _read_header(header)
        if known is None:
            return None
        most = max(0, (os.fstat(descriptor).st_size - HEADER_BYTES) // RECORD_BYTES)
        agents: Iterable[int] = range(1, most + 1) if whole else _recent(header)
        marks = tuple(mark for agent in agents if (mark := _read_mark(descriptor, agent)) is not None)
        closed, _ = _STATE.unpack_from(header, _STATE_AT)
        return known._replace(marks=marks, closed=bool(closed))
    finally:
        os.close(descriptor)


def forget_anchor(database: Path) -> int:
    """Take the anchor away; how many agents it had records of. The next barrier begins a new one."""
    found = read_anchor(database, whole=True)
    anchor_path(database).unlink(missing_ok=True)
    return 0 if found is None else len(found.marks)


class Seals:
    """Makes and checks seals for one store. Without a key there are none."""

    def __init__(self, key: bytes | None, runtime_id: str) -> None:
        self._key = None if key is None else blake2b(key, digest_size=32, person=b"wakeful anchor").digest()
        self._store = runtime_id.encode()

    def __bool__(self) -> bool:
        return self._key is not None

    def of(self, agent: int, seq: int, digest: bytes) -> bytes:
        return self._made(b"event", struct.pack("<QQ", agent, seq) + digest)

    def of_header(self, since: int) -> bytes:
        return self._made(b"header", struct.pack("<Q", since))

    def fits(self, mark: Mark) -> bool:
        return hmac.compare_digest(mark.seal, self.of(mark.agent, mark.seq, mark.hash))

    def fits_header(self, anchored: AnchorRecord) -> bool:
        return hmac.compare_digest(anchored.seal, self.of_header(anchored.since))

    def _made(self, what: bytes, text: bytes) -> bytes:
        if self._key is None:
            return _NO_SEAL
        return blake2b(self._store + text, key=self._key, digest_size=16, person=what).digest()


class Anchor:
    """The anchor that one process writes. Used by the helper thread alone."""

    def __init__(self, database: Path, seals: Seals, since: int) -> None:
        self._path = anchor_path(database)
        self._seals = seals
        self._since = since
        self._descriptor = -1
        self._told = False

    def write(self, marks: Mapping[int, tuple[int, bytes]]) -> None:
        """Note events that are on disk, oldest commit first. Does not raise: without an anchor the store is as safe
        against kills and power cuts as with it."""
        try:
            self._write(marks)
        except OSError as error:
            if not self._told:
                _log.warning("%s cannot be written, and a lost end of the log would go unseen: %s", self._path, error)
            self._told = True

    def close(self, *, clean: bool) -> None:
        """Leave; `clean` when nobody else uses the store."""
        if self._descriptor < 0:
            return
        try:
            if clean:
                os.pwrite(self._descriptor, _STATE.pack(1, self._state(self._descriptor)[1]), _STATE_AT)
        except OSError:
            pass  # it then looks as after a kill, which changes a hint and nothing else
        self.drop()

    def drop(self) -> None:
        """Let go of the file and say nothing: what a forked child does."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, marks: Mapping[int, tuple[int, bytes]]) -> None:
        descriptor = self._opened()
        with _alone(descriptor):
            closed, count = self._state(descriptor)
            newest = _number_at(descriptor, count)
            was = count
            for agent, (seq, digest) in marks.items():
                known = _read_mark(descriptor, agent)
                if known is None or known.seq < seq:  # another process may have written more of it meanwhile
                    record = _RECORD.pack(seq, digest, self._seals.of(agent, seq, digest))
                    os.pwrite(descriptor, _checked(record), _place(agent))
                if agent != newest:
                    count, newest = count + 1, agent
                    os.pwrite(descriptor, _CHECK.pack(agent), _RECENT_AT + count % RECENT * 4)
            if closed or count != was:
                os.pwrite(descriptor, _STATE.pack(0, count), _STATE_AT)

    def _opened(self) -> int:
        if self._descriptor >= 0:
            here = os.fstat(self._descriptor)
            if here.st_nlink == 0 or here.st_size < HEADER_BYTES:
                self.drop()  # somebody took it away or emptied it: a new one is made
        if self._descriptor < 0:
            self._make()
            self._descriptor = os.open(self._path, os.O_RDWR)
            found = _read_header(os.pread(self._descriptor, HEADER_BYTES, 0))
            if self._seals and found is not None and not found.is_keyed:
                os.pwrite(self._descriptor, self._header(), 0)
        return self._descriptor

    def _make(self) -> None:
        """Put it in its place as a whole, unless it is there. What is there and is no anchor is written over."""
        try:
            with self._path.open("r+b") as file:
                if _read_header(file.read(HEADER_BYTES)) is None:
                    file.truncate(0)  # a stand-in, or what is left of one
                    os.pwrite(file.fileno(), self._header().ljust(HEADER_BYTES, b"\0"), 0)
            return
        except FileNotFoundError:
            pass
        unnamed = self._path.with_name(f"{self._path.name}.{secrets.token_hex(8)}.new")
        descriptor = os.open(unnamed, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            try:
                os.pwrite(descriptor, self._header().ljust(HEADER_BYTES, b"\0"), 0)
            finally:
                os.close(descriptor)
            with suppress(FileExistsError):  # somebody else was faster
                os.link(unnamed, self._path)
        finally:
            unnamed.unlink()

    def _header(self) -> bytes:
        keyed = 1 if self._seals else 0
        return _checked(_HEADER.pack(MAGIC, keyed, self._since, self._seals.of_header(self._since)))

    def _state(self, descriptor: int) -> tuple[int, int]:
        closed, count = _STATE.unpack(os.pread(descriptor, _STATE.size, _STATE_AT))
        return closed, count


@contextmanager
def _alone(descriptor: int) -> Iterator[None]:
    """One process at a time, as far as that goes: one that was stopped in here holds nobody up. Then two may write at
    once, and a record may be older than it could be, which is as true as before."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
        else:
            try:
                yield
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            return
    yield


def _checked(record: bytes) -> bytes:
    return record + _CHECK.pack(zlib.crc32(record))


def _unchecked(stored: bytes, shape: struct.Struct) -> bytes | None:
    """The record, or None when it is short, empty or torn."""
    record = stored[: shape.size]
    if len(stored) < shape.size + _CHECK.size or not any(record):
        return None
    return record if _CHECK.unpack_from(stored, shape.size)[0] == zlib.crc32(record) else None


def _read_header(stored: bytes) -> AnchorRecord | None:
    record = _unchecked(stored, _HEADER)
    if record is None or len(stored) < HEADER_BYTES:
        return None
    magic, keyed, since, seal = _HEADER.unpack(record)
    return AnchorRecord((), False, bool(keyed), since, seal) if magic == MAGIC else None


def _place(agent: int) -> int:
    return HEADER_BYTES + (agent - 1) * RECORD_BYTES


def _read_mark(descriptor: int, agent: int) -> Mark | None:
    record = _unchecked(os.pread(descriptor, RECORD_BYTES, _place(agent)), _RECORD)
    return None if record is None else Mark(agent, *_RECORD.unpack(record))


def _recent(header: bytes) -> list[int]:
    """Numbers of agents, each once."""
    numbers = struct.unpack_from(f"<{RECENT}I", header, _RECENT_AT)
    return [number for number in dict.fromkeys(numbers) if number]


def _number_at(descriptor: int, count: int) -> int:
    stored = os.pread(descriptor, _CHECK.size, _RECENT_AT + count % RECENT * 4)
    return int(_CHECK.unpack(stored)[0]) if len(stored) == _CHECK.size else 0
