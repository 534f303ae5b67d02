"""Nothing leaves the machine."""

import asyncio
import socket
from pathlib import Path

import pytest

from wakeful.testing import NetworkRefused, network_refused

ELSEWHERE = ("192.0.2.1", 80)  # an address set apart for documentation: nobody has it


def test_a_connection_to_another_machine_is_refused_with_its_address(no_network: None) -> None:
    with socket.socket() as tcp, pytest.raises(NetworkRefused, match=r"192\.0\.2\.1:80.*scripted"):
        tcp.connect(ELSEWHERE)
    with socket.socket() as tcp, pytest.raises(NetworkRefused):
        tcp.connect_ex(ELSEWHERE)
    with socket.socket(type=socket.SOCK_DGRAM) as udp, pytest.raises(NetworkRefused):
        udp.sendto(b"hello", ELSEWHERE)
    with pytest.raises(NetworkRefused, match=r"example\.org:443"):
        socket.create_connection(("example.org", 443))


async def test_asyncio_is_refused_too(no_network: None) -> None:
    with pytest.raises(NetworkRefused):
        await asyncio.open_connection(*ELSEWHERE)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_can_be_reached(no_network: None, host: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection((host, server.getsockname()[1])) as client,
    ):
        accepted, _ = server.accept()
        client.sendall(b"hi")
        assert accepted.recv(2) == b"hi"
        accepted.close()


def test_a_unix_socket_can_be_reached(no_network: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of such a socket has to be short
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("s")
        server.listen()
        client.connect("s")
        server.accept()[0].close()


def test_afterwards_everything_is_as_it_was() -> None:
    before = (socket.socket.connect, socket.socket.connect_ex, socket.socket.sendto, socket.getaddrinfo)
    with network_refused():
        assert socket.socket.connect is not before[0]
    assert (socket.socket.connect, socket.socket.connect_ex, socket.socket.sendto, socket.getaddrinfo) == before
