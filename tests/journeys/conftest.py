"""A provider on this machine, an environment in which no key is set but those of a test, and which commands it runs."""

from collections.abc import Generator, Iterator

import pytest

from kit.runs.replayed_stores import check_stores_below
from kit.surfaces.journey_calls import CALLS, not_run, notice_processes
from kit.wires.provider_server import ProviderServer, serving
from wakeful.providers.endpoints import BUILT_IN


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with serving() as server:
        yield server


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the person who runs the tests has set."""
    for name, known in BUILT_IN.items():
        for variable in (*known.key_env, f"{name.upper().replace('-', '_')}_BASE_URL"):
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("WAKEFUL_CONFIG", raising=False)


@pytest.fixture(autouse=True)
def decisions_come_out_the_same(request: pytest.FixtureRequest) -> Iterator[None]:
    """At its end, in every turn of the stores that a test leaves."""
    yield
    folder = request.node.funcargs.get("tmp_path")
    if folder is not None:
        check_stores_below(folder)


@pytest.fixture(autouse=True, scope="session")
def processes_are_noticed() -> None:
    notice_processes()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    CALLS.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """A test that says it is the journey of a command has run it."""
    yield
    missing = not_run((way for mark in item.iter_markers("journey") for way in mark.args), CALLS)
    assert not missing, f"{item.name} is no journey of {', '.join(missing)}"
