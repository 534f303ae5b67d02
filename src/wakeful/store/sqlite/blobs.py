"""Content by its hash: small blobs are rows of the database, large ones files beside it.

A row is committed before any event that refers to it, and so is never younger than that event after a crash. A file is
written elsewhere, synced and renamed: under its name there is all of it, or nothing.
"""

import asyncio
import hashlib
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path

from wakeful.contracts.content import BlobRef
from wakeful.contracts.errors import StoreDamaged
from wakeful.contracts.values import unchecked
from wakeful.store.sqlite.connection import Statements, translated
from wakeful.store.sqlite.dispatches import StoreRead
from wakeful.store.sqlite.file_rights import create_file, make_folder
from wakeful.store.sqlite.helper import sync_folder

IN_ROW = 1_048_576
_NAME = re.compile(r"[0-9a-f]{64}")
_blob_ref = unchecked(BlobRef)


class SqliteBlobs:
    """Blobs of one database."""

    def __init__(
        self,
        sql: Statements,
        database: Path,
        read: StoreRead,
        submit: "Callable[[Callable[[], None]], asyncio.Future[None]]",
    ) -> None:
        self._sql = sql
        self._database = database
        self.folder = database.with_name(f"{database.name}.blobs")
        self._read = read
        self._submit = submit

    async def put(self, data: bytes, media_type: str) -> BlobRef:
        if len(data) > IN_ROW:
            try:
                name = await asyncio.to_thread(self._put_file, data)
            except OSError as error:
                raise translated(error, self._database) from error
            if await self._read(lambda: self._is_doubted(name)):
                await self._submit(lambda: self._trust(name))
                await asyncio.to_thread(self._put_file, data)  # it may have gone in between
        else:
            name = hashlib.sha256(data).hexdigest()
            is_there, is_doubted = await self._read(lambda: self._known(name))
            if not is_there or is_doubted:
                await self._submit(lambda: self._put_row(name, data, is_doubted))
        return _blob_ref(digest=f"sha256:{name}", size=len(data), media_type=media_type)

    async def get(self, digest: str) -> bytes:
        name = digest.removeprefix("sha256:")
        if _NAME.fullmatch(name) is None:  # it would become a path
            raise StoreDamaged(f"{digest!r:.200} is not the name of a blob", "A blob is named by its sha256.")
        data = await self._read(lambda: self._row(name))
        if data is None:
            path = self._file(name)
            try:
                data = await asyncio.to_thread(path.read_bytes)
            except FileNotFoundError:
                raise StoreDamaged(
                    f"there is no blob {digest} in {self._database}", "Restore the database and its blobs together."
                ) from None
            except OSError as error:
                raise translated(error, self._database) from error
        if hashlib.sha256(data).hexdigest() != name:
            raise StoreDamaged(
                f"blob {digest} in {self._database} does not match its name", "Restore it from a backup."
            )
        return data

    def _row(self, name: str) -> bytes | None:
        found = self._sql.one("SELECT data FROM blobs WHERE digest = ?", (name,))
        return None if found is None else bytes(found[0])

    def _known(self, name: str) -> tuple[bool, bool]:
        """Is there a row of it, and is it doubted? Turns put what they were begun with again and again."""
        doubted = "SELECT 1 FROM blob_doubts WHERE digest = ?"
        sql = f"SELECT EXISTS (SELECT 1 FROM blobs WHERE digest = ?), EXISTS ({doubted})"
        ((is_there, is_doubted),) = self._sql.all(sql, (name, name))
        return bool(is_there), bool(is_doubted)

    def _put_row(self, name: str, data: bytes, is_doubted: bool) -> None:
        self._sql.do("INSERT OR IGNORE INTO blobs (digest, data) VALUES (?, ?)", (name, data))
        if is_doubted:
            self._trust(name)

    def _is_doubted(self, name: str) -> bool:
        """Has retention found that nothing refers to it?"""
        return self._sql.one("SELECT 1 FROM blob_doubts WHERE digest = ?", (name,)) is not None

    def _trust(self, name: str) -> None:
        self._sql.do("DELETE FROM blob_doubts WHERE digest = ?", (name,))

    def unlink(self, name: str, *, dry: bool = False) -> int:
        """Remove the file of a blob; its bytes, 0 where it has none. With `dry` it stays."""
        path = self._file(name)
        try:
            size = path.stat().st_size
            if not dry:
                path.unlink()
        except FileNotFoundError:
            return 0
        return size

    def _file(self, name: str) -> Path:
        return self.folder / name[:2] / name[2:4] / name

    def _put_file(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        path = self._file(name)
        if path.exists():
            return name
        missing = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
        for folder in reversed(missing):
            make_folder(folder)
        partial = path.with_name(f"{name}.{secrets.token_hex(4)}.partial")
        try:
            with os.fdopen(create_file(partial), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        for folder in (path.parent, *(made.parent for made in missing)):
            sync_folder(folder)
        return name
