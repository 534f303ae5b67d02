"""All agents at a glance: how each stands, when it wakes, what it spent today, and what needs a person."""

from wakeful.contracts.file_problems import FileProblem
from wakeful.contracts.values import Value


class AgentLine(Value):
    """One agent of an overview."""

    agent: str
    state: str
    """As `wakeful agent` says it; `run`: it belongs to single runs, and no runtime looks after it."""
    waiting_for: str = ""
    """The provider that does not answer a turn of it, while nothing else of it runs."""
    next_wake: float | None = None
    """The next timer, or the end of a wait, in Unix seconds."""
    spent_today_usd: str = "0"
    """Since the owner's day began, as budgets count it."""
    cut_off_today_usd: str = "0"
    """Of it, what was reserved for requests that were cut off, and whose cost nobody said."""
    spent_is_complete: bool = True
    """False: some request of today has no known price, and the sum is a lower bound."""
    needs: tuple[str, ...] = ()
    """What a person has to do for it, in words."""


class AgentsOverview(Value):
    """Agents, those that need somebody first, then those at work, then the rest by name."""

    agents: tuple[AgentLine, ...] = ()
    more: int = 0
    """Agents that are not listed."""
    held: str = ""
    """Set: everything is paused or stopped, and why."""
    approvals: int = 0
    """Pending approvals and questions."""
    unknown_outcomes: int = 0
    file_problems: tuple[FileProblem, ...] = ()
    """Files that are not in force, and why."""
