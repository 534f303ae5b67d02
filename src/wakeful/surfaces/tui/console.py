"""The terminal UI: keys, overlays, and the two loops that keep the screen up to date.

One loop follows the feed over all agents and comes back with its cursor when the process was away. The other reads
the overview again when something happened. Neither writes anything; a person's keys do, through the client.
"""

import asyncio
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.css.query import NoMatches
from textual.message import Message
from textual.widgets import Static

from wakeful.contracts.errors import WakefulError
from wakeful.service.serving.control import ControlRefused, NoAnswer
from wakeful.surfaces.tui.approval_overlay import ApprovalOverlay, decision_fields
from wakeful.surfaces.tui.composer import Composer
from wakeful.surfaces.tui.conversation import Activity, Conversation, Line, ShownTime
from wakeful.surfaces.tui.home_client import HomeClient, Record
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
from wakeful.surfaces.tui.overview import Overview, cut_line, overview_of, place_line
from wakeful.surfaces.tui.screen_text import cut, folded, harmless
from wakeful.surfaces.tui.slash_commands import read_line
from wakeful.views.presentation.display_modes import DisplayMode, display_mode
from wakeful.views.presentation.feed_entries import FeedEntry

REFRESH_SECONDS = 5.0
SETTLE_SECONDS = 0.2
"""Between two readings of the overview, however much happens."""
MONEY_SECONDS = 15.0
AWAY_SECONDS = 0.5
KEYS = "Enter send  Tab agent  F1 help  F2 agents  F3 transcript  F4 tasks  F5 events  F6 approvals  F7 actions"
SHORT_KEYS = "Enter send  Tab agent  F1 help  F3 transcript  F4 tasks  F5 events  F6 approve"
TREE_LINES = 5


class Question(NamedTuple):
    """The composer asks for something else than a message."""

    label: str
    answer: Callable[[str], Message]
    draft: str
    """What was being typed before."""


class Console(App[None]):
    """The terminal UI of a home."""

    TITLE = "wakeful"
    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = "console.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "next_agent(1)", show=False, priority=True),
        Binding("shift+tab", "next_agent(-1)", show=False, priority=True),
        Binding("escape", "close_newest", show=False, priority=True),
        Binding("ctrl+q,ctrl+c,ctrl+d", "quit", show=False, priority=True),
        *(
            Binding(f"f{number}", f"command('/{name}')", show=False, priority=True)
            for number, name in enumerate(
                ("help", "agents", "transcript", "tasks", "events", "approvals", "actions"), start=1
            )
        ),
    ]

    def __init__(
        self,
        client: HomeClient,
        *,
        agent: str | None = None,
        mode: DisplayMode = "info",
        shown_time: ShownTime | None = None,
        clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        super().__init__()
        self.client = client
        self.mode: DisplayMode = mode
        self.selected = agent
        self.overview = Overview()
        self.question: Question | None = None
        self.notice = ""
        self.is_connected = False
        self._shown_time = shown_time or ShownTime()
        self._clock = clock
        self._conversations: dict[str, Conversation] = {}
        self._activities: dict[str, Activity] = {}
        self._cursor: str | None = None
        self._begun = False
        self._stale = asyncio.Event()
        self._places: Record = {}
        self._model = ""
        self._money: tuple[float, Record, list[Record]] | None = None
        self._tree: list[str] = []
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
            yield Composer()
        yield Static(id="keys")

    def on_mount(self) -> None:
        self.query_one("#talk", VerticalScroll).anchor()
        self.composer.focus()
        self.run_worker(self._follow(), group="feed")
        self.run_worker(self._keep_overview(), group="overview")
        self._draw()

    async def on_unmount(self) -> None:
        await self.client.close()

    def on_resize(self) -> None:
        self._draw()

    # What is open

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    @property
    def overlays(self) -> list[Overlay]:
        return list(self.query(Overlay))

    @property
    def conversation(self) -> Conversation:
        name = self.selected or ""
        return self._conversations.setdefault(name, Conversation(name))

    @property
    def activity(self) -> Activity:
        return self._activities.setdefault(self.selected or "", Activity())

    # The loops

    async def _follow(self) -> None:
        while True:
            try:
                if not self._begun:
                    for entry in await self.client.tail():
                        self._take(entry)
                    self._begun = True
                self._connect(True)
                async for entry in self.client.feed(self._cursor):
                    self._take(entry)
                    self._draw_talk()
                    self._stale.set()
            except NoAnswer:
                pass
            except ControlRefused as refused:
                if refused.status == 410:  # the feed no longer has what comes after the cursor
                    self._begun, self._cursor = False, None
                else:
                    self._say(refused)
            except WakefulError as error:
                self._say(error)
            self._connect(False)
            await asyncio.sleep(AWAY_SECONDS)

    def _take(self, entry: FeedEntry) -> None:
        name = entry.envelope.agent_id
        self._cursor = entry.cursor
        self._conversations.setdefault(name, Conversation(name)).take(entry)
        self._activities.setdefault(name, Activity()).take(entry)

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
        agents = await self.client.agents()
        public, approvals, timers = (
            await self.client.public_agents(),
            await self.client.approvals(),
            await self.client.timers(),
        )
        now = self._clock()
        cost, budgets = await self._read_money(now)
        self.overview = overview_of(agents, public, approvals, timers, cost, budgets, now)
        if self.selected is None and self.overview.names:
            self.selected = self.overview.names[0]
        elif self.selected is not None and self.selected not in self.overview.names and self.overview.names:
            self._tell(f"there is no agent {self.selected!r}; it has: {', '.join(self.overview.names)}")
            self.selected = self.overview.names[0]
        await self._read_selected()
        for overlay in self.overlays:
            await overlay.load(self.selected)
        self._draw()

    async def _read_money(self, now: datetime) -> tuple[Record, list[Record]]:
        if self._money is None or now.timestamp() - self._money[0] >= MONEY_SECONDS:
            midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
            self._money = now.timestamp(), await self.client.cost_since(midnight), await self.client.budgets()
        return self._money[1], self._money[2]

    async def _read_selected(self) -> None:
        if self.selected is None:
            return
        self._places = await self.client.workspaces(self.selected)
        self._model = (await self.client.agent(self.selected)).get("model", {}).get("effective_model") or ""
        turn = self.activity.turn
        tree = await self.client.tree(turn) if turn is not None and self.mode != "info" else {"nodes": []}
        self._tree = _tree_lines(tree["nodes"]) if self.activity.turn == turn else []

    def _connect(self, is_connected: bool) -> None:
        if is_connected != self.is_connected:
            self.is_connected = is_connected
            self._stale.set()
        self._draw()

    # What a person does

    @on(Composer.Submitted)
    async def _submitted(self, event: Composer.Submitted) -> None:
        if self.question is not None:
            question, self.question = self.question, None
            self._restore(question.draft)
            self.post_message(question.answer(event.text))
            return
        if not event.text.strip():
            if self.overlays:
                self.overlays[-1].choose()
            return
        await self._carry_out(event.text)

    @on(Composer.Pressed)
    def _pressed(self, event: Composer.Pressed) -> None:
        if self.overlays:
            self.overlays[-1].press(event.key)

    @on(Composer.Moved)
    def _moved(self, event: Composer.Moved) -> None:
        if self.overlays:
            self.overlays[-1].move(event.key)
            return
        talk = self.query_one("#talk", VerticalScroll)
        moves: dict[str, Callable[..., Any]] = {
            "up": talk.scroll_up,
            "down": talk.scroll_down,
            "pageup": talk.scroll_page_up,
            "pagedown": talk.scroll_page_down,
        }
        moves[event.key](animate=False)

    @on(Overlay.Wants)
    async def _wanted(self, event: Overlay.Wants) -> None:
        await self._carry_out(event.line)

    @on(Overlay.Asks)
    def _asked(self, event: Overlay.Asks) -> None:
        self.question = Question(event.label, event.answer, self.composer.text)
        self._restore(event.initial)

    @on(ApprovalOverlay.Decided)
    async def _decided(self, event: ApprovalOverlay.Decided) -> None:
        try:
            await self.client.decide(event.approval, event.how, **decision_fields(event.how, event.fields))
            self._tell("")
        except ValueError as error:
            self._tell(str(error))
        except WakefulError as error:
            self._say(error)
        self._stale.set()

    async def action_command(self, line: str) -> None:
        await self._carry_out(line)

    async def action_next_agent(self, step: int) -> None:
        names = self.overview.names
        if names:
            now = names.index(self.selected) if self.selected in names else 0
            await self._select(names[(now + step) % len(names)])

    async def action_close_newest(self) -> None:
        """The newest thing that is open goes first."""
        if self.question is not None:
            draft, self.question = self.question.draft, None
            self._restore(draft)
        elif self.overlays:
            await self.overlays[-1].remove()
        elif self.notice:
            self.notice = ""
        self._draw()

    # Commands

    async def _carry_out(self, line: str) -> None:
        self._tell("")
        try:
            typed = read_line(line)
            if typed.command:
                await self._run_command(typed.command, typed.words)
            else:
                await self._send(typed.words)
        except WakefulError as error:
            if not self.composer.text:
                self._restore(line)  # nothing that was typed is lost
            self._say(error)
        self._stale.set()

    async def _run_command(self, name: str, words: str) -> None:
        match name:
            case "quit":
                self.exit()
            case "display":
                self.mode = display_mode(words)
                self._draw()
            case "agent":
                if words not in self.overview.names:
                    self._tell(f"there is no agent {words!r}; there are: {', '.join(self.overview.names)}")
                    return
                await self._close_overlays()
                await self._select(words)
            case "help":
                await self._open(HelpOverlay(self.client, self._shown_time))
            case "agents":
                await self._open(AgentsOverlay(self.client, self._shown_time, self._agent_rows))
            case "transcript":
                await self._open(TranscriptOverlay(self.client, self._shown_time))
            case "tasks":
                await self._open(TasksOverlay(self.client, self._shown_time))
            case "events":
                await self._open(EventsOverlay(self.client, self._shown_time))
            case "approvals":
                await self._open(ApprovalOverlay(self.client, self._shown_time))
            case "actions":
                await self._open(ActionsOverlay(self.client, self._shown_time))
            case _:
                await self._act(name, words)

    async def _act(self, name: str, words: str) -> None:
        """Commands that are about the selected agent."""
        agent = self.selected
        if agent is None:
            self._tell("there is no agent yet; make one: wakeful agent create NAME")
            return
        match name:
            case "pause" | "resume" | "stop":
                await self.client.control(agent, name)
                self._tell(f"{agent}: {name} was accepted")
            case "attach":
                await self.client.attach(agent, words)
                self._tell(f"{agent} may work in {words}")
            case "use":
                fields = {"path": words} if "/" in words or words.startswith(("~", ".")) else {"workspace_id": words}
                self._places = await self.client.use(agent, **fields)
                self._tell(f"{agent} works in {words} from its next turn on")
            case "exit":
                self._places = await self.client.use(agent, workspace_id="agent_home")
                self._tell(f"{agent} works in its own home from its next turn on")
            case "detach":
                await self.client.detach(agent, words)
                self._tell(f"{words} was taken from {agent}")
            case "why":
                await self._show(f"Why: {agent}", (await self.client.why(agent))["sentence"])
            case _:
                turn = await self.client.newest_turn(agent)
                if turn is None:
                    self._tell(f"{agent} had no turn yet")
                else:
                    found = await self.client.prompt(turn["turn_id"])
                    await self._show(f"Prompt: {agent}, {turn['turn_id']}", found["system_prompt"])

    async def _send(self, text: str) -> None:
        if self.selected is None:
            self._restore(text)
            self._tell("there is no agent yet; make one: wakeful agent create NAME")
            return
        agent, activity = self.selected, self.activity
        key = self._unanswered.setdefault((agent, text), f"tui-{uuid.uuid4().hex}")
        activity.begin(None)
        self._tree = []
        self._draw_activity()
        try:
            found = await self.client.send(agent, text, key)
        except NoAnswer:
            activity.give_up()
            raise
        except WakefulError:
            activity.give_up()
            del self._unanswered[agent, text]
            raise
        del self._unanswered[agent, text]
        activity.name(found["message_id"])
        self._draw_activity()

    async def _select(self, name: str) -> None:
        self.selected, self._tree, self._places = name, [], {}
        self._draw()
        try:
            for entry in await self.client.tail(name):
                self.conversation.take(entry)
            await self._read_selected()
            for overlay in self.overlays:
                await overlay.load(name)
        except WakefulError as error:
            self._say(error)
        self._draw()

    async def _open(self, overlay: Overlay) -> None:
        for other in self.overlays:
            if type(other) is type(overlay) and not isinstance(overlay, TextOverlay):
                await other.remove()
        await self.query_one("#stage").mount(overlay)
        await overlay.load(self.selected)
        self._draw()

    async def _show(self, heading: str, text: str) -> None:
        await self._open(TextOverlay(self.client, self._shown_time, heading, text))

    async def _close_overlays(self) -> None:
        for overlay in self.overlays:
            await overlay.remove()

    def _agent_rows(self, width: int, selected: str | None) -> list[str]:
        return self.overview.table(width, selected, len(self.overview.rows) or 1)

    # Drawing

    def _restore(self, text: str) -> None:
        self.composer.text = text
        self.composer.move_cursor(self.composer.document.end)
        self._draw()

    def _say(self, error: WakefulError) -> None:
        self._tell(f"{error.message}. {error.hint}" if error.hint else error.message)

    def _tell(self, words: str) -> None:
        self.notice = words
        self._draw()

    def _draw(self) -> None:
        try:
            width, height = self.size
            overlays = self.overlays
            at = f"{self._clock():%a %H:%M}"
            right = f"{at} " if self.is_connected else "daemon away, reconnecting "
            self._put("#head", self.overview.head(width, right))
            rows = self.overview.table(width, self.selected, max(1, min(6, height // 4)))
            self._put("#table", "\n".join(rows) if self.overview.rows else " no agents yet: wakeful agent create NAME")
            places = self._places and place_line(self._places, self._model, width - 2)
            self._put("#place", f" {places}" if places else "")
            self.query_one("#talk").display = not overlays
            for number, overlay in enumerate(overlays, start=1):
                overlay.display = number == len(overlays)
            self._draw_talk()
            self._draw_activity()
            self._put("#notice", "\n   ".join(folded(f" ! {self.notice}", width - 4)))
            self.query_one("#notice").display = bool(self.notice)
            label = self.question.label if self.question is not None else f"to {cut(self.selected or 'nobody', 16)}: "
            self._put("#label", f" > {label}")
            top = overlays[-1] if overlays else None
            claimed = top.letters if isinstance(top, ApprovalOverlay) else frozenset(top.keys if top else ())
            self.composer.claimed = claimed if self.question is None else frozenset()
            self._put("#keys", " " + (cut_line(KEYS, width - 1) if width > len(KEYS) else SHORT_KEYS)[: width - 1])
        except NoMatches:  # before the screen is there, or when it is gone
            return

    def _draw_talk(self) -> None:
        width = self.size.width - 3
        lines = self.conversation.lines(self.mode, width, self._shown_time)
        empty = [Line("nothing was said yet", "quiet")] if self.selected is not None else []
        self.query_one("#lines", Static).update(content_of(lines or empty))
        self._draw_activity()

    def _draw_activity(self) -> None:
        words = self.activity.words
        lines = [f" {self.selected} .. {words}", *self._tree] if words else []
        width = self.size.width - 1
        self._put("#activity", "\n".join(cut_line(harmless(line), width) for line in lines))
        self.query_one("#activity").display = bool(lines)

    def _put(self, where: str, text: str) -> None:
        self.query_one(where, Static).update(Content(text))


def _tree_lines(nodes: list[Record]) -> list[str]:
    """Calls of a turn, each below the one that made it; those that run are not ended."""
    depths: dict[str, int] = {}
    found = []
    for node in nodes:
        depths[node["id"]] = depth = depths.get(node.get("parent_id") or "", 0) + 1
        how = ".." if node.get("is_error") is None else "failed" if node["is_error"] else "ok"
        title = f' "{node["title"]}"' if node.get("title") else ""
        found.append(f"{'   ' * depth}{how} {node['name']}{title} {node.get('args_preview') or ''}")
    return found[-TREE_LINES:]
