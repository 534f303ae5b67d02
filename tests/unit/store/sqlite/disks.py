"""Disks that misbehave, as SQLite file systems: one that loses what was not synced, one that is full."""

import shutil
import threading
from pathlib import Path
from random import Random

import apsw


class ForgetfulDisk(apsw.VFS):
    """Remembers for each file what was synced, and what was only written."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "unix")
        self.name = name
        self.lock = threading.Lock()
        self.synced: dict[str, bytearray] = {}
        self.written: dict[str, list[tuple[int, bytes | None]]] = {}
        """Offset and bytes; None cuts the file off there."""

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _ForgetfulFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        with self.lock:
            self.synced.pop(filename, None)
            self.written.pop(filename, None)

    def sync(self, filename: str) -> None:
        with self.lock:
            for change in self.written.pop(filename, []):
                _apply(self.synced.setdefault(filename, bytearray()), change)

    def cut_the_power(self, folder: Path, luck: Random | None = None) -> None:
        """Leave in the folder what a power cut leaves: all that was synced, and of the rest what luck keeps.

        Of anchors, which nobody syncs, the newest: taken before the rest, it is as far ahead as it can be.
        """
        folder.mkdir()
        for anchor in {f"{name}-anchor" for name in {*self.synced, *self.written}}:
            if Path(anchor).exists():
                shutil.copy(anchor, folder)
        with self.lock:
            for filename in {*self.synced, *self.written}:
                left = bytearray(self.synced.get(filename, b""))
                for change in self.written.get(filename, []):
                    if luck is not None and luck.random() < 0.7:
                        _apply(left, change)
                (folder / Path(filename).name).write_bytes(left)


class _ForgetfulFile(apsw.VFSFile):
    def __init__(self, disk: ForgetfulDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        with self._disk.lock:
            self._disk.written.setdefault(self._name, []).append((offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        with self._disk.lock:
            self._disk.written.setdefault(self._name, []).append((newsize, None))

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self._disk.sync(self._name)


def _apply(image: bytearray, change: tuple[int, bytes | None]) -> None:
    offset, data = change
    if data is None:
        del image[offset:]
        return
    image.extend(bytes(max(0, offset + len(data) - len(image))))
    image[offset : offset + len(data)] = data


class FullDisk(apsw.VFS):
    """Takes what it is given until it is full, or can only be read."""

    says = "full"

    def __init__(self, name: str) -> None:
        super().__init__(name, "unix")
        self.name = name
        self.full = False

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _FullFile(self, name, flags)

    def excepthook(self, *error: object) -> None:
        """SQLite is told already."""


class _FullFile(apsw.VFSFile):
    def __init__(self, disk: FullDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if self._disk.full:
            raise apsw.FullError("no room") if self._disk.says == "full" else apsw.ReadOnlyError("read-only")
        super().xWrite(data, offset)

    def excepthook(self, *error: object) -> None:
        """SQLite is told already."""
