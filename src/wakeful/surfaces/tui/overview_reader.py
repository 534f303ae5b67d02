"""Reads what stands at the head of the screen: all agents, and more of the selected one."""

from datetime import datetime

from wakeful.surfaces.tui.home_client import HomeClient, Record
from wakeful.surfaces.tui.overview import Overview, overview_of
from wakeful.surfaces.tui.shown_times import ShownTimes

MONEY_SECONDS = 15.0
TREE_LINES = 5


class OverviewReader:
    """The newest answers of the process. Every method raises what the client raises, and changes nothing then."""

    def __init__(self, client: HomeClient, times: ShownTimes) -> None:
        self._client = client
        self._times = times
        self._money: tuple[float, Record, list[Record]] | None = None
        self.overview = Overview()
        self.places: Record = {}
        self.model = ""
        self.tree: list[str] = []

    async def read_all(self) -> None:
        agents = await self._client.agents()
        public, approvals = await self._client.public_agents(), await self._client.approvals()
        timers = await self._client.timers()
        now = self._times.now()
        cost, budgets = await self._read_money(now)
        self.overview = overview_of(agents, public, approvals, timers, cost, budgets, self._times)

    async def read_agent(self, agent: str, turn: str | None) -> None:
        """`turn`: the one whose calls are shown."""
        places, status = await self._client.workspaces(agent), await self._client.agent(agent)
        nodes = (await self._client.tree(turn))["nodes"] if turn is not None else []
        self.places, self.tree = places, tree_lines(nodes)
        self.model = status.get("model", {}).get("effective_model") or ""

    def forget_agent(self) -> None:
        self.places, self.model, self.tree = {}, "", []

    async def _read_money(self, now: datetime) -> tuple[Record, list[Record]]:
        if self._money is None or now.timestamp() - self._money[0] >= MONEY_SECONDS:
            midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
            self._money = now.timestamp(), await self._client.cost_since(midnight), await self._client.budgets()
        return self._money[1], self._money[2]


def tree_lines(nodes: list[Record]) -> list[str]:
    """Calls of a turn, each below the one that made it; `..` is under way."""
    depths: dict[str, int] = {}
    found = []
    for node in nodes:
        depths[node["id"]] = depth = depths.get(node.get("parent_id") or "", 0) + 1
        how = ".." if node.get("is_error") is None else "failed" if node["is_error"] else "ok"
        title = f' "{node["title"]}"' if node.get("title") else ""
        found.append(f"{'   ' * depth}{how} {node['name']}{title} {node.get('args_preview') or ''}")
    return found[-TREE_LINES:]
