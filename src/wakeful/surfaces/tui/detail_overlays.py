"""Panes with more of one thing: what was spent, and what a task has put out."""

from typing import Final

from wakeful.surfaces.tui.conversation import Line
from wakeful.surfaces.tui.home_client import HomeClient, Record
from wakeful.surfaces.tui.overlays import Overlay
from wakeful.surfaces.tui.overview import cut_line, money, spent_of
from wakeful.surfaces.tui.screen_text import folded, padded
from wakeful.surfaces.tui.shown_times import ShownTimes
from wakeful.views.presentation.plain_text import counted, short

NAME: Final = 30


class CostOverlay(Overlay):
    """What was spent today, by agent and by model, and the windows that limit it."""

    heading = "Cost today"
    needs_agent = False

    @property
    def title(self) -> str:
        return self.heading

    async def read(self) -> list[Line]:
        by_agent, by_model = await self.client.cost_today("agent"), await self.client.cost_today("model")
        found = [Line("AGENT", "quiet"), *self._groups(by_agent)]
        found += [Line("MODEL", "quiet"), *self._groups(by_model), Line("LIMITS", "quiet")]
        limits = [self._limit(each) for each in await self.client.budgets()]
        found += limits or [Line("  none; set one: per_day in the agent's file, or budget of wakeful.toml")]
        total = by_agent["total"]
        found += [Line(""), Line(f"total {money(spent_of(total))}, {counted(total['calls'], 'call')}", "you")]
        if float(total.get("cut_off", "0")):
            found.append(Line(f"of it {money(total['cut_off'])} held for requests that were cut off"))
        if total.get("unpriced_calls"):
            many = counted(total["unpriced_calls"], "call")
            found.append(Line(f"{many} without a known price: the true total is higher"))
        return found

    def _groups(self, cost: Record) -> list[Line]:
        rows = sorted(cost["groups"].items(), key=lambda row: spent_of(row[1]), reverse=True)
        shown = [
            f"  {padded(name, NAME)} {money(spent_of(row)):>9}  {counted(row['calls'], 'call')}, "
            f"{row['input_tokens']:,} in, {row['output_tokens']:,} out"
            for name, row in rows
        ]
        return [Line(cut_line(each, self.room)) for each in shown] or [Line("  nothing yet")]

    def _limit(self, row: Record) -> Line:
        most = float(row["limit_usd"]) + float(row["granted_usd"])
        words = f"  {padded(row['scope'], NAME)} {money(row['spent_usd']):>9} of {money(most)} a {row['window']}"
        return Line(cut_line(words, self.room))


class OutputOverlay(Overlay):
    """Both ends of what a task has put out so far."""

    def __init__(self, client: HomeClient, times: ShownTimes, task: str) -> None:
        super().__init__(client, times)
        self._named = task
        self.anchor()  # at what it says now

    needs_agent = False

    @property
    def title(self) -> str:
        return f"Output: {short(self._named)}"

    async def read(self) -> list[Line]:
        found = await self.client.output(self._named)
        ended = f", exit status {found['exit_status']}" if found.get("exit_status") is not None else ""
        head = Line(
            cut_line(f"{found['status']}{ended}  {found.get('result_summary') or ''}".rstrip(), self.room), "quiet"
        )
        said = [Line(line) for line in folded(found["output"], self.room)] if found["output"] else []
        return [head, *(said or [Line("nothing yet")])]
