"""What may be asked about all agents at once: who needs a person, who is at work, who wakes when."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.views.overview import AgentsOverview

PATH = "/overview"
SHOWN = 40


@dataclass(frozen=True, slots=True)
class OverviewQuery:
    """How many agents at most; those that need somebody come first."""

    most: int = SHOWN
    """0: all of them."""


async def _overview(opened: OpenStore, asked: OverviewQuery) -> "AgentsOverview":
    from wakeful.service.queries.overview import overview

    return await overview(opened.engine, asked.most or None)


OVERVIEW = Operation("runtime.overview", "observe", OverviewQuery, "wakeful.views.overview.AgentsOverview", _overview)
