"""Keeping the results of a run to the size that its host wants: `tool_result_truncator`."""

import copy
from collections.abc import Callable
from typing import Any

from wakeful.contracts.events import ObserverFailed, ToolResultTruncated
from wakeful.decisions.secret_values import SecretValues
from wakeful.decisions.truncation import ToolResultTruncator
from wakeful.surfaces.loop.calling import at_once
from wakeful.surfaces.loop.telling import Teller, describe

SURFACE = "tool_result_truncator"


class ResultBounds:
    """Every result of one run goes through here, whoever gave it, before anybody else sees it."""

    def __init__(
        self,
        truncator: ToolResultTruncator | None,
        teller: Teller,
        turn: Callable[[], int],
        keys: Callable[[], SecretValues],
    ) -> None:
        self._truncator = truncator
        self._teller = teller
        self._turn = turn
        self._keys = keys

    async def bound(self, call_id: str, result: dict[str, Any]) -> dict[str, Any]:
        """The result, or what stands for it. What was too large goes to the truncator's own sink alone."""
        truncator = self._truncator
        bounded = truncator.bound(result, self._keys().hide_keys) if truncator is not None else None
        if truncator is None or bounded is None:
            return result
        event = ToolResultTruncated(
            turn=self._turn(),
            tool_name=str(result.get("tool_name") or ""),
            tool_call_id=call_id,
            original_bytes=bounded.original_bytes,
            excerpt_bytes=bounded.excerpt_bytes,
            citations_dropped=bounded.citations_dropped or None,
        )
        if truncator.sink is not None:
            try:
                await at_once(truncator.sink, copy.deepcopy(result), event.model_dump(mode="json", exclude_none=True))
            except Exception as error:
                await self._teller.record(ObserverFailed(surface=SURFACE, error=describe(error)))
        await self._teller.record(event)
        return bounded.result
