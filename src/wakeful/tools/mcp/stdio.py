"""A server as a child process: messages in lines over its pipes, what it complains about kept in bounds.

Its environment is what every program needs and what the owner gave, nothing else. It runs under a guard (`guard`), so
that it ends with this process, however this process ends. Lines that are no messages are passed over; a line without an
end, or too many of them, ends the connection.
"""

import asyncio
import os
import shutil
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from wakeful import programs
from wakeful.tools.mcp.failures import NotReached
from wakeful.tools.mcp.servers import ServerLimits, StdioServer

INHERITED = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
PIECE = 64 * 1024
QUEUED = 256
"""Messages to a server that does not read: saying that a call is given up must not wait for it."""
LEAVE_SECONDS = 2.0
"""What a server gets to end by itself after its input was closed."""
END_SECONDS = 10.0
"""More than the guard needs to end everything."""
GUARD = Path(__file__).with_name("guard.py")


class Tail:
    """The last words of a server's error output, and what it did that no server should."""

    def __init__(self, most: int = 8 * 1024) -> None:
        self._most = most
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self.garbage = 0
        self.note = ""

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece[-self._most :])
        self._size += len(self._pieces[-1])
        while self._size - len(self._pieces[0]) >= self._most:
            self._size -= len(self._pieces.popleft())

    def text(self) -> str:
        """At most so many bytes of it, the last ones."""
        return b"".join(self._pieces)[-self._most :].decode(errors="replace").strip()


def environment(given: Mapping[str, str], own: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a server may know: no key of ours is in it unless its owner put it there.

    Its PATH has no folder that an agent may write, unless the owner gave it one of its own.
    """
    kept = {name: value for name, value in own.items() if name in INHERITED or name.startswith("LC_")}
    return {**kept, "PATH": programs.search_path(own, owners=True), **given}


@asynccontextmanager
async def running(
    server: StdioServer, tail: Tail, ended: asyncio.Event, limits: ServerLimits
) -> AsyncIterator[TransportStreams]:
    """The server's streams. `ended` is set when it says no more. Leaving the block ends it, whatever it does."""
    process, lifeline = await _start(server)
    incoming_end, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_end = anyio.create_memory_object_stream[SessionMessage](QUEUED)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    reading = asyncio.ensure_future(_read(process.stdout, incoming_end, tail, ended, limits))
    writing = asyncio.ensure_future(_write(process.stdin, outgoing_end, ended))
    keeping = asyncio.ensure_future(_keep(process.stderr, tail))
    hurried = False
    try:
        yield incoming, outgoing
    except asyncio.CancelledError:
        hurried = True  # the event loop ends, and with it the program: it does not wait for a polite goodbye
        raise
    finally:
        ended.set()
        for stream in (incoming, outgoing, incoming_end, outgoing_end):
            stream.close()
        with anyio.CancelScope(shield=True):
            await _end(process, lifeline, leave=0.0 if hurried else LEAVE_SECONDS)
            for task in (reading, writing, keeping):
                task.cancel()
            await asyncio.wait((reading, writing, keeping), timeout=END_SECONDS)


async def _start(server: StdioServer) -> tuple[asyncio.subprocess.Process, int]:
    env = environment(server.env)
    program = await asyncio.to_thread(_program, server, env)
    watched, lifeline = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(programs.python(), "-I", "-S", str(GUARD), str(watched), program, *server.command[1:]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=env,
            cwd=server.cwd,
            pass_fds=(watched,),
            start_new_session=True,
        )
    except BaseException as error:
        os.close(lifeline)
        if isinstance(error, OSError):
            raise NotReached(f"it cannot be started: {error.strerror}") from None
        raise
    finally:
        os.close(watched)
    return process, lifeline


def _program(server: StdioServer, env: Mapping[str, str]) -> str:
    """The server's program. On the runtime's own PATH no folder counts that an agent may write."""
    if server.cwd is not None and not Path(server.cwd).is_dir():
        raise NotReached(f"its folder {server.cwd} is not there")
    name = server.command[0]
    if "/" in name:
        return name
    owners_path = server.env.get("PATH")
    found = shutil.which(name, path=owners_path) if owners_path is not None else programs.find(name, env, owners=True)
    if found is None:
        passed_over = shutil.which(name) if owners_path is None else None
        hint = "is where an agent may write; name it with its path if you mean it"
        why = f": {passed_over} {hint}" if passed_over else ""
        raise NotReached(f"there is no program {name!r} on the PATH{why}")
    return found


async def _read(
    stdout: asyncio.StreamReader,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    tail: Tail,
    ended: asyncio.Event,
    limits: ServerLimits,
) -> None:
    buffer = bytearray()
    try:
        while piece := await stdout.read(PIECE):
            start = len(buffer)
            buffer += piece
            if len(buffer) > limits.message_bytes:
                tail.note = f"it sent a message of more than {limits.message_bytes:,} bytes"
                return
            if buffer.find(b"\n", start) < 0:
                continue
            *lines, rest = bytes(buffer).split(b"\n")
            buffer = bytearray(rest)
            for line in lines:
                if not line.strip():
                    continue
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    tail.garbage += 1
                    if tail.garbage >= limits.garbage_lines:
                        tail.note = f"it wrote {tail.garbage:,} lines that are not messages"
                        return
                    continue
                await incoming.send(SessionMessage(message))
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
        pass  # the session is over, or the pipe is: either way nobody listens any more
    finally:
        ended.set()
        incoming.close()
        # A server that still talks must not block on a full pipe and miss its chance to end.
        with suppress(ConnectionError):
            while await stdout.read(PIECE):
                pass


async def _write(
    stdin: asyncio.StreamWriter, outgoing: MemoryObjectReceiveStream[SessionMessage], ended: asyncio.Event
) -> None:
    try:
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(text.encode() + b"\n")
            await stdin.drain()
    except (ConnectionError, RuntimeError):  # a broken pipe, or a transport that is closed already
        ended.set()


async def _keep(stderr: asyncio.StreamReader, tail: Tail) -> None:
    with suppress(ConnectionError):
        while piece := await stderr.read(PIECE):
            tail.add(piece)


async def _end(process: asyncio.subprocess.Process, lifeline: int, *, leave: float) -> None:
    """As the protocol wants it: close its input, wait a little, then end it; bounded at every step."""
    try:
        if process.stdin is not None:
            process.stdin.close()
        if not await _exited(process, leave):
            os.close(lifeline)
            lifeline = -1
            if not await _exited(process, END_SECONDS):
                with suppress(ProcessLookupError):
                    process.kill()
                await _exited(process, END_SECONDS)
    finally:
        if lifeline >= 0:
            os.close(lifeline)
        # Nothing public closes it, and while a pipe is held open somewhere it would stay open.
        transport = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()


async def _exited(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Not `process.wait()`: that waits for the pipes too, which may be in other hands."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while process.returncode is None:
        if loop.time() >= until:
            return False
        await asyncio.sleep(0.005)
    return True
