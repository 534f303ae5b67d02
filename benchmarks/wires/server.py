"""The other end of `streaming`: a server that sends everybody the same stream, one event a write.

Requests are waited for until a crowd is whole, and then all of it is answered at once, so that the streams really are
open together. The crowds have the sizes it is told, one after another.
"""

import asyncio
from collections.abc import Sequence

from wires import samples
from wires.formats import FORMATS

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Gate:
    """Opens when enough have come, and is closed again behind them."""

    def __init__(self, crowds: Sequence[int]) -> None:
        self._crowds = list(crowds)
        self._waiting: list[asyncio.Future[None]] = []

    async def passed(self) -> None:
        mine = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        if len(self._waiting) == self._crowds[0]:
            for waiting in self._waiting:
                waiting.set_result(None)
            self._waiting = []
            del self._crowds[0]
        await mine


async def serve(name: str, deltas: int, crowds: Sequence[int]) -> None:
    """Print the port, then answer until the process is ended."""
    gate = Gate(crowds)
    pieces = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in samples.pieces(FORMATS[name].stream(deltas))]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
                await gate.passed()
                writer.write(_HEAD)
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)  # everybody gets an event before anybody gets the next
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
