"""One served home for the tests of a module: each has agents, threads and keys of its own names."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome, served
from kit.surfaces.served_tokens import make_token


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    with served(tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture
def client(home: ServedHome) -> HomeClient:
    """Through the socket of the home."""
    return home.client


@pytest.fixture(scope="module")
def operator(home: ServedHome) -> HomeClient:
    """Over the network, with a token that may do everything."""
    return HomeClient(home.port, make_token(home.folder, "operator", ("operate",)))


@pytest.fixture(scope="module")
def observer(home: ServedHome) -> HomeClient:
    """Over the network, with a token that may only look."""
    return HomeClient(home.port, make_token(home.folder, "observer", ("observe",)))


@pytest.fixture
def stranger(home: ServedHome) -> HomeClient:
    """Over the network, without a token."""
    return HomeClient(home.port)


@pytest.fixture
def folder(home: ServedHome) -> Path:
    return home.folder
