"""All agents at a glance: how many, what needs somebody, the money of today, a row for each, and more of one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias

from wakeful.surfaces.tui.home_client import MOST_AGENTS, HomeClient, Record
from wakeful.surfaces.tui.screen_text import cut, cut_middle, padded
from wakeful.surfaces.tui.shown_times import ShownTimes, span
from wakeful.views.presentation.plain_text import counted

STATES: Final = {
    "booting": "starts",
    "awake_idle": "ready",
    "awake_running": "working",
    "awaiting_task": "waits for a task",
    "asleep": "asleep",
    "paused": "PAUSED",
    "stopped": "STOPPED",
}
BY_ITSELF: Final = ("operator", "runtime")
"""Causes of a pause that no person has to mend, as `wakeful status` has it."""
Widths: TypeAlias = tuple[int, int, int, int]
COLUMNS: Final[Widths] = (14, 20, 18, 9)
"""Agent, state, next, today in 80 columns; the last column has the rest."""
NARROW: Final = 80

MONEY_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent, as the table shows it."""

    name: str
    state: str
    next: str = ""
    today: str = ""
    last: str = ""
    depth: int = 0
    """Of agents that other agents made."""

    @property
    def indent(self) -> str:
        return "  " * (self.depth - 1) + "└ " if self.depth else ""

    def line(self, width: int, *, is_selected: bool, columns: Widths = COLUMNS) -> str:
        name, state, following, today = columns
        mark = ">" if is_selected else " "
        indent = self.indent
        cells = (
            (indent + padded(cut_middle(self.name, max(name - len(indent), 1)), name - len(indent)))[:name],
            padded(self.state, state),
            padded(self.next, following),
            padded(self.today, today),
        )
        return cut_line(f"{mark}{' '.join(cells)} {self.last}", width)


