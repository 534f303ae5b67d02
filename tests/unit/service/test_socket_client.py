"""A client of a daemon that is closed while somebody still asks: no answer, and no other error."""

from pathlib import Path

import pytest

from wakeful.service.serving.daemon_client import NoAnswer
from wakeful.service.serving.socket_client import SocketClient


async def test_a_client_that_is_closed_gives_no_answer(tmp_path: Path) -> None:
    client = SocketClient(tmp_path / "wakeful.sock")
    with pytest.raises(NoAnswer, match=r"no daemon answers at .*: No such file or directory"):
        await client.ask("GET", "/agents")
    await client.close()
    with pytest.raises(NoAnswer, match="closed"):
        await client.ask("GET", "/agents")
    with pytest.raises(NoAnswer, match="closed"):
        await anext(client.stream("/feed"))
