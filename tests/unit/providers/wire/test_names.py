"""Tool names on the wire and back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.contracts.tools import ToolDeclaration
from wakeful.providers.wire.names import WireNames


def names(*tools: str, **aliases: str) -> WireNames:
    return WireNames([ToolDeclaration(name=name, input_schema={}) for name in tools], aliases)


@pytest.mark.spec("API-TURN-09")
@pytest.mark.parametrize(
    ("canonical", "wire"),
    [
        ("client/search_docs", "client__search_docs"),
        ("mcp.github/create-issue", "mcp__github__create__issue"),
        ("a./-b", "a__b"),
        ("_private_", "private"),
        ("/slashed/", "slashed"),
        ("2fa/check", "tool_2fa__check"),
        ("плата", "tool_"),
        ("plain", "plain"),
    ],
)
def test_a_name_gets_an_alias_that_every_provider_takes_and_comes_back(canonical: str, wire: str) -> None:
    known = names(canonical)
    assert known.to_wire(canonical) == wire
    assert known.from_wire(wire) == canonical


@pytest.mark.spec("API-TURN-09")
def test_a_declared_alias_is_understood_and_never_sent() -> None:
    known = names("client/search_docs", find_docs="client/search_docs")
    assert known.from_wire("find_docs") == "client/search_docs"
    assert known.to_wire("client/search_docs") == "client__search_docs"


def test_a_declared_alias_does_not_hide_a_tool_of_that_name() -> None:
    known = names("client/search_docs", "find_docs", find_docs="client/search_docs")
    assert known.from_wire("find_docs") == "find_docs"


def test_an_unknown_name_comes_back_as_it_is() -> None:
    assert names("client/a").from_wire("made.up/by the model") == "made.up/by the model"


def test_names_that_collide_get_a_short_hash_and_keep_apart() -> None:
    known = names("a/b", "a.b", "a__b")
    wires = [known.to_wire(name) for name in ("a/b", "a.b", "a__b")]
    assert wires[0] == "a__b"
    assert re.fullmatch(r"a__b_[0-9a-f]{8}", wires[1])
    assert len(set(wires)) == 3
    assert [known.from_wire(wire) for wire in wires] == ["a/b", "a.b", "a__b"]


def test_adding_a_tool_changes_no_name_that_was_used() -> None:
    before, after = names("a/b", "a.b"), names("a/b", "a.b", "a__b", "a-b")
    assert [before.to_wire(name) for name in ("a/b", "a.b")] == [after.to_wire(name) for name in ("a/b", "a.b")]


def test_a_tool_that_is_not_offered_any_more_does_not_take_another_ones_name() -> None:
    known = names("a/b")
    assert known.to_wire("a.b") not in ("a__b", "a.b")
    assert known.from_wire(known.to_wire("a/b")) == "a/b"


@given(st.lists(st.text(min_size=1, max_size=120), unique=True, max_size=12))
def test_every_set_of_names_is_mapped_both_ways_without_loss(tools: list[str]) -> None:
    known = names(*tools)
    wires = [known.to_wire(name) for name in tools]
    assert len(set(wires)) == len(tools)
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", wire) for wire in wires)
    assert [known.from_wire(wire) for wire in wires] == tools
