"""The turn of the newest message while it runs: the words that its model says, the lines that its commands put out, and
what it used of its budget.

Both come over the stream of the turn's chat, before anything is stored. They are shown until the reply is in the
conversation, and nothing depends on them.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from decimal import Decimal

from wakeful.contracts.errors import WakefulError
from wakeful.service.serving.daemon_client import NoAnswer
from wakeful.surfaces.tui.home_client import HomeClient, Record
from wakeful.surfaces.tui.overview import money
from wakeful.surfaces.tui.screen_text import folded
from wakeful.surfaces.tui.shown_times import ShownTimes
from wakeful.views.presentation.plain_text import counted

MOST_CHARS = 2_000
"""Of the words: their end."""
WORD_LINES = 3
AWAY_SECONDS = 0.5


class LiveTurn:
    """What is heard of the turn that takes a message."""

    def __init__(self, message: str | None = None) -> None:
        self.message = message
        self.turn: str | None = None
        self.is_over = message is None
        self.words = ""
        self._attempt = (0, 0)
        self._call = ""
        """The call whose lines the words are."""

    def take(self, said: Record) -> None:
        """One message of the chat."""
        self.turn = said.get("turn_id") or self.turn
        match said.get("type"):
            case "chunk" if not said.get("depth"):
                attempt = said["step"], said["attempt"]
                before = self.words if attempt == self._attempt else ""
                self._attempt, self.words = attempt, (before + said["content"])[-MOST_CHARS:]
            case "tool_output":
                before = self.words if said["tool_call_id"] == self._call else ""
                self._call, self.words = said["tool_call_id"], (before + said["text"])[-MOST_CHARS:]
            case "tool_call_update" | "turn_suspended":
                self.words, self._call = "", ""
            case "turn_terminal":
                self.words, self.is_over = "", True
            case None:  # an error: nothing follows
                self.words, self.is_over = "", True

    def lines(self, width: int, most: int) -> list[str]:
        """The newest words, or the newest lines of a command: so many at most."""
        shown = folded(self.words.strip(), width - 4)[-min(WORD_LINES, most) :] if self.words and most > 0 else []
        return [f"   {line}" for line in shown]


class TurnListener:
    """Follows the turn of one message, and comes back where it was when the process was away."""

    def __init__(self, client: HomeClient, changed: Callable[[], None]) -> None:
        self._client = client
        self._changed = changed
        self.live = LiveTurn()
        self._task: asyncio.Task[None] | None = None

    def listen_to(self, message: str) -> None:
        """From now on to this one, and to no other."""
        self.stop()
        self.live = LiveTurn(message)
        self._task = asyncio.create_task(self._listen(self.live))

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _listen(self, live: LiveTurn) -> None:
        """Until its turn is over."""
        last: str | None = None
        while live.message is not None and not live.is_over:
            try:
                async with aclosing(self._client.chat(live.message, last)) as events:
                    async for event in events:
                        last = event.id or last
                        live.take(event.data)
                        self._changed()
            except NoAnswer:
                pass
            except WakefulError:
                return  # no turn will take it; the feed tells what became of it
            await asyncio.sleep(AWAY_SECONDS)


class TurnBudget:
    """What a turn used of what it may use, and how long its model has been asked."""

    def __init__(self, client: HomeClient) -> None:
        self._client = client
        self._turn: str | None = None
        self._limits: Record = {}
        self._used = ""
        self._asked_at: float | None = None

    async def read(self, turn: str | None) -> None:
        """Raises what the client raises."""
        if turn is None:
            self._turn, self._used, self._asked_at = None, "", None
            return
        if turn != self._turn:
            self._turn, self._limits, self._used = turn, await self._client.limits(turn), ""
        self._used = budget_line(await self._client.cost_of(turn), self._limits)
        self._asked_at = (await self._client.latency(turn)).get("asked_at")

    def line(self, times: ShownTimes) -> str:
        """`turn $0.11 of $0.50, 17 of 40 calls, thinking 4 s`; blank: nothing is known of it yet."""
        thinks = f", thinking {times.from_now(self._asked_at)}" if self._asked_at is not None else ""
        return f"{self._used}{thinks}" if self._used else ""


def budget_line(cost: Record, limits: Record) -> str:
    """`turn $0.11 of $0.50, 17 of 40 calls`: where something limits it, how much there is."""
    total = cost["total"]
    may_spend = f" of {money(limits['usd'])}" if limits.get("usd") is not None else ""
    spent = f"{money(total['cost'])}{'' if Decimal(total['cost']) or not total.get('unpriced_calls') else ' or more'}"
    calls = total["calls"]
    may_call = limits.get("model_calls")
    called = counted(calls, "call") if may_call is None else f"{calls} of {counted(may_call, 'call')}"
    return f"turn {spent}{may_spend}, {called}"
