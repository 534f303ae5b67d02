"""Patterns: `*` is any run, a bare name is a last part, and no text takes long."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.decisions.policy.patterns import any_named, in_full, name_test, text_test

letters = st.text(alphabet="ab/.", max_size=12)


@given(st.text(alphabet="ab*/.", max_size=8), letters)
def test_a_pattern_means_what_a_glob_of_stars_means(pattern: str, text: str) -> None:
    assert text_test(pattern)(text) == fnmatch.fnmatchcase(text, pattern)


@pytest.mark.parametrize(
    ("pattern", "name", "meant"),
    [
        ("exec_command", "exec_command", True),
        ("exec_command", "wakeful/exec_command", True),
        ("exec_command", "wakeful/my_exec_command", False),
        ("merge_*", "mcp.github/merge_pr", True),
        ("mcp.github/*", "mcp.github/merge_pr", True),
        ("mcp.github/*", "mcp.gitlab/merge_pr", False),
        ("mcp.github/merge", "merge", False),
        ("*", "mcp.github/merge_pr", True),
        ("a[b]?", "a[b]?", True),
        ("a[b]?", "abx", False),
    ],
)
def test_a_bare_pattern_means_the_last_part_of_a_name(pattern: str, name: str, meant: bool) -> None:
    assert name_test(pattern)(name) is meant


def test_lists_that_let_something_in_mean_the_whole_name() -> None:
    assert any_named(["read_file"], "client/read_file") == "read_file"
    assert not in_full(["read_file"], "client/read_file")
    assert in_full(["client/*"], "client/read_file")


@pytest.mark.parametrize("more", ["; rm x", " && rm x", "\nrm x", " `rm x`", " $(rm x)", " > x", " | sh", " & rm"])
def test_in_a_command_the_star_stops_at_what_begins_another(more: str) -> None:
    command = f"git status{more}"
    assert not text_test("git status*", shell=True)(command)
    assert not text_test("git*status*", shell=True)(command)
    assert text_test("git status*")(command)  # inversion: without the care it would match
    assert text_test("git status*", shell=True)("git status --short src")


def test_a_pattern_of_many_stars_takes_no_longer_than_reading_the_text() -> None:
    """A backtracking matcher would not come back from this."""
    assert not text_test("*a" * 40 + "*b")("a" * 200_000)
