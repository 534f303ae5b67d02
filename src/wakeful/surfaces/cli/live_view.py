"""A run while it happens, on stderr: drawn for somebody at a terminal, or for nobody.

What was done stays, what is being said moves and goes away. The answer itself is printed at the end, on stdout, so that
it stands there once. Drawing is expensive to import, so it is loaded only when there is somebody to draw for.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Self

from wakeful.contracts.envelope import StoredFact
from wakeful.service import Glimpse, OutputGlimpsed, ProgressGlimpsed
from wakeful.surfaces.cli.screen import fold
from wakeful.surfaces.cli.shown_values import one_line, plain
from wakeful.views.run_stream import RunStream
from wakeful.views.run_stream_events import RunEvent, StatusEvent, StepEvent, TextEvent, ToolCallEvent

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

TAIL_LINES = 8
"""How many of the newest lines of a text are shown while it comes."""


class SilentView:
    """Shows nothing; only the turn's id is kept."""

    def __init__(self) -> None:
        self.turn_id: str | None = None
        """Known as soon as the run is safe in the store."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def paused(self) -> AbstractContextManager[object]:
        """While somebody is asked: nothing moves on the screen."""
        return nullcontext()

    def begun(self, turn_id: str, agent_id: str) -> None:
        """The turn is safe."""
        self.turn_id = turn_id

    def facts(self, recorded: Sequence[StoredFact]) -> None:
        return None

    def glimpse(self, seen: Glimpse) -> None:
        return None


class ProgressView(SilentView):
    """Draws one run."""

    def __init__(self) -> None:
        from rich.console import Console

        super().__init__()
        self._console = Console(stderr=True, highlight=False)
        self._live: Live | None = None
        self._over = False
        self._view: RunStream | None = None
        self._said = ""
        """The model's words of this step that are not yet settled."""
        self._doing = "beginning"

    def __enter__(self) -> Self:
        from rich.live import Live

        self._live = Live(self._moving(), console=self._console, transient=True, refresh_per_second=12)
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        if self._live is not None:
            self._live.stop()
            self._live = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Remove the moving part, so that a question stands alone."""
        shown = self._live
        if shown is None:
            yield
            return
        shown.stop()
        self._live = None
        try:
            yield
        finally:
            if not self._over:
                self.__enter__()

    def begun(self, turn_id: str, agent_id: str) -> None:
        super().begun(turn_id, agent_id)
        self._view = RunStream(turn_id)

    def facts(self, recorded: Sequence[StoredFact]) -> None:
        if self._view is not None:
            for entry in recorded:
                self._show(self._view.feed(entry))

    def glimpse(self, seen: Glimpse) -> None:
        if isinstance(seen, ProgressGlimpsed):
            self._doing = f"{seen.tool_name}: {one_line(seen.message, 60)}"
            self._refresh()
        elif isinstance(seen, OutputGlimpsed):
            if last := seen.text.rstrip().rpartition("\n")[2]:
                self._doing = f"{seen.tool_name}: {one_line(last, 60)}"
                self._refresh()
        elif self._view is not None:
            self._show(self._view.glimpse(seen.step, seen.piece, seen.level))

    def _show(self, events: Sequence[RunEvent]) -> None:
        from wakeful.surfaces.cli.lines import line

        for event in events:
            if isinstance(event, TextEvent):
                self._said += event.text
            elif isinstance(event, StepEvent):
                self._doing = f"step {event.step}"
                self._said = "" if event.status == "started" else self._said
            else:
                if isinstance(event, ToolCallEvent):
                    self._settle_words()
                    self._doing = event.tool_name
                if isinstance(event, StatusEvent) and event.is_terminal:
                    self._said = ""  # printed as the answer, or told with the error
                elif (shown := line(event)) is not None:
                    self._print(shown)
        self._refresh()

    def _settle_words(self) -> None:
        """Words before a call are part of the record, not of the answer."""
        from rich.text import Text

        words, self._said = plain(self._said).strip(), ""
        self._refresh()
        for each in words.splitlines():
            self._print(Text("\n".join(fold(each, first="  ", rest="  ")), "dim"))

    def _print(self, text: "Text") -> None:
        self._console.print(text, overflow="ellipsis", no_wrap=True)

    def _refresh(self) -> None:
        if self._live is not None:
            self._live.update(self._moving())

    def _moving(self) -> "Group":
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.text import Text

        spinner = Spinner("dots", Text(f" {plain(self._doing)}", "dim"))
        if not self._said.strip():
            return Group(spinner)
        tail = "\n".join(plain(self._said).splitlines()[-TAIL_LINES:])
        return Group(Text(tail), spinner)


def somebody_or_nobody(*, quiet: bool) -> SilentView:
    """The watcher for this run: progress where stderr is a terminal and nobody asked for quiet."""
    if quiet or not sys.stderr.isatty():
        return SilentView()
    return ProgressView()
