"""A turn on the screen while it runs: its words, its budget, what is said to it; and panes for money and output."""

from collections.abc import Iterator

import pytest

from kit.surfaces.chat_agents import FIRST, REST
from kit.surfaces.served_home import HomeClient, ServedHome, served
from kit.surfaces.watched_screen import watching
from wakeful.service.serving.options import ServeOptions


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    options = ServeOptions(port=0, tools=("kit.surfaces.chat_agents:agents",))
    with served(tmp_path_factory.mktemp("home"), options) as found:
        yield found


async def test_words_are_on_the_screen_before_they_are_stored_and_the_budget_below(
    home: ServedHome, client: HomeClient
) -> None:
    async with watching(home.socket, agent="teller") as screen:
        await screen.type("tell once")
        await screen.until(f"   {FIRST.strip()}")
        shown = await screen.until("turn $0.00, 1 of 200 calls, thinking ")
        assert "teller Once upon" not in shown, "the conversation has what is stored"
        await screen.type("/now and a moral")
        await screen.until(lambda: "and a moral" in str(client.get("/agents/teller/events?limit=1000").body))
        (home.folder / "once").touch()
        await screen.until("teller finished")
        shown = await screen.gone("turn $0.00")
        assert shown.count("and a moral") == 1, "in the conversation, once"
        await screen.type("tell once")
        await screen.until(f"teller {FIRST}{REST}")
    first = client.get("/turns?agent=teller").body[-1]["turn_id"]
    said = client.get(f"/turns/{first}/events?limit=1000").body
    assert "turn.interjected" in {event["type"] for event in said}, "the turn that ran took it"


async def test_money_of_today_is_a_pane(home: ServedHome) -> None:
    async with watching(home.socket, agent="clerk", size=(160, 50)) as screen:
        await screen.type("hello")
        await screen.until("clerk you said:")
        await screen.press("f8")
        shown = await screen.until("total $0.00")
        assert "─ Cost today" in shown and "AGENT" in shown and "MODEL" in shown
        assert "clerk" in shown.partition("AGENT")[2] and "scripted:" in shown.partition("MODEL")[2]
        await screen.press("escape")
        await screen.gone("─ Cost today")


async def test_a_cursor_that_is_gone_begins_anew_and_shows_everything_once(home: ServedHome) -> None:
    async with watching(home.socket, agent="keeper") as screen:
        await screen.type("before the cut")
        await screen.until(lambda: screen.text.count("before the cut") == 2)
        screen.console._feed.cursor = "feed-00000000-7"  # as after a time in which retention cut the feed
        home.kill()
        await screen.until("daemon away, reconnecting")
        home.start()
        await screen.gone("daemon away")
        await screen.type("after the cut")
        shown = await screen.until(lambda: screen.text.count("after the cut") == 2)
        assert shown is not None and screen.text.count("before the cut") == 2
        assert screen.console._feed.cursor != "feed-00000000-7"
