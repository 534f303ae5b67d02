"""The process that serves goes away and comes back: the terminal UI goes on where it was."""

from pathlib import Path

from kit.surfaces.served_home import ServedHome, served
from kit.surfaces.watched_screen import watching
from wakeful.service.serving.options import ServeOptions


async def test_it_comes_back_with_its_cursor_and_shows_everything_once(tmp_path: Path) -> None:
    options = ServeOptions(port=0, tools=("kit.surfaces.watched_agents:agents",))
    with served(tmp_path, options) as home:
        async with watching(home.socket, agent="clerk") as screen:
            await screen.type("number one")
            await screen.until(lambda: screen.text.count("number one") == 2)
            home.kill()
            await screen.until("daemon away, reconnecting")
            await screen.type("number two")
            await screen.until("no daemon answers")
            assert screen.console.composer.text == "number two", "nothing that was typed is lost"
            _start_again(home)
            home.client.post("/agents/clerk/messages", {"text": "number three"})
            await screen.until(lambda: screen.text.count("number three") == 2)
            await screen.press("escape", "enter")
            shown = await screen.until(lambda: screen.text.count("number two") == 2)
            assert "daemon away" not in shown
            assert shown.count("number one") == 2
    said = [each["text"] for each in _read(tmp_path)]
    assert said == ["number one", "number three", "number two"]


def _start_again(home: ServedHome) -> None:
    home.start()


def _read(folder: Path) -> list[dict[str, str]]:
    with served(folder, ServeOptions(port=0, tools=("kit.surfaces.watched_agents:agents",))) as home:
        found = home.client.get("/agents/clerk/transcript").body
    return [each for each in found if each["kind"] == "operator_message"]
