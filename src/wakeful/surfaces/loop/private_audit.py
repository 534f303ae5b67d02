"""The private audit record of a call, for the host alone: `ConversationLoop(private_audit=...)`.

What models, frontends, exports and the log get of a result's citations is safe metadata (`contracts.citations`). What
was taken out there, and the whole principal, goes to the host's sink and is kept nowhere here.
"""

import copy
from collections.abc import Callable
from typing import Any

from wakeful.contracts.citations import PLACES
from wakeful.contracts.events import ObserverFailed
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.contracts.tool_calls import ToolCall
from wakeful.surfaces.loop.calling import at_once
from wakeful.surfaces.loop.telling import Teller, describe

SINK = "private_audit"


class PrivateAudit:
    """Tells the sink of one run about every call that an executor carried out."""

    def __init__(
        self,
        sink: Callable[[dict[str, Any]], Any] | None,
        teller: Teller,
        turn: Callable[[], int],
        principal: Callable[[], ExecutionPrincipal | None],
    ) -> None:
        self._sink = sink
        self._teller = teller
        self._turn = turn
        self._principal = principal

    async def keep(self, call: ToolCall, returned: Any) -> None:
        """`returned` is what the executor gave, with nothing taken out of it. A sink that raises leaves a trace."""
        if self._sink is None:
            return
        principal = self._principal()
        try:
            metadata = returned.get("metadata") if isinstance(returned, dict) else None
            given = metadata if isinstance(metadata, dict) else {}
            record = {
                "schema_version": 1,
                "type": "tool_call_private",
                "turn_count": self._turn(),
                "tool_name": call.tool_name,
                "tool_call_id": call.metadata.tool_call_id,
                "principal": principal.model_dump(mode="json") if principal is not None else None,
                **{place: copy.deepcopy(given[place]) for place in PLACES if place in given},
            }
            await at_once(self._sink, record)
        except Exception as error:
            await self._teller.record(ObserverFailed(surface=SINK, error=describe(error)))
