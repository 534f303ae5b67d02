"""What every suite shares: the marks that say which rule a test shows, and the documents those rules stand in."""

import gc
import os
import re
import signal
import tempfile
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
RULE = re.compile(r"[A-Z]{2,5}-[A-Z0-9]+-\d{2,3}")
MOST_RULES_IN_A_MARK = 4
SHARE = tuple(map(int, os.environ.get("WAKEFUL_TEST_SHARE", "0/1").split("/")))
"""Which share of the tests runs, of how many: every file has tests in each."""


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Pytest would write the asserts of a plugin's whole package anew: here a thousand modules, in every worker.

    Asked for options, because that is the first that a conftest is called for, before any other imports the package.
    """
    marked: set[str] = getattr(pluginmanager.rewrite_hook, "_must_rewrite", set())
    marked.discard("wakeful")


def pytest_configure(config: pytest.Config) -> None:
    """How long an example takes says nothing of what it shows: no property fails because the machine is busy.

    A shell has its background jobs ignore SIGINT, and `nohup` its program SIGHUP; and so would every process that
    a test starts and interrupts.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    _leave_the_home_alone(config)
    if "WAKEFUL_TEST_WEATHER" in os.environ:
        config.pluginmanager.import_plugin("kit.weather.plugin")
    try:
        from hypothesis import HealthCheck, settings
    except ImportError:  # the suite against other frameworks has an environment of its own
        return
    settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")


def _leave_the_home_alone(config: pytest.Config) -> None:
    """No test, and no process that one starts, finds the home of the person who runs them: each worker has its own."""
    folder = tempfile.TemporaryDirectory(prefix="wakeful-home-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    before = {
        name: os.environ.pop(name) for name in [*os.environ] if name.startswith("XDG_") and name.endswith("_HOME")
    }
    before |= {name: os.environ.pop(name) for name in ("HOME", "WAKEFUL_HOME") if name in os.environ}
    os.environ["HOME"] = folder.name
    config.add_cleanup(lambda: os.environ.update(before))


def pytest_collection() -> None:
    """Nothing of what is loaded now is garbage: the collector would look for it in vain, again and again."""
    gc.disable()


def pytest_collection_finish() -> None:
    """And it does not look there later, when a test asks it to collect: thousands of modules and tests stay."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A mark names at most four rules, each written as rules are written: a crowded mark shows nothing.

    Where a share is asked for, the others are left out.
    """
    wrong = []
    for item in items:
        for mark in item.iter_markers("spec"):
            if not 1 <= len(mark.args) <= MOST_RULES_IN_A_MARK:
                wrong.append(f"{item.nodeid}: {len(mark.args)} rules in one mark")
            wrong += [f"{item.nodeid}: {rule!r} is no rule" for rule in mark.args if not RULE.fullmatch(str(rule))]
    if wrong:
        raise pytest.UsageError("spec marks: " + "; ".join(wrong))
    which, of = SHARE
    if left_out := [item for item in items if zlib.crc32(item.nodeid.encode()) % of != which % of]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % of == which % of]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the rules, which stands beside the repository where it is developed."""
    if not (SHARED / "spec").is_dir():
        pytest.skip("needs the rules in ../shared/spec, which are not part of the repository")
    return SHARED


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT
