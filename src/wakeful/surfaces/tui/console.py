"""The terminal UI: keys, overlays, and the loops that keep the screen up to date.

One loop follows the feed over all agents, one reads the overview again when something happened: neither writes
anything. The third carries out what a person typed, one after the other, so that typing never waits for an answer.
"""

import asyncio
import os
import uuid
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final, NamedTuple

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.css.query import NoMatches
from textual.widgets import Static

from wakeful.contracts.errors import WakefulError
from wakeful.service.serving.daemon_client import NoAnswer
from wakeful.surfaces.tui.approval_overlay import ApprovalOverlay, decision_fields
from wakeful.surfaces.tui.composer import Composer
from wakeful.surfaces.tui.conversation import Activity, AgentConversation, Line
from wakeful.surfaces.tui.detail_overlays import CostOverlay, OutputOverlay
from wakeful.surfaces.tui.feed_follower import FeedFollower
from wakeful.surfaces.tui.home_client import HomeClient
from wakeful.surfaces.tui.live_turn import TurnBudget, TurnListener
from wakeful.surfaces.tui.overlays import (
    ActionsOverlay,
    AgentsOverlay,
    EventsOverlay,
    HelpOverlay,
    Overlay,
    TasksOverlay,
    TextOverlay,
    TranscriptOverlay,
    content_of,
)
from wakeful.surfaces.tui.overview import Overview, OverviewReader, cut_line, place_line, tree_lines
from wakeful.surfaces.tui.screen_text import cut, folded, harmless
from wakeful.surfaces.tui.shown_times import ShownTimes
from wakeful.surfaces.tui.slash_commands import NO_AGENT, act, read_line
from wakeful.surfaces.tui.wishes import CommandWish, DecisionWish, QuestionWish, Wish
from wakeful.views.presentation.display_modes import DisplayMode, display_mode

REFRESH_SECONDS = 5.0
TICK_SECONDS = 1.0
"""How often it is shown anew how long something has been going on."""
MOST_ACTIVITY = 6
"""Lines about the turn that runs, on a small screen."""
SETTLE_SECONDS = 0.2
"""Between two readings of the overview, however much happens."""
KEYS = (
    "Enter send  Tab agent  F1 help  F2 agents  F3 transcript  F4 tasks  F5 events  F6 approvals  F7 actions  F8 cost"
)
SHORT_KEYS = "Enter send  Tab agent  F1 help  F3 transcript  F4 tasks  F5 events  F6 approve"
PANES: Final[Mapping[str, type[Overlay] | None]] = {
    "help": HelpOverlay,
    "agents": None,
    "transcript": TranscriptOverlay,
    "tasks": TasksOverlay,
    "events": EventsOverlay,
    "approvals": ApprovalOverlay,
    "actions": ActionsOverlay,
    "cost": CostOverlay,
}
"""Behind F1 to F8. The list of agents is made from what the head shows."""
Act = Coroutine[Any, Any, None]


class Question(NamedTuple):
    """The composer asks for something else than a message."""

    label: str
    answer: Callable[[str], Wish]
    draft: str
    """What was being typed before."""