@dataclass(frozen=True, slots=True)
class Overview:
    """What the head of the screen says."""

    rows: tuple[AgentRow, ...] = ()
    approvals: tuple[Record, ...] = ()
    paused: int = 0
    """Agents that cannot go on until a person has mended something."""
    spent: str = ""
    names: tuple[str, ...] = field(default=())

    def head(self, width: int, right: str) -> str:
        many = f"{MOST_AGENTS} agents or more" if len(self.rows) >= MOST_AGENTS else counted(len(self.rows), "agent")
        needs = f"{len(self.approvals)} NEEDS YOU (F6)" if self.approvals else "nothing needs you"
        if self.paused:
            needs = f"{needs}   {self.paused} PAUSED" if self.approvals else f"{self.paused} PAUSED: needs you"
        said, room = [each for each in (many, needs, self.spent) if each], width - len(right) - 1
        ways = ["   ".join([" wakeful", *said]), "  ".join([" wakeful", *said]), " " + "  ".join(said)]
        left = next((each for each in ways if len(each) <= room), ways[-1])
        return f"{cut_line(left, room):<{room}} {right}" if room > len(left) // 2 else cut_line(left, width)

    def table(self, width: int, selected: str | None, most: int) -> list[str]:
        """Rows round the selected one."""
        where = next((number for number, row in enumerate(self.rows) if row.name == selected), 0)
        first = max(0, min(where - most // 2, len(self.rows) - most))
        shown = self.rows[first : first + most]
        heading, columns = AgentRow("AGENT", "STATE", "NEXT", "TODAY", "LAST"), self._columns(width)
        lines = [heading.line(width, is_selected=False, columns=columns)]
        return lines + [row.line(width, is_selected=row.name == selected, columns=columns) for row in shown]

    def _columns(self, width: int) -> Widths:
        """A wide screen gives its room to names and states that need it."""
        name, state, following, today = COLUMNS
        room = max(0, width - NARROW)
        longer = max((len(row.indent + row.name) for row in self.rows), default=0) - name
        told = max((len(row.state) for row in self.rows), default=0) - state
        name += max(0, min(longer, room // 2))
        return name, state + max(0, min(told, room - room // 2)), following, today


def cut_line(text: str, width: int) -> str:
    """One line of so many columns; blanks stay as they are."""
    return text if len(text) <= width else text[: width - 1] + "…"


def overview_of(
    agents: Sequence[Record],
    public: Sequence[Record],
    approvals: Sequence[Record],
    timers: Sequence[Record],
    cost: Record,
    budgets: Sequence[Record],
    times: ShownTimes,
) -> Overview:
    """From the answers of the process."""
    briefs = {each["identity"]["agent_id"]: each.get("last_brief_at") for each in public}
    waiting = {each["agent"] for each in approvals}
    due: dict[str, float] = {}
    for timer in timers:
        if timer["state"] == "armed" and timer.get("next"):
            due[timer["agent"]] = min(timer["next"], due.get(timer["agent"], timer["next"]))
    groups: dict[str, Any] = cost.get("groups", {})
    rows = []
    for agent, depth in _in_families(agents):
        name = agent["agent"]
        state = STATES.get(agent["status"], str(agent["status"]))
        if agent.get("waiting_for"):
            state = f"waits for {agent['waiting_for']}"
        if name in waiting and state not in ("PAUSED", "STOPPED"):
            state = "NEEDS YOU"
        at = briefs.get(name)
        rows.append(
            AgentRow(
                name=name,
                state=state if not agent.get("reason") else f"{state}: {agent['reason']}",
                next=f"{times.at(due[name])} ({times.from_now(due[name])})" if name in due else "",
                today=money(spent_of(groups[name])) if name in groups else "",
                last="" if at is None else times.at(at),
                depth=depth,
            )
        )
    stuck = sum(agent["status"] == "paused" and agent["cause"] not in BY_ITSELF for agent in agents)
    return Overview(tuple(rows), tuple(approvals), stuck, _spent(cost, budgets), tuple(row.name for row in rows))


def _in_families(agents: Sequence[Record]) -> list[tuple[Record, int]]:
    """Each agent behind the one that made it, and how deep it stands there."""
    known = {agent["agent"] for agent in agents}
    children: dict[str | None, list[Record]] = {}
    for agent in agents:
        parent = agent.get("lineage_parent_agent_id")
        children.setdefault(parent if parent in known else None, []).append(agent)
    found: list[tuple[Record, int]] = []
    waiting = [(agent, 0) for agent in reversed(children.get(None, []))]
    while waiting:
        agent, depth = waiting.pop()
        found.append((agent, depth))
        waiting += [(child, depth + 1) for child in reversed(children.get(agent["agent"], []))]
    return found


def _spent(cost: Record, budgets: Sequence[Record]) -> str:
    total = cost.get("total", {})
    spent = f"today {money(spent_of(total))}"
    for each in budgets:
        if each["scope"] == "runtime" and each["window"] == "day":
            spent = (
                f"today {money(each['spent_usd'])} of {money(float(each['limit_usd']) + float(each['granted_usd']))}"
            )
    held = total.get("cut_off", "0")
    return f"{spent} ({money(held)} held)" if float(held) else spent


def spent_of(line: Record) -> float:
    """What budgets count: the cost, and what was reserved for requests that were cut off."""
    return float(line.get("cost", "0")) + float(line.get("cut_off", "0"))


def money(usd: str | float) -> str:
    """`$0.41`; parts of a cent are shown where there is nothing else."""
    value = float(usd)
    return f"${value:.4f}" if 0 < value < 0.01 else f"${value:.2f}"


def place_line(workspaces: Record, model: str, width: int) -> str:
    """Where an agent works and what it may do there."""
    entry, execution = workspaces.get("active_workspace_entry") or {}, workspaces.get("execution") or {}
    profile = execution.get("profile") or {}
    missing = ", MISSING" if entry.get("state") == "missing" else ""
    path = str(entry.get("cwd") or "?")
    where = f"{path} ({entry.get('mode')}, {entry.get('projection_kind')}{missing})" if entry else "none"
    may = f"commands {profile.get('backend')}" if profile.get("process_execution_exposed") else "no commands"
    tail = f"  {may}  {model}"
    room = max(12, width - len(tail) - 12)
    if entry and len(where) > room:  # its end says more than how it is attached, which /actions has
        where = f"{path}{missing}"
    shown = where if len(where) <= room else "…" + where[len(where) - room + 1 :]
    return cut(f"workspace {shown}", width - len(tail) - 1) + cut_line(tail, width)


class OverviewReader:
    """The newest answers of the process. Every method raises what the client raises, and changes nothing then."""

    def __init__(self, client: HomeClient, times: ShownTimes) -> None:
        self._client = client
        self._times = times
        self._money: tuple[float, Record, list[Record]] | None = None
        self.overview = Overview()
        self.places: Record = {}
        self.model = ""
        self.tree: list[Record] = []
        """Calls of the turn that is shown."""

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
        self.places, self.tree = places, nodes
        self.model = status.get("model", {}).get("effective_model") or ""

    def forget_agent(self) -> None:
        self.places, self.model, self.tree = {}, "", []

    async def _read_money(self, now: datetime) -> tuple[Record, list[Record]]:
        if self._money is None or now.timestamp() - self._money[0] >= MONEY_SECONDS:
            self._money = now.timestamp(), await self._client.cost_today(), await self._client.budgets()
        return self._money[1], self._money[2]


def tree_lines(nodes: list[Record], width: int, times: ShownTimes) -> list[str]:
    """Calls of a turn, each below the one that made it, with what it took and, of a subtask, what it cost.

    `..` is under way.
    """
    depths: dict[str, int] = {}
    found = []
    for node in nodes:
        depths[node["id"]] = depth = depths.get(node.get("parent_id") or "", 0) + 1
        how = ".." if node.get("is_error") is None else "failed" if node["is_error"] else "ok"
        what = f'"{node["title"]}"' if node.get("title") else (node.get("args_preview") or "").replace("{}", "")
        cost = f"  {money(node['cost'])}" if node.get("cost") is not None else ""
        took = f"  {_took(node, times):>7}{cost}"
        room = max(16, width - len(took))
        found.append("   " * depth + padded(f"{how} {node['name']} {what}", room - 3 * depth) + took)
    return found


def _took(node: Record, times: ShownTimes) -> str:
    """`0.4 s`, `62 s`, `3 min`; of one that is under way, until now."""
    if node.get("is_error") is None and node.get("started_at") is not None:
        return times.from_now(node["started_at"])
    ms = node["duration_ms"]
    return f"{ms / 1000:.1f} s" if ms < 10_000 else span(ms / 1000)
