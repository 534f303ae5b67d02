"""Rules of `feed`: which facts an operator sees is said by `views.presentation.placements`.

A round leaves a row for what the model asked for and one for each call that ended; its other facts leave none.
"""

from typing import Any, Final

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import BY_KIND
from wakeful.contracts.events.holds import RUNTIME_STREAM
from wakeful.contracts.waking import CHECK_THREAD
from wakeful.ports.operator_feed import FeedRow
from wakeful.store.tables.row_rules import AtHand, LogEntry, RowRule, Rules
from wakeful.store.tables.runtime_agents import NEEDS_AGENT, agent_row
from wakeful.views.presentation.placements import FEED_KINDS, RESULTS, Placement, feed_placement


def _shown(entry: LogEntry, event: Any, rows: AtHand) -> list[FeedRow]:
    fact = entry.fact
    if agent_row(entry, rows) is None and entry.agent_id != RUNTIME_STREAM:
        return []  # a run of the library: whoever called it is told
    if (fact.thread_id or "").startswith(CHECK_THREAD):
        return []
    found = feed_placement(fact)
    if found is None:
        return []
    return [feed_row(entry.agent_id, entry.seq, fact, found)]


def feed_row(agent_id: str, seq: int, fact: Fact, found: Placement) -> FeedRow:
    """The row of a fact that stands in the feed."""
    return FeedRow(0, agent_id, seq, found.visibility, found.category, found.visibility in RESULTS, fact.at)


FEED_RULES: Final[Rules] = {BY_KIND[kind]: RowRule(_shown, NEEDS_AGENT) for kind in sorted(FEED_KINDS)}
