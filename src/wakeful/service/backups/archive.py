"""The file of a backup: a compressed tar archive that begins with what it is and ends with what is in it.

    wakeful-backup.json     format, version, when and of what it was taken
    home/...                files of the home, plain files only
    manifest.json           size and hash of each of them, and what is not in it

A file without its last part was cut off. Reading believes nothing: names, kinds and hashes are checked before the first
byte is written anywhere, and again while it is written.
"""

import gzip
import hashlib
import io
import json
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from wakeful.contracts.errors import InvalidRequest

FORMAT, VERSION = "wakeful-backup", 1
HEADER, MANIFEST, FOLDER = "wakeful-backup.json", "manifest.json", "home/"
HEADER_BYTES, MANIFEST_BYTES = 65_536, 512_000_000
PIECE = 1 << 20
LEVEL = 1
"""Of compression: most of it is text, and a backup should be quick."""
_ROUGH = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, OSError, ValueError, OverflowError)
_RUNS = 0o100


class NotABackup(InvalidRequest):
    """The file is no backup, or not a whole one."""


class ArchiveRecord(NamedTuple):
    """What an archive says about itself."""

    header: dict[str, Any]
    manifest: dict[str, Any]
    total_bytes: int
    """Of its files, unpacked."""


class ArchiveWriter:
    """Writes an archive, file by file."""

    def __init__(self, tar: tarfile.TarFile, header: dict[str, Any]) -> None:
        self._tar = tar
        self.files: dict[str, dict[str, Any]] = {}
        self._add(HEADER, json.dumps({"format": FORMAT, "version": VERSION, **header}).encode())

    def add(self, name: str, file: IO[bytes], *, is_program: bool = False) -> None:
        """A file of the home, as long as it is now. Raises OSError when it gets shorter meanwhile."""
        info = tarfile.TarInfo(FOLDER + name)
        info.size = os.fstat(file.fileno()).st_size
        info.mode = 0o700 if is_program else 0o600
        digest = hashlib.sha256()
        self._tar.addfile(info, _Hashed(file, digest.update))  # type: ignore[arg-type]
        self.files[name] = {"size": info.size, "sha256": digest.hexdigest()}

    def end(self, manifest: dict[str, Any]) -> None:
        self._add(MANIFEST, json.dumps({**manifest, "files": self.files}).encode())

    def _add(self, name: str, data: bytes) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(data), 0o600
        self._tar.addfile(info, io.BytesIO(data))


class _Hashed:
    def __init__(self, file: IO[bytes], seen: Callable[[bytes], None]) -> None:
        self._file, self._seen = file, seen

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._seen(data)
        return data


