"""The pytest plugin. pytest imports it in every project that has wakeful installed, so it imports nothing itself.

- fixture `wakeful_store`: the path of a SQLite file of this test alone;
- fixture `no_network`, and the ini option `wakeful_refuse_network = true` for a whole project: nothing but this machine
  can be reached;
- a test that passes and leaves steps of a `wakeful.testing.scripted` model over fails.
"""

import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

SCRIPTS = "wakeful.testing.scripts"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "wakeful_refuse_network", "refuse every connection that leaves this machine", type="bool", default=False
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getini("wakeful_refuse_network"):
        from wakeful.testing.network import network_refused

        guard = ExitStack()
        guard.enter_context(network_refused())
        config.add_cleanup(guard.close)


@pytest.fixture
def wakeful_store(tmp_path: Path) -> str:
    """Where this test keeps its runs: give it as `store=`. The file is made by the first run."""
    return str(tmp_path / "wakeful.db")


@pytest.fixture
def no_network() -> Generator[None, None, None]:
    """Whatever would leave this machine raises `wakeful.testing.NetworkRefused`."""
    from wakeful.testing.network import network_refused

    with network_refused():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # A model can only have been used when its module was imported: a project without scripts pays nothing.
    if SCRIPTS in sys.modules:
        from wakeful.testing.scripts import begin_test

        begin_test()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    result = yield  # a test that fails by itself raises here and is left alone
    if SCRIPTS in sys.modules:
        from wakeful.testing.scripts import left_over_steps

        if lines := left_over_steps():
            hint = "A turn ended early, or the script is too long; leftover='ignore' allows it."
            pytest.fail("\n".join([*lines, hint]), pytrace=False)
    return result
