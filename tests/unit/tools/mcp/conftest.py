"""Sources that are closed when the test is over, with everything they started."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.mcp_peers.asking import MakeOdd, Odd, running_sdk_server


@pytest.fixture
async def odd(tmp_path: Path) -> AsyncIterator[MakeOdd]:
    made: list[Odd] = []

    def make(mode: str = "well", **options: Any) -> Odd:
        made.append(Odd(tmp_path, mode, **options))
        return made[-1]

    yield make
    for each in made:
        await each.source.close()


@pytest.fixture
def sdk_url() -> Iterator[str]:
    """A server written with the SDK, at a URL on this machine."""
    with running_sdk_server() as url:
        yield url