@contextmanager
def new_archive(path: Path, header: dict[str, Any]) -> Iterator[ArchiveWriter]:
    """An archive that has its name when it is whole, and not before. Raises InvalidRequest where it cannot be."""
    if path.exists() or path.is_symlink():
        raise InvalidRequest(f"{path} is there already", "Name a file that is not there, or remove it first.")
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)  # of one that was cut off
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise InvalidRequest(
            f"{path} cannot be written: {error.strerror or error}", "Name a file in a folder that is there."
        ) from None
    try:
        with os.fdopen(descriptor, "wb") as raw:
            with (
                gzip.GzipFile("", "wb", LEVEL, raw) as packed,
                tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
            ):
                yield ArchiveWriter(tar, header)
            raw.flush()
            os.fsync(raw.fileno())
        os.link(partial, path)  # and never over another file
    except FileExistsError:
        raise InvalidRequest(f"{path} is there already", "Name a file that is not there, or remove it first.") from None
    finally:
        partial.unlink(missing_ok=True)
    folder = os.open(path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def check_archive(path: Path, rules: Callable[[dict[str, Any]], Callable[[str], bool]]) -> ArchiveRecord:
    """Read all of it and write nothing. `rules` says of a header which names may follow. Raises NotABackup with what is
    wrong."""
    header: dict[str, Any] = {}
    is_allowed: Callable[[str], bool] = bool
    manifest: dict[str, Any] | None = None
    found: dict[str, dict[str, Any]] = {}
    total = 0
    for name, file, info in _members(path):
        if not header:
            header = _header(path, name, file, info)
            is_allowed = rules(header)
            continue
        if manifest is not None:
            raise _foreign(path, f"there is something after its end: {name!a}")
        if name == MANIFEST:
            manifest = _json(path, file, info, MANIFEST_BYTES)
            continue
        inner = _checked_name(path, name, info, found, is_allowed)
        digest = hashlib.sha256()
        while piece := file.read(PIECE):
            digest.update(piece)
        found[inner] = {"size": info.size, "sha256": digest.hexdigest()}
        total += info.size
    if manifest is None:
        raise NotABackup(
            f"{path} is not whole: its end is missing, and nothing was restored", "Copy it again, or use another one."
        )
    if manifest.get("files") != found:
        raise NotABackup(
            f"{path} is damaged: what is in it is not what was written, and nothing was restored",
            "Copy it again, or use another one.",
        )
    return ArchiveRecord(header, manifest, total)


def unpack(path: Path, folder: Path, record: ArchiveRecord, is_allowed: Callable[[str], bool]) -> None:
    """Write the files of an archive that was checked below a folder. Raises NotABackup when it is another by now."""
    written: dict[str, dict[str, Any]] = {}
    for name, file, info in _members(path):
        if name in (HEADER, MANIFEST):
            continue
        inner = _checked_name(path, name, info, written, is_allowed)
        place = folder / inner
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        digest = hashlib.sha256()
        mode = 0o600 | (info.mode & _RUNS)
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with os.fdopen(descriptor, "wb") as out:
            while piece := file.read(PIECE):
                digest.update(piece)
                out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        written[inner] = {"size": info.size, "sha256": digest.hexdigest()}
    if written != record.manifest["files"]:
        raise NotABackup(f"{path} changed while it was read", "Run it again when nothing writes to the file.")


class _Member:
    """The bytes of a member. Raises NotABackup where they cannot be read."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._file = path, file

    def read(self, size: int = -1) -> bytes:
        try:
            return self._file.read(size)
        except _ROUGH as error:
            raise _broken(self._path, error) from None


def _members(path: Path) -> Iterator[tuple[str, _Member, tarfile.TarInfo]]:
    """Every member, in order. Raises NotABackup for what is no archive, or breaks off."""
    begun = False
    try:
        with (
            path.open("rb") as raw,
            gzip.GzipFile(fileobj=raw) as packed,
            tarfile.open(fileobj=packed, mode="r|") as tar,
        ):
            for info in tar:
                if info.type != tarfile.REGTYPE:
                    raise _foreign(path, f"{info.name!a} in it is not a plain file")
                file = tar.extractfile(info)
                assert file is not None
                begun = True
                yield info.name, _Member(path, file), info
            while packed.read(PIECE):  # to the checksum of the whole
                pass
    except FileNotFoundError:
        raise NotABackup(f"there is no file {path}", "Name a file that wakeful backup wrote.") from None
    except NotABackup:
        raise
    except _ROUGH as error:
        raise (_broken(path, error) if begun else _foreign(path, str(error))) from None


def _broken(path: Path, error: Exception) -> NotABackup:
    return NotABackup(
        f"{path} is damaged or was cut off ({error}): nothing was restored", "Copy it again, or use another one."
    )


def _header(path: Path, name: str, file: _Member, info: tarfile.TarInfo) -> dict[str, Any]:
    if name != HEADER:
        raise _foreign(path, f"it begins with {name!a}")
    header = _json(path, file, info, HEADER_BYTES)
    if header.get("format") != FORMAT:
        raise _foreign(path, f"its format is {header.get('format')!a}")
    if header.get("version") != VERSION:
        raise NotABackup(
            f"{path} is a backup of version {header.get('version')!a}, and this wakeful reads version {VERSION}",
            "Restore it with the wakeful that wrote it, or a newer one.",
        )
    return header


def _json(path: Path, file: _Member, info: tarfile.TarInfo, most: int) -> dict[str, Any]:
    if info.size > most:
        raise _foreign(path, f"{info.name!a} in it is too large")
    try:
        found = json.loads(file.read())
    except (ValueError, RecursionError):
        raise _foreign(path, f"{info.name!a} in it is not JSON") from None
    if not isinstance(found, dict):
        raise _foreign(path, f"{info.name!a} in it is not an object")
    return found


def _checked_name(
    path: Path, name: str, info: tarfile.TarInfo, known: dict[str, Any], is_allowed: Callable[[str], bool]
) -> str:
    """The name below the home. Raises NotABackup for one that leads elsewhere, does not belong, or comes twice."""
    inner = name.removeprefix(FOLDER)
    parts = inner.split("/")
    is_plain = name.startswith(FOLDER) and "\0" not in inner and not any(part in ("", ".", "..") for part in parts)
    if not is_plain or not is_allowed(inner):
        raise _foreign(path, f"{name!a} does not belong in one")
    if inner in known:
        raise _foreign(path, f"{name!a} is in it twice")
    return inner


def _foreign(path: Path, why: str) -> NotABackup:
    return NotABackup(
        f"{path} is not a backup of wakeful: {why}; nothing was restored", "Name a file that wakeful backup wrote."
    )
