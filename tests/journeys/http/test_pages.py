"""Lists over HTTP come in pages, and whoever reads page after page sees every line once, whatever comes and goes."""

import re

import pytest

from kit.surfaces.served_home import Answer, HomeClient, ServedHome
from wakeful.service.operations.pages import PAGES
from wakeful.service.operations.routes import ROUTES
from wakeful.surfaces.http.operation_routes import ELSEWHERE

NOT_PAGED = {
    "/agents/{agent_id}/transcript": "`turns` says how many of the newest turns; older ones are in /threads",
    "/failed-turns": "`limit` says how many of the newest; older ones are in /turns, by their state",
    "/feed/tail": "it is the end of /feed, which has pages",
}
NAMES = [f"page-{number:02}" for number in range(7)]


def make(client: HomeClient, name: str) -> None:
    made = client.post("/agents", {"definition": {"name": name, "model": "scripted:demo"}})
    assert made.status == 200, made


@pytest.fixture(autouse=True, scope="module")
def agents(home: ServedHome) -> None:
    for name in NAMES:
        make(home.client, name)


def following(path: str, answer: Answer) -> str:
    """The address of the next page: the link is a query, so that it holds below every path of a proxy."""
    found = re.fullmatch(r'<(\?.+)>; rel="next"', answer.headers.get("link", ""))
    return path.partition("?")[0] + found[1] if found else ""


def pages(client: HomeClient, path: str) -> list[list[object]]:
    found, upto = [], 50
    while path and len(found) < upto:
        answer = client.get(path)
        assert answer.status == 200, answer
        found.append(answer.body)
        path = following(path, answer)
    return found


def names_of(lines: list[object]) -> list[str]:
    return [line["identity"]["agent_id"] if "identity" in line else line["agent"] for line in lines]  # type: ignore[index,call-overload,operator]


def test_every_list_has_pages_or_a_reason_why_not() -> None:
    lists = {route.path for route in ROUTES if route.operation.many}
    assert lists == set(PAGES) | set(NOT_PAGED) | (set(ELSEWHERE) & lists)
    assert not set(PAGES) & set(NOT_PAGED)


@pytest.mark.parametrize("path", ["/agents", "/agents/list"])
def test_agents_come_page_by_page(client: HomeClient, path: str) -> None:
    whole = names_of(client.get(f"{path}?limit=1000").body)
    assert set(NAMES) < set(whole)
    parts = pages(client, f"{path}?limit=2")
    assert [name for part in parts for name in names_of(part)] == whole
    assert all(len(part) == 2 for part in parts[:-1])


def test_lines_that_come_and_go_between_pages_move_no_other_line(client: HomeClient) -> None:
    for name in ("page-x0", "page-x1", "page-x2", "page-x3"):
        make(client, name)
    whole = names_of(client.get("/agents?limit=1000").body)
    at = whole.index("page-x1") + 1
    first = client.get(f"/agents?limit={at}")
    assert names_of(first.body)[-1] == "page-x1"
    client.ask("DELETE", "/agents/page-x1")  # the last line of the page
    client.ask("DELETE", "/agents/page-x0")  # one before it
    make(client, "page-x4")
    rest = client.get(following("/agents", first))
    assert names_of(rest.body)[:2] == ["page-x2", "page-x3"]
    assert "page-x4" in [name for part in pages(client, following("/agents", first)) for name in names_of(part)]
    make(client, "page-y0")


def test_a_list_that_is_cut_by_its_order_survives_its_last_line(client: HomeClient) -> None:
    make(client, "a-first")  # its trigger is the first of all
    client.post("/control/agents/keeper/pause", {})
    made = [client.post("/control/agents/keeper/work-items", {"objective": f"n{n}"}).body["id"] for n in range(6)]
    path = "/agents/keeper/work-items"
    assert [line["id"] for part in pages(client, f"{path}?limit=4") for line in part][:6] == made[::-1]  # type: ignore[index]
    triggers = pages(client, "/triggers?limit=1")
    keys = [(line["target_agent_id"], line["name"]) for part in triggers for line in part]  # type: ignore[index]
    assert keys == sorted(keys) and len(set(keys)) == len(keys) > 6
    first = client.get("/triggers?limit=1")
    assert [line["target_agent_id"] for line in first.body] == ["a-first"]
    client.ask("DELETE", "/agents/a-first")
    later = [line["external_trigger_id"] for line in client.get(following("/triggers", first)).body]
    assert later == [line["external_trigger_id"] for line in triggers[1]]  # type: ignore[index]


def test_events_turns_and_the_feed_say_where_they_go_on(client: HomeClient) -> None:
    for number in range(4):
        sent = client.post("/agents/clerk/messages", {"text": f"hello {number}", "thread": f"t{number}"})
        client.until_ended(sent.body)
    whole = client.get("/agents/clerk/events?limit=1000").body
    assert [event for part in pages(client, "/agents/clerk/events?limit=7") for event in part] == whole
    turns = client.get("/turns?agent=clerk&limit=1000").body
    assert [turn for part in pages(client, "/turns?agent=clerk&limit=1") for turn in part] == turns
    turn = turns[0]["turn_id"]
    events = client.get(f"/turns/{turn}/events?limit=1000").body
    assert [event for part in pages(client, f"/turns/{turn}/events?limit=3") for event in part] == events
    feed = client.get("/feed?limit=1000").body
    assert [entry for part in pages(client, "/feed?limit=5") for entry in part] == feed
    briefs = client.get("/agents/clerk/briefs?limit=1000").body
    assert [brief for part in pages(client, "/agents/clerk/briefs?limit=1") for brief in part] == briefs
    threads = client.get("/threads?limit=1000").body
    assert len(threads) > 3
    assert [thread for part in pages(client, "/threads?limit=1") for thread in part] == threads
    used = client.get("/agents/usage?limit=1000").body
    assert [one for part in pages(client, "/agents/usage?limit=1") for one in part] == used


def test_a_cursor_of_another_list_or_of_nobody_is_refused_with_how_to_begin(client: HomeClient) -> None:
    given = following("/agents", client.get("/agents?limit=2"))
    cursor = given.partition("cursor=")[2]
    for path in (
        f"/agents/list?cursor={cursor}",
        f"/agents?private=true&cursor={cursor}",
        "/agents?cursor=3",
        "/agents?cursor=%C3%A4",
    ):
        answer = client.get(path)
        assert (answer.status, answer.code) == (400, "invalid_cursor"), path
        assert answer.body["error"]["hint"] == "Begin again without a cursor."
    assert client.get(f"/agents?limit=5&cursor={cursor}").status == 200, "another size is the same list"
    gone_lines = ("/agents?after=nobody", "/notices?after=nothing", "/agents/clerk/briefs?after=nothing")
    more = ("/tasks?after=nothing", "/agents/keeper/work-items?after=nothing", "/agents/clerk/memory?after=nothing")
    for path in (*gone_lines, *more):
        gone = client.get(path)
        assert (gone.status, gone.code) == (410, "cursor_gone"), path
        assert "Begin again" in gone.body["error"]["hint"]
