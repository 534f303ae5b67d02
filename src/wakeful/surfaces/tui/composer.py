"""The line to type in. It has the keys at all times: no pane ever has to be chosen before typing."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from wakeful.surfaces.tui.screen_text import harmless


class Composer(TextArea):
    """Enter sends; Ctrl+J begins a new line. Keys that an overlay claims are its own while nothing is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", show=False, priority=True),
        Binding("ctrl+j", "newline", show=False),
    ]

    class Submitted(Message):
        """A line is to be sent."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Pressed(Message):
        """A letter was typed into the empty line while an overlay claims it."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class Moved(Message):
        """A key that moves through the pane above."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self) -> None:
        super().__init__(id="composer", compact=True, show_line_numbers=False, soft_wrap=True, tab_behavior="focus")
        self.claimed: frozenset[str] = frozenset()
        """Letters of the overlay on top."""

    def action_submit(self) -> None:
        text = self.text
        self.text = ""
        self.post_message(self.Submitted(text))

    def action_newline(self) -> None:
        self.insert("\n")

    async def _on_key(self, event: events.Key) -> None:
        if event.key in ("pageup", "pagedown") or (event.key in ("up", "down") and "\n" not in self.text):
            event.stop()
            event.prevent_default()
            self.post_message(self.Moved(event.key))
            return
        if not self.text and event.character is not None and event.character in self.claimed:
            event.stop()
            event.prevent_default()
            self.post_message(self.Pressed(event.character))
            return
        await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        event.text = harmless(event.text)
        await super()._on_paste(event)
