"""The table of operations and the table of routes: nothing is forgotten, and nobody says who they are."""

import re
from pathlib import Path

import pytest

from wakeful.service.operations.routes import IDENTITY, ROUTES, WITHOUT_ROUTE, field_of_path, fields_of
from wakeful.service.operations.table import OPERATIONS


def test_every_operation_has_a_route_or_a_reason_why_not() -> None:
    routed = {route.operation.name for route in ROUTES}
    assert routed | set(WITHOUT_ROUTE) == set(OPERATIONS)
    assert routed & set(WITHOUT_ROUTE) == set()
    places = [(route.method, route.path) for route in ROUTES]
    assert len(set(places)) == len(places), "a place has one operation"


def test_who_acts_is_no_field_of_any_route() -> None:
    named = {(route.path, each.name) for route in ROUTES for each in fields_of(route) if each.name in IDENTITY}
    assert named == {("/cost", "by")}, "there it says how costs are grouped"


def test_names_in_paths_are_fields_of_their_requests() -> None:
    for route in ROUTES:
        fields = {each.name for each in fields_of(route)}
        for name in re.findall(r"{(\w+)}", route.path):
            assert field_of_path(route, name) in fields, route.path


def test_reading_is_a_get_and_changing_is_none() -> None:
    for route in ROUTES:
        assert (route.method == "GET") == (route.operation.scope == "observe"), route.path


def test_where_to_look_is_said_for_all_that_is_not_done_again_by_itself() -> None:
    places = {route.path for route in ROUTES if route.method == "GET"}
    for route in ROUTES:
        if route.method != "GET":
            assert route.operation.repeatable != bool(route.look), route.path
            assert route.look in (*places, ""), route.path


@pytest.mark.spec("HOL-INSPECT-09", "HOL-INSPECT-10", "HOL-INSPECT-12")
def test_the_guide_says_which_of_the_two_routes_is_for_whom(root: Path) -> None:
    said = (root / "docs" / "guides" / "daemon.md").read_text()
    assert '"tell me about this agent". This is the one for scripts and integrations; its fields stay.' in said
    assert "bootstrap a projection, then continue from `/events`" in said
    assert "made for clients of wakeful itself and may change with them" in said