class Console(App[None]):
    """The terminal UI of a home."""

    TITLE = "wakeful"
    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = "console.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q,ctrl+c,ctrl+d", "quit", show=False, priority=True)]

    def __init__(
        self,
        client: HomeClient,
        *,
        agent: str | None = None,
        mode: DisplayMode = "info",
        times: ShownTimes | None = None,
    ) -> None:
        super().__init__(ansi_color="NO_COLOR" in os.environ)  # else greys are colours to a terminal
        self.client = client
        self.mode: DisplayMode = mode
        self.selected = agent
        self.question: Question | None = None
        self.overlays: list[Overlay] = []
        self.notice = ""
        self.is_connected = False
        self._times = times or ShownTimes()
        self._reader = OverviewReader(client, self._times)
        self._heard = TurnListener(client, self._draw_words)
        self._budget = TurnBudget(client)
        self._feed = FeedFollower(client, heard=self._hear, connected=self._connect, failed=self._say)
        self._stale = asyncio.Event()
        self._acts: asyncio.Queue[Act] = asyncio.Queue()
        self._unanswered: dict[tuple[str, str], str] = {}
        """Keys of messages whose answer was lost: sent again, they are taken once."""

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        yield Static(id="table")
        yield Static(id="place")
        with Vertical(id="stage"), VerticalScroll(id="talk", can_focus=False):
            yield Static(id="lines")
        yield Static(id="activity")
        yield Static(id="notice")
        with Horizontal(id="line"):
            yield Static(id="label")
            yield Composer(self._steer)
        yield Static(id="keys")

    def on_mount(self) -> None:
        self.query_one("#talk", VerticalScroll).anchor()
        self.composer.claimed = self._claimed
        self.composer.focus()
        for loop in (self._feed.follow(), self._keep_overview(), self._carry_out_all()):
            self.run_worker(loop)
        self.set_interval(TICK_SECONDS, self._draw_words)
        self._draw()

    async def on_unmount(self) -> None:
        self._heard.stop()
        await self.client.close()

    def on_resize(self) -> None:
        self._draw()

    # What is open

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    @property
    def overview(self) -> Overview:
        return self._reader.overview

    @property
    def conversation(self) -> AgentConversation:
        return self._feed.conversation(self.selected or "")

    @property
    def activity(self) -> Activity:
        return self._feed.activity(self.selected or "")

    # The loops

    def _hear(self) -> None:
        with suppress(NoMatches):  # the screen is gone
            self._draw_talk()
        self._stale.set()

    async def _keep_overview(self) -> None:
        while True:
            self._stale.clear()
            try:
                await self._read_overview()
            except NoAnswer:
                pass
            except WakefulError as error:
                self._say(error)
            await asyncio.sleep(SETTLE_SECONDS)
            try:
                await asyncio.wait_for(self._stale.wait(), REFRESH_SECONDS)
            except TimeoutError:
                pass

    async def _read_overview(self) -> None:
        await self._reader.read_all()
        names = self.overview.names
        if names and self.selected not in names:
            if self.selected is not None:
                self._tell(f"there is no agent {self.selected!r}; there are: {', '.join(names)}")
            self.selected = names[0]
        await self._read_selected()
        for overlay in list(self.overlays):
            await overlay.load(self.selected)
        self._draw()

    async def _read_selected(self) -> None:
        if (agent := self.selected) is not None:
            await self._reader.read_agent(agent, self.activity.turn if self.mode != "info" else None)
            await self._budget.read(self._heard.live.turn if self.activity.words else None)
            if agent != self.selected:  # it was changed meanwhile
                self._reader.forget_agent()

    async def _carry_out_all(self) -> None:
        while True:
            act = await self._acts.get()
            try:
                await act
            except WakefulError as error:
                self._say(error)
            self._stale.set()

    def _connect(self, is_connected: bool) -> None:
        if is_connected != self.is_connected:
            self.is_connected = is_connected
            self._stale.set()
        self._draw()

    # Keys: each is done with before the next one is looked at

    def _claimed(self) -> frozenset[str]:
        return self.overlays[-1].letters if self.overlays and self.question is None else frozenset()

    def _steer(self, key: str) -> None:
        match key:
            case "enter":
                self._submit(self.composer.take())
            case "escape":
                self._close_newest()
            case "tab" | "shift+tab":
                self._go_on(1 if key == "tab" else -1)
            case "up" | "down" | "pageup" | "pagedown":
                self._move(key)
            case _ if len(key) > 1:
                self._type(f"/{list(PANES)[int(key[1:]) - 1]}")
            case _:
                self._wish(self.overlays[-1].press(key))
        self._draw()

    def _submit(self, text: str) -> None:
        if self.question is not None:
            question, self.question = self.question, None
            self.composer.put(question.draft)
            self._wish(question.answer(text))
        elif text.strip():
            self._type(text)
        elif self.overlays:
            newest = self.overlays[-1]
            self._wish(newest.choose())
            self._load_where_stale(newest)

    def _close_newest(self) -> None:
        if self.question is not None:
            self.composer.put(self.question.draft)
            self.question = None
        elif self.overlays:
            self.overlays.pop().remove()
        else:
            self.notice = ""

    def _go_on(self, step: int) -> None:
        names = self.overview.names
        if names:
            now = names.index(self.selected) if self.selected in names else 0
            self._select(names[(now + step) % len(names)])

    def _move(self, key: str) -> None:
        if self.overlays:
            newest = self.overlays[-1]
            newest.move(key)
            self._load_where_stale(newest)
            return
        talk = self.query_one("#talk", VerticalScroll)
        moves: dict[str, Callable[..., Any]] = {
            "up": talk.scroll_up,
            "down": talk.scroll_down,
            "pageup": talk.scroll_page_up,
            "pagedown": talk.scroll_page_down,
        }
        moves[key](animate=False)

    def _load_where_stale(self, overlay: Overlay) -> None:
        if overlay.is_stale:
            self._acts.put_nowait(overlay.load(self.selected))

    def _wish(self, wish: Wish | None) -> None:
        match wish:
            case QuestionWish(label, initial, answer):
                self.question = Question(label, answer, self.composer.text)
                self.composer.put(initial)
            case CommandWish(line):
                self._type(line)
            case DecisionWish():
                self._acts.put_nowait(self._decide(wish))
            case None:
                return

    def _type(self, line: str) -> None:
        """A line that was typed: a message, or a command."""
        self.notice = ""
        try:
            typed = read_line(line)
            if typed.command:
                self._run_command(typed.command, typed.words)
                return
        except WakefulError as error:
            self._keep(line)
            self._say(error)
            return
        if self.selected is None:
            self._keep(line)
            self._tell(NO_AGENT)
            return
        self.activity.begin(None)
        self._reader.tree = []
        self._acts.put_nowait(self._send(self.selected, typed.words, line))

    def _run_command(self, name: str, words: str) -> None:
        match name:
            case "quit":
                self.exit()
            case "display":
                self.mode = display_mode(words)
            case "agent":
                if words not in self.overview.names:
                    self._tell(f"there is no agent {words!r}; there are: {', '.join(self.overview.names)}")
                    return
                while self.overlays:
                    self.overlays.pop().remove()
                self._select(words)
            case "agents":
                self._open(AgentsOverlay(self.client, self._times, lambda: self.overview))
            case _ if (pane := PANES.get(name)) is not None:
                self._open(pane(self.client, self._times))
            case "output":
                self._open(OutputOverlay(self.client, self._times, words))
            case _ if self.selected is None:
                self._tell(NO_AGENT)
            case "now":
                self._acts.put_nowait(self._send(self.selected, words, f"/now {words}", "interject"))
            case _:
                self._acts.put_nowait(self._act(self.selected, name, words))

    def _open(self, overlay: Overlay) -> None:
        for other in [each for each in self.overlays if type(each) is type(overlay)]:
            self.overlays.remove(other)
            other.remove()
        self.overlays.append(overlay)
        self.query_one("#stage").mount(overlay)
        self._acts.put_nowait(overlay.load(self.selected))

    def _select(self, name: str) -> None:
        self.selected = name
        self._reader.forget_agent()
        self._acts.put_nowait(self._read_conversation(name))

    # Acts: each speaks to the process

    async def _send(self, agent: str, text: str, line: str, priority: str = "normal") -> None:
        activity = self._feed.activity(agent)
        key = self._unanswered.setdefault((agent, text), f"tui-{uuid.uuid4().hex}")
        try:
            found = await self.client.send(agent, text, key, priority)
        except WakefulError as error:
            if priority == "normal":
                activity.give_up()
            self._keep(line)
            if not isinstance(error, NoAnswer):
                del self._unanswered[agent, text]
            raise
        del self._unanswered[agent, text]
        if priority == "normal":
            activity.name(found["message_id"])
        self._draw()

    async def _decide(self, decided: DecisionWish) -> None:
        try:
            fields = decision_fields(decided.how, decided.fields)
        except ValueError as error:
            self._tell(str(error))
            return
        await self.client.decide(decided.approval, decided.how, **fields)

    async def _act(self, agent: str, name: str, words: str) -> None:
        told = await act(self.client, agent, name, words)
        if told.heading:
            self._open(TextOverlay(self.client, self._times, told.heading, told.words))
            self._draw()
        else:
            self._tell(told.words)

    async def _read_conversation(self, name: str) -> None:
        known = self._feed.conversation(name)
        for entry in await self.client.tail(name):
            known.take(entry)
        await self._read_selected()
        self._draw()

    # Drawing

    def _keep(self, line: str) -> None:
        """Nothing that was typed is lost."""
        if not self.composer.text:
            self.composer.put(line)

    def _say(self, error: WakefulError) -> None:
        self._tell(f"{error.message}. {error.hint}" if error.hint else error.message)

    def _tell(self, words: str) -> None:
        self.notice = words
        self._draw()

    def _draw(self) -> None:
        try:
            self._draw_head()
            self._draw_talk()
            width = self.size.width
            self.query_one("#talk").display = not self.overlays
            for number, overlay in enumerate(self.overlays, start=1):
                overlay.display = number == len(self.overlays)
            self._put("#notice", "\n   ".join(folded(f" ! {self.notice}", width - 4)))
            self.query_one("#notice").display = bool(self.notice)
            label = self.question.label if self.question is not None else f"to {cut(self.selected or 'nobody', 16)}: "
            self._put("#label", f" > {label}")
            self._put("#keys", cut_line(f" {KEYS if width > len(KEYS) else SHORT_KEYS}", width))
        except NoMatches:  # before the screen is there, or when it is gone
            return

    def _draw_head(self) -> None:
        width, height = self.size
        right = f"{self._times.now():%a %H:%M} " if self.is_connected else "daemon away, reconnecting "
        self._put("#head", self.overview.head(width, right))
        rows = self.overview.table(width, self.selected, max(1, min(6, height // 4)))
        self._put("#table", "\n".join(rows) if self.overview.rows else f" {NO_AGENT}")
        places = self._reader.places
        self._put("#place", f" {place_line(places, self._reader.model, width - 2)}" if places else "")

    def _draw_talk(self) -> None:
        lines = self.conversation.lines(self.mode, self.size.width - 3, self._times)
        empty = [Line("nothing was said yet", "quiet")] if self.selected is not None else []
        self.query_one("#lines", Static).update(content_of(lines or empty))
        self._draw_activity()

    def _draw_words(self) -> None:
        if self.activity.words and self.activity.message == self._heard.live.message:
            with suppress(NoMatches):  # the screen is gone
                self._draw_activity()

    def _draw_activity(self) -> None:
        words, message = self.activity.words, self.activity.message
        if words and message is not None and message != self._heard.live.message:
            self._heard.listen_to(message)
        width, height = self.size
        lines = [f" {self.selected} .. {words}"] if words else []
        tree = tree_lines(self._reader.tree, width - 1, self._times) if words else []
        room = max(MOST_ACTIVITY, height // 4)
        live: list[str] = []
        if lines and message == self._heard.live.message:
            budget = self._budget.line(self._times)
            lines += [f"   {budget}"] if budget else []
            live = self._heard.live.lines(width, room - len(lines) - min(len(tree), 2))
        shown = max(0, room - len(lines) - len(live))
        lines += (tree[-shown:] if shown else []) + live
        self._put("#activity", "\n".join(cut_line(harmless(line), self.size.width - 1) for line in lines))
        self.query_one("#activity").display = bool(lines)

    def _put(self, where: str, text: str) -> None:
        self.query_one(where, Static).update(Content(text))
