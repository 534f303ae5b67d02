"""The plugin, in projects of its own: each in a new process, because what was used is kept for the process."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

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


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    return pytester


def test_a_test_that_leaves_steps_over_fails_and_names_them(project: pytest.Pytester) -> None:
    project.makepyfile(
        HEAD
        + """
def test_stops_early():
    ask(scripted([{"calls": [{"name": "x"}]}, "two", "three"], name="order"), 0)

def test_one_left():
    ask(scripted(["one", "two"]), 0)
"""
    )
    result = project.runpytest_subprocess()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "*scripted:order has 3 steps and steps 2 to 3 were never asked for",
            "*leftover='ignore' allows it*",
            "*scripted:inline has 2 steps and step 2 was never asked for",
        ]
    )


def test_scripts_that_are_used_up_unused_or_allowed_to_be_longer_pass(project: pytest.Pytester) -> None:
    project.makepyfile(
        HEAD
        + """
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
    )
    project.runpytest_subprocess().assert_outcomes(passed=7)


def test_what_one_test_used_does_not_count_for_the_next(project: pytest.Pytester) -> None:
    project.makepyfile(
        HEAD
        + """
SHARED = scripted(["one", "two"])

def test_used_up(): ask(SHARED, 0); ask(SHARED, 1)
def test_left_over(): ask(SHARED, 0)
"""
    )
    project.runpytest_subprocess().assert_outcomes(passed=1, failed=1)


def test_a_test_that_fails_by_itself_keeps_its_own_message(project: pytest.Pytester) -> None:
    project.makepyfile(HEAD + "def test_it():\n    ask(scripted(['one', 'two']), 0)\n    assert 'mine' == 'yours'\n")
    result = project.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*never asked for*")


def test_each_test_has_a_store_of_its_own(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
import pathlib
seen = set()

def check(store):
    assert type(store) is str and not pathlib.Path(store).exists() and pathlib.Path(store).parent.is_dir()
    assert store not in seen
    seen.add(store)

def test_one(wakeful_store): check(wakeful_store)
def test_two(wakeful_store): check(wakeful_store)
"""
    )
    project.runpytest_subprocess().assert_outcomes(passed=2)


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
