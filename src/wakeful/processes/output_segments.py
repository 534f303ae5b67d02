"""The output of a command, both streams as they came, bounded: its beginning and its end are kept.

In memory as long as the command is in the foreground, in files of a folder from the moment it is a task. The first
bytes are `output`; what comes later are files named after the place of their first byte (`output.8388608`), of which
the last two are kept. The standard library and nothing else: a supervisor loads it.
"""

import os
from typing import NamedTuple

FIRST = "output"
HEAD_BYTES = 8 * 1024 * 1024
SEGMENT_BYTES = 4 * 1024 * 1024
"""Of each of the two that follow."""


class OutputSegments:
    """Takes output as it comes."""

    def __init__(self, head_bytes: int = HEAD_BYTES, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._most = (head_bytes, segment_bytes)
        self._segments: list[tuple[int, bytearray]] = [(0, bytearray())]
        """By the place of the first byte; without their bytes once there are files."""
        self._folder: int | None = None
        self._file: int | None = None
        self._size = 0
        """Of the newest segment."""
        self.total_bytes = 0
        self.problem = ""
        """Why nothing more is written."""

    def take(self, piece: bytes) -> None:
        """The next bytes. What cannot be written is counted and dropped: the command goes on."""
        while piece:
            most = self._most[0] if len(self._segments) == 1 and self._segments[0][0] == 0 else self._most[1]
            room = most - self._size
            if room <= 0:
                self._begin_segment()
                continue
            self._put(piece[:room])
            self._size += len(piece[:room])
            self.total_bytes += len(piece[:room])
            piece = piece[room:]

    def move_to(self, folder: int) -> None:
        """From here on files in this folder (a handle of it) hold the output; what came before is put there."""
        self._folder = folder
        for place, data in self._segments:
            self._open(place)
            self._write(bytes(data))
            data.clear()

    def sync(self) -> None:
        """What was written survives a power cut."""
        if self._file is not None:
            try:
                os.fsync(self._file)
            except OSError as problem:
                self.problem = str(problem)

    def _begin_segment(self) -> None:
        self._segments.append((self.total_bytes, bytearray()))
        self._size = 0
        if self._folder is not None:
            self._open(self.total_bytes)
        if len(self._segments) > 3:
            place, _ = self._segments.pop(1)
            if self._folder is not None:
                try:
                    os.unlink(_name(place), dir_fd=self._folder)
                except OSError:
                    pass  # somebody took it away, or it could not be written

    def _put(self, piece: bytes) -> None:
        if self._folder is None:
            self._segments[-1][1].extend(piece)
        else:
            self._write(piece)

    def _open(self, place: int) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            self._file = os.open(_name(place), flags, 0o600, dir_fd=self._folder)
        except OSError as problem:
            self.problem = str(problem)

    def _write(self, piece: bytes) -> None:
        view = memoryview(piece)
        try:
            while view and self._file is not None:
                view = view[os.write(self._file, view) :]
        except OSError as problem:  # a full disk: what comes when there is room again is written
            self.problem = str(problem)


class StoredOutput(NamedTuple):
    """What files hold of a command's output."""

    head: bytes
    """From the first byte on."""
    tail: bytes
    """Up to the newest; blank where the head is all of it."""
    dropped_bytes: int
    """Between the two."""

    @property
    def total_bytes(self) -> int:
        return len(self.head) + self.dropped_bytes + len(self.tail)


def read_output(folder: str, most_bytes: int) -> StoredOutput | None:
    """The beginning and the end of what is there, each at most so many bytes; None: there is no output to be read."""
    for _ in range(5):
        try:
            return _read(folder, most_bytes)
        except FileNotFoundError:
            continue  # a segment was taken away while we looked, or there is nothing
        except OSError:
            return None
    return None


def _read(folder: str, most_bytes: int) -> StoredOutput:
    names = [name for name in os.listdir(folder) if name.startswith(f"{FIRST}.") and name[len(FIRST) + 1 :].isdigit()]
    places = sorted(int(name[len(FIRST) + 1 :]) for name in names)
    sizes = {place: os.stat(os.path.join(folder, _name(place))).st_size for place in (0, *places)}
    total = max(place + size for place, size in sizes.items())
    head = _bytes(folder, 0, 0, min(most_bytes, sizes[0]))
    tail = b""
    for place in reversed((0, *places)):
        begin = max(len(head) if place == 0 else 0, sizes[place] - (most_bytes - len(tail)))
        if begin >= sizes[place]:
            break
        tail = _bytes(folder, place, begin, sizes[place]) + tail
        if begin > 0 or (place > 0 and places[0] == place and place != sizes[0]):
            break  # there is no more room, or a gap
    return StoredOutput(head, tail, total - len(head) - len(tail))


def _bytes(folder: str, place: int, begin: int, end: int) -> bytes:
    with open(os.path.join(folder, _name(place)), "rb") as file:
        file.seek(begin)
        return file.read(end - begin)


def _name(place: int) -> str:
    return FIRST if place == 0 else f"{FIRST}.{place}"


class OutputPiece(NamedTuple):
    """Some of the output, from a place on."""

    begin: int
    """The place of its first byte: later than what was asked for where something between was dropped."""
    data: bytes
    ends_at_gap: bool = False
    """What came after it was dropped, and there is more behind that."""


def output_end(folder: str) -> int | None:
    """How many bytes were said in all. None: that cannot be read, or nothing is there yet."""
    try:
        names = [each for each in os.listdir(folder) if each.startswith(f"{FIRST}.") and each[7:].isdigit()]
        newest = max((0, *(int(each[7:]) for each in names)))
        return newest + os.stat(os.path.join(folder, _name(newest))).st_size
    except OSError:
        return None


def read_piece(folder: str, place: int, most_bytes: int) -> OutputPiece | None:
    """The next bytes from a place on, at most so many; blank: there are no more yet. None: nothing can be read."""
    for _ in range(5):
        try:
            return _piece(folder, place, most_bytes)
        except FileNotFoundError:
            continue  # a segment was taken away while we looked, or there is nothing
        except OSError:
            return None
    return None


def _piece(folder: str, place: int, most_bytes: int) -> OutputPiece:
    """One piece of bytes that came one after the other, whichever segments they are in: a line may begin in one of
    them and end in the next."""
    names = [each for each in os.listdir(folder) if each.startswith(f"{FIRST}.") and each[7:].isdigit()]
    begin, data = place, b""
    for segment in sorted((0, *(int(each[7:]) for each in names))):
        end = segment + os.stat(os.path.join(folder, _name(segment))).st_size
        if end <= begin + len(data):
            continue
        if not data:
            begin = max(place, segment)
        elif segment > begin + len(data):
            return OutputPiece(begin, data, ends_at_gap=True)
        last = min(end, begin + most_bytes)
        data += _bytes(folder, segment, begin + len(data) - segment, last - segment)
        if len(data) >= most_bytes:
            break
    return OutputPiece(begin, data)
