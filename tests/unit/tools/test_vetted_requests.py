"""Requests of the runtime itself: what keeps one from being answered is told with the host."""

import socket
from typing import Any

import pytest

from wakeful.tools.vetted_requests import NotAnswered, ask_vetted


async def test_a_name_that_cannot_be_looked_up_is_told_with_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(NotAnswered, match=r"^ntfy\.example cannot be reached: Name or service not known$"):
        await ask_vetted("GET", "https://ntfy.example/secret-topic", headers={})
