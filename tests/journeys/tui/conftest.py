"""One served home for the tests of a module: each talks to an agent of its own, or puts back what it changed."""

from collections.abc import Iterator

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome, served
from wakeful.service.serving.options import ServeOptions

AGENTS = "kit.surfaces.watched_agents:agents"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    with served(tmp_path_factory.mktemp("home"), ServeOptions(port=0, tools=(AGENTS,))) as found:
        yield found


@pytest.fixture
def client(home: ServedHome) -> HomeClient:
    return home.client
