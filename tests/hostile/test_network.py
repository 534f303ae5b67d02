"""A hostile command and the network: a listener on this machine hears nothing from inside."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from kit.gates.confined_commands import PYTHON, said, sandbox, sh
from wakeful.sandbox.settings import Network

CONFINED = ["bubblewrap", "landlock"]
CONNECT = (
    "import socket, sys; s = socket.socket({family}, {kind}); s.settimeout(5); s.connect({address!r}); "
    "s.send(b'canary'); print('sent')"
)


@pytest.fixture
def listeners() -> Iterator[dict[str, socket.socket]]:
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0wakeful-test-" + str(tcp.getsockname()[1]))
    abstract.listen()
    made = {"tcp": tcp, "udp": udp, "abstract": abstract}
    for one in made.values():
        one.settimeout(0.2)
    yield made
    for one in made.values():
        one.close()


def attempt(name: str, listener: socket.socket) -> str:
    address = listener.getsockname()
    if name == "abstract":
        address = address.decode() if isinstance(address, bytes) else address
    family = "socket.AF_UNIX" if name == "abstract" else "socket.AF_INET"
    kind = "socket.SOCK_DGRAM" if name == "udp" else "socket.SOCK_STREAM"
    return CONNECT.format(family=family, kind=kind, address=address)


def heard(name: str, listener: socket.socket) -> bool:
    try:
        if name == "udp":
            return listener.recv(100) == b"canary"
        listener.accept()[0].close()
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("name", ["tcp", "udp", "abstract"])
@pytest.mark.parametrize("mode", CONFINED)
async def test_no_listener_outside_is_reached(
    tmp_path: Path, listeners: dict[str, socket.socket], mode: str, name: str
) -> None:
    (tmp_path / "try.py").write_text(attempt(name, listeners[name]))
    command = f"{PYTHON} -I try.py"
    await sh(sandbox(tmp_path, mode), command)
    assert not heard(name, listeners[name])
    granted = await sh(sandbox(tmp_path, mode, network="full"), command)
    is_reached = not (mode == "landlock" and name == "abstract")  # without namespaces nobody gets a unix socket
    assert ("sent" in said(granted).splitlines(), heard(name, listeners[name])) == (is_reached, is_reached)
    assert "sent" in said(await sh(sandbox(tmp_path, "not_enforced"), command))


@pytest.mark.parametrize("mode", CONFINED)
async def test_sockets_that_no_namespace_holds_cannot_be_made(tmp_path: Path, mode: str) -> None:
    make = f"{PYTHON} -I -c 'import socket; socket.socket(40, socket.SOCK_STREAM)'"
    ended = await sh(sandbox(tmp_path, mode), make)
    assert "PermissionError" in said(ended)


PAIRS = """
import asyncio, socket
async def started():
    return "an event loop"
for kind in ("SOCK_STREAM", "SOCK_SEQPACKET", "SOCK_DGRAM", "SOCK_RAW"):
    try:
        one, other = socket.socketpair(socket.AF_UNIX, getattr(socket, kind) | socket.SOCK_CLOEXEC)
        one.send(b"word")
        print(kind, other.recv(10).decode())
        one.sendto(b"canary", "outside.sock")
        print(kind, "to", "the other end" if other.recv(10) else "nobody")
    except OSError as error:
        print(kind, type(error).__name__)
print(asyncio.run(started()))
"""


@pytest.mark.parametrize("network", get_args(Network))
async def test_a_pair_of_sockets_speaks_with_itself_only(tmp_path: Path, network: Network) -> None:
    (tmp_path / "try.py").write_text(PAIRS)
    outside = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    outside.bind(str(tmp_path / "outside.sock"))
    outside.setblocking(False)
    try:
        ended = await sh(sandbox(tmp_path, "landlock", network=network), f"{PYTHON} -I try.py")
        assert said(ended).splitlines() == [
            *("SOCK_STREAM word", "SOCK_STREAM OSError", "SOCK_SEQPACKET word", "SOCK_SEQPACKET to the other end"),
            *("SOCK_DGRAM PermissionError", "SOCK_RAW PermissionError", "an event loop"),
        ]
        with pytest.raises(BlockingIOError):
            outside.recv(10)
        await sh(sandbox(tmp_path, "not_enforced"), f"timeout 5 {PYTHON} -I try.py")
        assert outside.recv(10) == b"canary", "without the filter, half a pair sends to whom it likes"
    finally:
        outside.close()


async def test_sockets_of_other_programs_are_not_there(tmp_path: Path) -> None:
    ended = await sh(sandbox(tmp_path, "bubblewrap"), "ls -A /run | grep -v -e current-system -e wrappers -e opengl")
    assert said(ended) == ""
