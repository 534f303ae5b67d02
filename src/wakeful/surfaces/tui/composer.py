"""The line to type in. It has the keys at all times: no pane ever has to be chosen before typing."""

from collections.abc import Callable

from textual import events
from textual.widgets import TextArea

from wakeful.surfaces.tui.screen_text import harmless

STEERING = frozenset(
    ("enter", "tab", "shift+tab", "escape", "pageup", "pagedown", *(f"f{number}" for number in range(1, 9)))
)


class Composer(TextArea):
    """Enter sends; Ctrl+J begins a new line.

    Keys that are not text are handed on in the order in which they were pressed, between the letters: many may come at
    once, over a slow line, and an Enter must not overtake the words before it.
    """

    def __init__(self, steer: Callable[[str], None]) -> None:
        super().__init__(id="composer", compact=True, show_line_numbers=False, soft_wrap=True, tab_behavior="focus")
        self.cursor_blink = False
        self._steer = steer
        self.claimed: Callable[[], frozenset[str]] = frozenset
        """Letters that mean something else while nothing is typed."""

    async def _on_key(self, event: events.Key) -> None:
        is_move = event.key in ("up", "down") and "\n" not in self.text
        if event.key in STEERING or is_move:
            self._hand_on(event, event.key)
        elif not self.text and event.character is not None and event.character in self.claimed():
            self._hand_on(event, event.character)
        elif event.key == "ctrl+j":
            event.stop()
            event.prevent_default()
            self.insert("\n")

    def _hand_on(self, event: events.Key, key: str) -> None:
        event.stop()
        event.prevent_default()
        self._steer(key)

    async def _on_paste(self, event: events.Paste) -> None:
        """The text area takes it afterwards."""
        event.text = harmless(event.text)
        event.stop()

    def put(self, text: str) -> None:
        """Other text, with the cursor behind it."""
        self.text = text
        self.move_cursor(self.document.end)

    def take(self) -> str:
        """The text; the line is empty afterwards."""
        text, self.text = self.text, ""
        return text
