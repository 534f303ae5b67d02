"""A provider on this machine, and an environment in which no key is set but those of a test."""

from collections.abc import Iterator

import pytest

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
