"""Text that would move the cursor, turn the line or hide: it is shown, and does nothing."""

import pytest
from textual.events import Paste

from kit.surfaces.served_home import HomeClient, ServedHome
from kit.surfaces.watched_screen import LARGE, SMALL, watching

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07 clear",
    "\x9b31m eight bits",
    "\u202egnorw\u202c turned",
    "a\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301 marks",
    "hid\u200bden\ufeff word",
    "[bold red]markup[/] and [link=https://example.org]link[/link]",
    "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字 wide",
    "x" * 300,
)
OBEYED = ("\x1b", "\x07", "\x9b", "\u202e", "\u202c", "\u200b", "\ufeff")


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_hostile_text_is_shown_harmless_in_every_pane(
    home: ServedHome, client: HomeClient, size: tuple[int, int]
) -> None:
    async with watching(home.socket, agent="keeper", size=size) as screen:
        await screen.type("/display debug")
        turns = {
            client.until_ended(client.post("/agents/keeper/messages", {"text": text}).body)["turn_id"]
            for text in HOSTILE
        }

        def told() -> set[str | None]:
            shown = screen.console.conversation.entries("info")
            return {each.envelope.turn_id for each in shown if each.presentation.category == "brief"}

        await screen.until(lambda: turns <= told())
        seen = []
        for key in ("pageup", "pageup", "f3", "pagedown", "pagedown", "f5", "v", "pageup", "pageup"):
            await screen.press(key)
            await screen.until(lambda: screen.console.overlays == [] or screen.console.overlays[-1].lines)
            seen.append(screen.text)
            for line in screen.text.splitlines():
                assert line.isascii() is False or len(line) <= size[0]
    shown = "\n".join(seen)
    assert [each for each in OBEYED if each in shown] == []
    assert "\\x1b[2J" in shown
    assert "hidden word" in shown
    assert "[bold red]markup[/]" in shown, "nothing in a text is markup"
    assert "\u0301\u0301\u0301\u0301" not in shown


async def test_hostile_text_that_is_pasted_does_no_harm(home: ServedHome) -> None:
    async with watching(home.socket, agent="keeper") as screen:
        screen.console.post_message(Paste("two\nlines\x1b[2J"))
        await screen.until("lines\\x1b[2J")
        assert screen.console.composer.text == "two\nlines\\x1b[2J", "nothing of it is lost"
