"""Output of a command as it comes: all of it is read, so much is kept, and watchers see it as text.

A command that never stops talking is not stopped for it and fills nothing: beyond the bound what it says is read and
dropped, and the count goes on. Control characters stay what they are, characters in a text.
"""

import asyncio
import codecs
import os
from collections.abc import Callable

KEPT_BYTES = 16 * 1024 * 1024
"""Of one stream."""
SHOWN_BYTES = 1024 * 1024
"""Of one stream, to watchers; they hear that more came and is not shown."""
_PIECE = 65_536


class StreamCapture:
    """What one stream has said so far."""

    def __init__(self, show: Callable[[str], None], kept_bytes: int = KEPT_BYTES) -> None:
        self._show = show
        self._most = kept_bytes
        self._pieces: list[bytes] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.kept_bytes = 0
        self.total_bytes = 0

    def read(self, descriptor: int) -> "asyncio.Future[None]":
        """Begin to read, to the stream's end. Cancelling the future stops it; the descriptor stays the caller's."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        os.set_blocking(descriptor, False)

        def more() -> None:
            try:
                piece = os.read(descriptor, _PIECE)
            except BlockingIOError:
                return
            except OSError:  # how a terminal ends
                piece = b""
            if piece:
                self.take(piece)
            elif not done.done():
                self.end()
                done.set_result(None)

        loop.add_reader(descriptor, more)
        done.add_done_callback(lambda _: loop.remove_reader(descriptor))
        return done

    @property
    def data(self) -> bytes:
        """What was kept, from the beginning on."""
        return b"".join(self._pieces)

    @property
    def dropped_bytes(self) -> int:
        return self.total_bytes - self.kept_bytes

    def take(self, piece: bytes) -> None:
        """The next piece of the stream."""
        kept = piece[: self._most - self.kept_bytes]
        if kept:
            self._pieces.append(kept)
            self.kept_bytes += len(kept)
        before, self.total_bytes = self.total_bytes, self.total_bytes + len(piece)
        if before < SHOWN_BYTES:
            self._glimpse(piece[: SHOWN_BYTES - before])
            if self.total_bytes > SHOWN_BYTES:
                self._show("\n[more output comes and is not shown]\n")

    def end(self) -> None:
        """Nothing more comes: what is left of a character is shown as it is."""
        self._glimpse(b"", final=True)

    def _glimpse(self, piece: bytes, *, final: bool = False) -> None:
        if text := self._decoder.decode(piece, final):
            self._show(text)
