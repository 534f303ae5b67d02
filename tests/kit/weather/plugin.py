"""The pytest plugin of `make weather`: one server for a process of tests, and the same bad weather for each test.

    WAKEFUL_TEST_WEATHER=1 pytest tests/journeys/test_readme.py

Each test begins with a rate limit, a cut stream and an outage of three seconds (`expected`).
"""

import os
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kit.weather import served_scripts
from kit.weather.expected import expected, file_left_out, weather_of, without_weather
from wakeful.testing import ProviderServer

SITE = Path(__file__).with_name("site")
SEED = os.environ.get("WAKEFUL_WEATHER_SEED") or datetime.now(UTC).strftime("%j")
"""By which the models are chosen: the day, or as told."""


def pytest_report_header() -> str:
    return f"under weather; the same models again: WAKEFUL_WEATHER_SEED={SEED}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if left_out := [item for item in items if file_left_out(item.nodeid) is not None]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if file_left_out(item.nodeid) is None]
    for item in items:
        known = expected(item.nodeid)
        if known is not None:
            item.add_marker(pytest.mark.xfail(reason=known.reason, strict=True))
        if (why := without_weather(item.nodeid)) is not None:
            item.add_marker(pytest.mark.skip(reason=why))


def model_of(nodeid: str) -> int:
    """Which model a test has today: a test that is known to fail keeps the one at which it does."""
    known = expected(nodeid)
    if known is not None:
        return served_scripts.MODELS.index(known.model)
    return (zlib.crc32(nodeid.encode()) + int(SEED)) % len(served_scripts.MODELS)


@pytest.fixture(scope="session", autouse=True)
def weather_server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(SITE), before)))
        served_scripts.watch()
        yield server


@pytest.fixture(autouse=True)
def bad_weather(weather_server: ProviderServer, request: pytest.FixtureRequest) -> None:
    os.environ[served_scripts.VARIABLE] = f"{weather_server.url}#{model_of(request.node.nodeid)}"
    weather_server.weather.clear()
    weather_server.weather.next(*weather_of(request.node.nodeid))
