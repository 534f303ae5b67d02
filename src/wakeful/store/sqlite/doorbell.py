"""Telling other processes that something was committed: a datagram socket for each process that uses a database.

A datagram says what to look at, never what it is: the database says that. It may be lost, and a process that has no
socket gets none; `data_version`, looked at each second, is the net below it. Names of sockets are short: where the
path of the folder is too long for one, it is reached through its descriptor.
"""

import asyncio
import json
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from wakeful.store.sqlite.file_rights import FILE
from wakeful.store.sqlite.owners import Owners
from wakeful.store.watches import Wake

LONGEST_PATH = 100
LARGEST = 32_000
"""Bytes of a datagram; what does not fit is found by looking."""
LOOK = b""
"""Look at everything that is followed, and at who is there."""


class Doorbell:
    """This process's socket, and those of the others."""

    def __init__(self, owners: Owners, rung: Callable[[Wake], None], look: Callable[[], None]) -> None:
        self._owners = owners
        self._rung = rung
        self._look = look
        self._loop = asyncio.get_running_loop()
        self._pending: dict[Wake, None] = {}
        self._others: list[str] = []
        self._folder: int | None = None
        self._socket = self._bound()
        if self._socket is not None:
            self._loop.add_reader(self._socket.fileno(), self._heard)
            self.look_around()
            self._send(LOOK)

    def ring(self, wakes: Sequence[Wake]) -> None:
        """Tell the others, once for all that this pass of the loop commits."""
        if self._others and wakes:
            if not self._pending:
                self._loop.call_soon(self._tell)
            self._pending.update(dict.fromkeys(wakes))

    def look_around(self) -> None:
        """Who else is there."""
        self._others = [] if self._socket is None else self._owners.others()

    def close(self) -> None:
        if self._socket is not None:
            self._tell()
            self._loop.remove_reader(self._socket.fileno())
            self._owners.bell(self._owners.me).unlink(missing_ok=True)
        self.drop()

    def drop(self) -> None:
        """In a forked child: the socket is the parent's, and so is what its loop waits for."""
        if self._socket is not None:
            self._socket.close()
        if self._folder is not None:
            os.close(self._folder)
        self._socket = self._folder = None
        self._others = []

    def _bound(self) -> socket.socket | None:
        path = self._owners.bell(self._owners.me)
        try:
            bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        except OSError:  # a process that may not make sockets, as a confined one: the check each second has to do
            return None
        try:
            bell.setblocking(False)
            bell.bind(self._address(path))
            path.chmod(FILE)
            return bell
        except OSError:  # a file system without sockets: as above
            bell.close()
            return None

    def _address(self, path: Path) -> str:
        if len(os.fsencode(path)) < LONGEST_PATH:
            return str(path)
        if self._folder is None:
            self._folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._folder}/{path.name}"

    def _tell(self) -> None:
        pending, self._pending = list(self._pending), {}
        if pending:
            said = json.dumps(pending).encode()
            self._send(said if len(said) <= LARGEST else LOOK)

    def _send(self, said: bytes) -> None:
        if self._socket is None:
            return
        for owner in self._others:
            with suppress(OSError):  # gone, or so busy that its second is shorter
                self._socket.sendto(said, self._address(self._owners.bell(owner)))

    def _heard(self) -> None:
        while self._socket is not None:
            try:
                said = self._socket.recv(LARGEST)
            except OSError:
                return
            if said == LOOK:
                self.look_around()
                self._look()
                continue
            with suppress(ValueError, TypeError):  # not one of ours
                for wake in json.loads(said):
                    self._rung(Wake(*wake))
