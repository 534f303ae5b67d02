"""Panes with more rows than a screen of 80 columns and 24 rows: whatever is chosen is in sight, and all can be read."""

import re
from collections.abc import Iterator

import pytest

from kit.surfaces.many_agents import PAGE, agents
from kit.surfaces.served_home import HomeClient, ServedHome, served
from kit.surfaces.watched_screen import Screen, watching
from wakeful.service.serving.options import ServeOptions

PARAGRAPHS = PAGE.splitlines()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    options = ServeOptions(port=0, tools=("kit.surfaces.many_agents:agents",))
    with served(tmp_path_factory.mktemp("home"), options) as found:
        yield found


def pane(screen: Screen) -> str:
    """What stands inside the newest overlay."""
    return "\n".join(line[1:-1] for line in screen.text.splitlines() if line.startswith("│"))


async def until_chosen(screen: Screen, name: str) -> None:
    """Its row is in sight, and marked. A long name is cut in its middle."""

    def is_chosen() -> bool:
        found = re.search(r"^ >(?: *└ )?(\S+?)(?:…(\S*))? ", pane(screen), re.M)
        return found is not None and name.startswith(found[1]) and name.endswith(found[2] or "")

    await screen.until(is_chosen)


async def turn_over(screen: Screen, key: str, words: str) -> None:
    """Until words are in sight."""
    while words not in pane(screen):
        before = pane(screen)
        await screen.press(key)
        await screen.until(lambda before=before: pane(screen) != before)


async def read_through(screen: Screen, first: str, last: str) -> None:
    """From the first words to the last ones, line by line, and back by pages."""
    await screen.until(first)
    assert last not in pane(screen), "there is more than fits"
    await turn_over(screen, "down", last)
    await turn_over(screen, "pageup", first)


async def test_the_agent_that_is_chosen_is_in_sight_and_is_the_one_that_enter_opens(
    home: ServedHome, client: HomeClient
) -> None:
    client.until_ended(client.post("/agents/ops/messages", {"text": "Have a hole made."}).body)
    async with watching(home.socket, agent="clerk") as screen:
        names = await family_order(screen)
        assert len(names) == len(agents) + 1 == 31
        assert names != [each["agent"] for each in client.get("/agents?private=true&limit=500").body]
        await screen.press("f2")
        for name in names:
            await until_chosen(screen, name)
            await screen.press("down")
        for name in names[::-1][: 31 - 22]:
            await until_chosen(screen, name)
            await screen.press("up")
        await until_chosen(screen, names[21])
        await screen.press("enter")
        await screen.until(f"> to {names[21]}:")
        await screen.press("f2")
        await until_chosen(screen, names[21])
        await screen.press("pageup", "pageup", "pageup")
        await until_chosen(screen, names[0])
        await screen.until(lambda: "AGENT" in pane(screen))


async def family_order(screen: Screen) -> list[str]:
    await screen.until(lambda: len(screen.console.overview.rows) == 31)
    return [row.name for row in screen.console.overview.rows]


async def test_a_long_call_is_read_to_its_end_and_the_next_one_begins_at_its_beginning(
    home: ServedHome, client: HomeClient
) -> None:
    client.post("/agents/editor/messages", {"text": "write"})
    async with watching(home.socket, agent="editor") as screen:
        await screen.until("1 NEEDS YOU (F6)")
        client.post("/agents/clerk/messages", {"text": "refund 30"})
        await screen.until("2 NEEDS YOU (F6)")
        await screen.press("f6")
        await screen.until("1 of 2")
        await screen.press("v")
        await turn_over(screen, "pagedown", PARAGRAPHS[-1])
        await turn_over(screen, "pagedown", "approvers: ")
        assert "1 of 2" not in pane(screen)
        await screen.press("down")
        await screen.until("2 of 2")
        for each in client.get("/approvals").body:
            client.post(f"/approvals/{each['approval_id']}/decision", {"decision": "rejected"})
        await screen.until("nothing needs you")


async def test_every_other_pane_can_be_read_to_its_end(home: ServedHome, client: HomeClient) -> None:
    shops = [each["agent"] for each in client.get("/agents?limit=500").body if each["agent"].startswith("shop-")]
    assert len(shops) == 26
    for name in shops:
        client.until_ended(client.post(f"/agents/{name}/messages", {"text": "hello"}).body)
    for number in range(30):
        asked = client.post("/control/agents/keeper/work-items", {"objective": f"thing {number:02}"})
        assert asked.status < 300, asked
    for number in range(12):
        client.until_ended(client.post("/agents/shop-01/messages", {"text": f"word {number:02}"}).body)
    async with watching(home.socket, agent="shop-01") as screen:
        await screen.press("f3")
        await read_through(screen, "hello", "word 11")
        newest = client.get("/agents/shop-01/state").body["event_seq"]
        await screen.press("f5")
        await screen.until(f" {newest} ")
        await turn_over(screen, "pageup", f" {newest - 99} ")
        await screen.type("/agent keeper")
        await screen.until("> to keeper:")
        await screen.press("f4")
        await read_through(screen, "thing 29", "thing 00")
        await screen.press("f8")
        await read_through(screen, "shop-01", "total $0.00")
        await screen.press("f1")
        await read_through(screen, "/help", "//etc is full")
