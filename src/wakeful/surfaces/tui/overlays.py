"""Panes that come over the conversation for a while. The composer below keeps the keys; Esc closes the newest one.

An overlay reads when it opens and whenever something happened. A key in it comes to a wish: it does nothing itself.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Region
from textual.widgets import Static

from wakeful.surfaces.tui.conversation import Line
from wakeful.surfaces.tui.home_client import HomeClient, Record
from wakeful.surfaces.tui.overview import Overview, cut_line
from wakeful.surfaces.tui.screen_text import cut, folded, padded
from wakeful.surfaces.tui.shown_times import ShownTimes
from wakeful.surfaces.tui.slash_commands import COMMANDS, NO_AGENT
from wakeful.surfaces.tui.wishes import CommandWish, QuestionWish, Wish
from wakeful.views.presentation.plain_text import json_text, short

EVENTS: Final = 100
STYLES: Final[Mapping[str, str]] = {
    "you": "bold",
    "needs_you": "bold reverse",
    "failed": "bold",
    "quiet": "dim",
    "added": "green",
    "removed": "red",
}


def content_of(lines: Sequence[Line]) -> Content:
    """Lines for a widget. The text is taken as it is: nothing in it is markup."""
    parts = [(f"{line.text}\n", STYLES.get(line.tone, "")) for line in lines]
    return Content.assemble(*parts).rstrip("\n")


class Overlay(VerticalScroll, can_focus=False):
    """A pane over the conversation."""

    heading: ClassVar[str] = ""
    keys: ClassVar[Mapping[str, str]] = {}
    """Letters that it claims while nothing is typed, and what they do."""

    def __init__(self, client: HomeClient, times: ShownTimes) -> None:
        super().__init__(classes="overlay")
        self.client = client
        self.times = times
        self.agent: str | None = None
        self.lines: list[Line] = []

    def compose(self) -> ComposeResult:
        yield Static(id="shown")

    def on_mount(self) -> None:
        self.draw()

    @property
    def title(self) -> str:
        return f"{self.heading}: {self.agent}" if self.agent else self.heading

    @property
    def room(self) -> int:
        """Columns."""
        return max(20, self.scrollable_content_region.width or self.app.size.width - 4)

    async def load(self, agent: str | None) -> None:
        """Read it again. Raises what the client raises."""
        self.agent = agent
        self.lines = await self.read() if agent is not None or not self.needs_agent else [Line("there is no agent yet")]
        self.draw()

    needs_agent: ClassVar[bool] = True

    async def read(self) -> list[Line]:
        raise NotImplementedError

    def draw(self) -> None:
        self.border_title = Content(cut_line(self.title, 60))
        self.border_subtitle = Content("  ".join([*(f"[{key}] {words}" for key, words in self.hints().items())]))
        for shown in self.query("#shown").results(Static):  # none before it is there, and when it was closed
            shown.update(content_of(self.lines))

    def hints(self) -> Mapping[str, str]:
        return {**self.keys, "Esc": "close"}

    @property
    def letters(self) -> frozenset[str]:
        """The keys that it claims now."""
        return frozenset(self.keys)

    def press(self, key: str) -> Wish | None:
        """One of its keys."""
        return None

    def choose(self) -> Wish | None:
        """Enter, while nothing is typed."""
        return None

    @property
    def is_stale(self) -> bool:
        """After a move: is something to be read before all of it can be shown?"""
        return False

    def move(self, key: str) -> None:
        match key:
            case "up":
                self.scroll_up(animate=False)
            case "down":
                self.scroll_down(animate=False)
            case "pageup":
                self.scroll_page_up(animate=False)
            case _:
                self.scroll_page_down(animate=False)


class HelpOverlay(Overlay):
    """Keys and commands."""

    heading = "Help"
    needs_agent = False

    @property
    def title(self) -> str:
        return self.heading

    async def read(self) -> list[Line]:
        rows = [f"{each.usage:<16} {each.key:<7} {each.says}" for each in COMMANDS.values()]
        more = (
            "Enter sends, Ctrl+J begins a new line, Tab goes to the next agent.",
            "Up, Down, PgUp and PgDn move through the pane; Esc closes the newest one.",
            "A message that begins with / is typed with two: //etc is full.",
        )
        return (
            [Line(cut_line(row, self.room)) for row in rows]
            + [Line("")]
            + [Line(line) for each in more for line in folded(each, self.room)]
        )


class TranscriptOverlay(Overlay):
    """What was said between the operator and the agent, in full."""

    heading = "Transcript"

    async def read(self) -> list[Line]:
        assert self.agent is not None
        found: list[Line] = []
        for each in await self.client.transcript(self.agent):
            who = {"operator_message": "you", "brief": self.agent}.get(each["kind"], "provider failure")
            tone = {"operator_message": "you", "brief": "agent"}.get(each["kind"], "failed")
            head = f"{self.times.of(each['ts'])} {who}  {each['thread_id']}  {short(each.get('turn_id') or 'queued')}"
            found.append(Line(cut(head, self.room), "quiet"))
            found += [Line(line, tone) for line in folded(each["text"], self.room)]  # type: ignore[arg-type]
        return found or [Line("nothing was said yet")]


class TasksOverlay(Overlay):
    """Commands in the background, agents that it made, and its queue of work."""

    heading = "Tasks"
    keys: ClassVar[Mapping[str, str]] = {"o": "output of the newest"}

    def __init__(self, client: HomeClient, times: ShownTimes) -> None:
        super().__init__(client, times)
        self._newest: str | None = None

    def hints(self) -> Mapping[str, str]:
        return {**(self.keys if self._newest is not None else {}), "Esc": "close"}

    @property
    def letters(self) -> frozenset[str]:
        return frozenset(self.keys) if self._newest is not None else frozenset()

    def press(self, key: str) -> Wish | None:
        return None if self._newest is None else CommandWish(f"/output {self._newest}")

    async def read(self) -> list[Line]:
        assert self.agent is not None
        tasks, items = await self.client.tasks(self.agent), await self.client.work_items(self.agent)
        newest = max(tasks, key=lambda task: float(task.get("created_at") or 0), default=None)
        self._newest = None if newest is None else newest["task_id"]
        status = await self.client.agent(self.agent)
        found = [Line("TASKS", "quiet")] + [self._task_line(each) for each in tasks]
        found += [] if tasks else [Line("  none")]
        children = status.get("children") or []
        found += [Line("CHILD AGENTS", "quiet")] + [self._child_line(each) for each in children]
        found += [] if children else [Line("  none")]
        found += [Line("WORK ITEMS", "quiet")]
        found += [Line(cut(f"{each.get('state', '')}  {each.get('objective', '')}", self.room)) for each in items]
        return found + ([] if items else [Line("  none")])

    def _task_line(self, task: Record) -> Line:
        said = task.get("summary") or task.get("command") or task.get("child_agent_id") or ""
        ended = f": {task['result_summary']}" if task.get("result_summary") else ""
        return Line(cut(f"{padded(task['status'], 11)} {short(task['task_id'])}  {said}{ended}", self.room))

    def _child_line(self, child: Record) -> Line:
        who = child["identity"]
        return Line(cut(f"{padded(child['status'], 14)} {who['agent_id']}  {who['visibility']}", self.room))


class EventsOverlay(Overlay):
    """The newest raw events of the log."""

    heading = "Events"
    keys: ClassVar[Mapping[str, str]] = {"v": "payloads"}

    def __init__(self, client: HomeClient, times: ShownTimes) -> None:
        super().__init__(client, times)
        self._whole = False
        self._events: list[Record] = []
        self.anchor()  # at the newest

    async def read(self) -> list[Line]:
        assert self.agent is not None
        self._events = await self.client.newest_events(self.agent, EVENTS)
        return self._shown()

    def press(self, key: str) -> Wish | None:
        self._whole = not self._whole
        self.lines = self._shown()
        self.draw()
        return None

    def _shown(self) -> list[Line]:
        found = []
        for each in self._events:
            at = each["envelope"]
            row = f"{at['event_seq']:>5} {self.times.of(at['ts'])} {padded(at['kind'], 22)} "
            found.append(Line(cut_line(row + cut(each["presentation"]["summary"], 400), self.room)))
            if self._whole:
                payload = json_text(each["payload"], indent=1)
                found += [Line(f"      | {line}", "quiet") for line in folded(payload, self.room - 8)]
        return found or [Line("no events yet")]


class TextOverlay(Overlay):
    """Words that a command brought, such as a prompt or a reason."""

    def __init__(self, client: HomeClient, times: ShownTimes, heading: str, text: str) -> None:
        super().__init__(client, times)
        self._heading, self._text = heading, text

    needs_agent = False

    @property
    def title(self) -> str:
        return self._heading

    async def read(self) -> list[Line]:
        return [Line(line) for line in folded(self._text, self.room)]


class AgentsOverlay(Overlay):
    """All agents; Enter talks to the chosen one."""

    heading = "Agents"
    needs_agent = False

    def __init__(self, client: HomeClient, times: ShownTimes, overview: Callable[[], Overview]) -> None:
        super().__init__(client, times)
        self._overview = overview
        self.chosen: str | None = None

    def hints(self) -> Mapping[str, Any]:
        return {**({"Enter": "talk to it"} if self._overview().names else {}), "Esc": "close"}

    @property
    def title(self) -> str:
        return self.heading

    async def read(self) -> list[Line]:
        if self.chosen not in self._overview().names:
            self.chosen = self.agent
        return self._shown()

    def move(self, key: str) -> None:
        names = self._overview().names
        if not names:
            return
        now = names.index(self.chosen) if self.chosen in names else 0
        step = {"up": -1, "down": 1, "pageup": -10, "pagedown": 10}[key]
        self.chosen = names[max(0, min(len(names) - 1, now + step))]
        self.lines = self._shown()
        self.draw()

    def draw(self) -> None:
        super().draw()
        self.call_after_refresh(self._follow)

    def _follow(self) -> None:
        """The choice is in sight, and with the first one the heading."""
        names = self._overview().names
        if self.chosen in names:
            row = names.index(self.chosen)
            self.scroll_to_region(Region(0, row + 1 if row else 0, 1, 1), animate=False, x_axis=False)

    def choose(self) -> Wish | None:
        return None if self.chosen is None else CommandWish(f"/agent {self.chosen}")

    def _shown(self) -> list[Line]:
        shown = self._overview()
        rows = shown.table(self.room, self.chosen, len(shown.rows))
        found = [Line(row, "you" if row.startswith(">") else "agent") for row in rows]
        return found if shown.rows else [Line(line) for line in folded(NO_AGENT, self.room)]


class ActionsOverlay(Overlay):
    """What can be done to an agent from here."""

    heading = "Actions"
    actions: ClassVar[Mapping[str, tuple[str, str]]] = {
        "p": ("/pause", "pause it: everything is kept, nothing runs"),
        "r": ("/resume", "resume it"),
        "s": ("/stop", "stop it: messages are refused until it is resumed"),
        "w": ("/attach ", "let it work in another folder"),
        "u": ("/use ", "work in a folder from now on"),
        "x": ("/exit", "leave the folder: back to its own home"),
        "d": ("/detach ", "detach a folder from it"),
        "g": ("/prompt", "the system prompt of its newest turn"),
        "y": ("/why", "why it does not go on"),
    }
    keys: ClassVar[Mapping[str, str]] = {key: line.strip() for key, (line, _) in actions.items()}

    def hints(self) -> Mapping[str, str]:
        return {"Esc": "close"}

    async def read(self) -> list[Line]:
        assert self.agent is not None
        found = [Line(f"[{key}] {line.strip():<9} {says}") for key, (line, says) in self.actions.items()]
        found.append(Line(""))
        places = await self.client.workspaces(self.agent)
        found.append(Line("FOLDERS", "quiet"))
        for each in places.get("attached_workspaces", ()):
            mark = ">" if each["active"] else " "
            found.append(Line(cut_line(f"{mark} {each['workspace_id']:<20} {each['workspace_anchor']}", self.room)))
        return found

    def press(self, key: str) -> Wish | None:
        line, _ = self.actions[key]
        if line.endswith(" "):
            return QuestionWish(f"{line.strip()}: ", "", lambda words: CommandWish(f"{line}{words}"))
        return CommandWish(line)
