"""Model servers written by others, started here on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from peers import aimock as peer


@pytest.fixture(scope="session")
def aimock_process(root: Path) -> Iterator[peer.Aimock]:
    missing = peer.why_not(root)
    if missing is not None:
        pytest.skip(missing)
    with peer.running(root) as server:
        yield server


@pytest.fixture
def aimock(aimock_process: peer.Aimock) -> Iterator[peer.Aimock]:
    """An aimock that has been told nothing yet."""
    aimock_process.reset()
    yield aimock_process
    aimock_process.reset()
