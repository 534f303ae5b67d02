"""The plugin, in a project of its own and a new process, because what was used is kept for the process.

One run for all: every test here looks at what became of one file of it.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytest_plugins = ["pytester"]

INI = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"
HEAD = """
import asyncio, sys
from wakeful.contracts.conversation import History
from wakeful.ports import ModelRequest
from wakeful.testing import scripted

def ask(model, answered, attempt=1):
    request = ModelRequest("", History(), (), "turn_1", answered + 1, attempt, answered)
    async def all():
        return [piece async for piece in model.respond(request)]
    return asyncio.run(all())
"""
LEFT_OVER = """
def test_stops_early():
    ask(scripted([{"calls": [{"name": "x"}]}, "two", "three"], name="order"), 0)

def test_one_left():
    ask(scripted(["one", "two"]), 0)
"""
ALL_FINE = """
SHARED = scripted(["one", "two"])

def test_used_up(): ask(SHARED, 0); ask(SHARED, 1)
def test_used_up_again(): ask(SHARED, 1)
def test_not_used(): scripted(["one", "two"])
def test_allowed(): ask(scripted(["one", "two"], leftover="ignore"), 0)
def test_a_function(): ask(scripted(lambda: "any"), 0)
def test_a_longest_turn():
    model = scripted(["one", "two"])
    ask(model, 1); ask(model, 0)
def test_it_never_got_past_its_first_step():
    model = scripted([{"text": "one", "fail": {"kind": "overloaded"}}, "two"])
    try: ask(model, 0)
    except Exception: pass
"""
SHARED = """
SHARED = scripted(["one", "two"])

def test_used_up(): ask(SHARED, 0); ask(SHARED, 1)
def test_left_over(): ask(SHARED, 0)
"""
FAILS_BY_ITSELF = """
def test_it():
    ask(scripted(["one", "two"], name="mine"), 0)
    assert "mine" == "yours"
"""
STORES = """
import pathlib
seen = set()

def check(store):
    assert type(store) is str and not pathlib.Path(store).exists() and pathlib.Path(store).parent.is_dir()
    assert store not in seen
    seen.add(store)

def test_one(wakeful_store): check(wakeful_store)
def test_two(wakeful_store): check(wakeful_store)
"""
FILES = {
    "left_over": HEAD + LEFT_OVER,
    "all_fine": HEAD + ALL_FINE,
    "shared": HEAD + SHARED,
    "fails": HEAD + FAILS_BY_ITSELF,
    "stores": STORES,
}


class Outcome(NamedTuple):
    """Of one file: the names of its tests by what became of them, reasons that were given, and all that was said."""

    passed: list[str]
    failed: list[str]
    reasons: list[str]
    said: str


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    project: Path = tmp_path_factory.mktemp("project")
    (project / "pytest.ini").write_text(INI)
    for name, code in FILES.items():
        (project / f"test_{name}.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-rA", "--tb=short", "-p", "no:cacheprovider"]
    wide = {**os.environ, "COLUMNS": "400"}
    run = subprocess.run(command, cwd=project, env=wide, capture_output=True, text=True, check=False)
    lines = re.findall(r"^(PASSED|FAILED|ERROR) test_(\w+)\.py::(\w+)(?: - (.*))?$", run.stdout, re.MULTILINE)
    found = {name: Outcome([], [], [], run.stdout) for name in FILES}
    for status, name, test, reason in lines:
        (found[name].passed if status == "PASSED" else found[name].failed).append(test)
        found[name].reasons.extend([reason] if reason else ())
    assert sum(len(each.passed) + len(each.failed) for each in found.values()) == 14, run.stdout + run.stderr
    return found


def test_a_test_that_leaves_steps_over_fails_and_names_them(outcomes: dict[str, Outcome]) -> None:
    left = outcomes["left_over"]
    assert (left.passed, left.failed) == ([], ["test_stops_early", "test_one_left"])
    assert "scripted:order has 3 steps and steps 2 to 3 were never asked for" in left.reasons[0]
    assert "scripted:inline has 2 steps and step 2 was never asked for" in left.reasons[1]
    assert "leftover='ignore' allows it" in left.said


def test_scripts_that_are_used_up_unused_or_allowed_to_be_longer_pass(outcomes: dict[str, Outcome]) -> None:
    assert (len(outcomes["all_fine"].passed), outcomes["all_fine"].failed) == (7, [])


def test_what_one_test_used_does_not_count_for_the_next(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["shared"][:2] == (["test_used_up"], ["test_left_over"])


def test_a_test_that_fails_by_itself_keeps_its_own_message(outcomes: dict[str, Outcome]) -> None:
    fails = outcomes["fails"]
    assert (fails.passed, fails.failed) == ([], ["test_it"])
    assert not [reason for reason in fails.reasons if "never asked for" in reason]


def test_each_test_has_a_store_of_its_own(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["stores"][:3] == (["test_one", "test_two"], [], [])


def test_the_ini_option_refuses_the_network_for_the_whole_project(pytester: pytest.Pytester) -> None:
    test = "import socket\ndef test_it(): socket.socket().connect(('192.0.2.1', 80))"
    pytester.makepyfile(test)
    pytester.makeini("[pytest]\nwakeful_refuse_network = true\nasyncio_default_fixture_loop_scope = function\n")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*NetworkRefused: this test wanted to connect to 192.0.2.1:80*"])


def test_loading_the_plugin_loads_nothing_else() -> None:
    """It is imported by pytest in every project that has wakeful installed."""
    code = (
        "import pytest, sys; before = set(sys.modules); import wakeful.testing.pytest_plugin;"
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    ours = {"wakeful", "wakeful._version", "wakeful.testing", "wakeful.testing.pytest_plugin"}
    assert {name for name in loaded if name.startswith(("wakeful", "pydantic", "apsw", "yaml"))} <= ours
