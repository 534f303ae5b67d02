"""Answering calls that a client runs: `pending_requests`, `submit_result`, `timeout_request`, `cancel_request`.

Each ends a request once, from whatever process; whoever comes later changes nothing and is told. `resume` goes on.
"""

from collections.abc import Mapping
from typing import Any

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.service.commands import client_requests
from wakeful.service.commands.client_requests import RequestOutcome
from wakeful.surfaces.library.run_checks import StorePlace, existing_store


async def pending_requests(store: StorePlace, turn_id: str | None = None) -> list[RuntimeToolRequest]:
    """The pending requests to clients, oldest first, with the real parameters. Expired requests are ended."""
    async with opened_store(existing_store(store)) as opened:
        return await client_requests.pending_requests(new_engine(opened), turn_id)


async def submit_result(
    store: StorePlace,
    request_id: str,
    result: Any = None,
    *,
    error: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> RequestOutcome:
    """The client's result as JSON data, or with `error` why there is none. Then `resume` goes on with the turn.

    Safe to repeat: a second answer, or one after the time ran out, is `duplicate` and changes nothing.
    """
    async with opened_store(existing_store(store)) as opened:
        return await client_requests.submit_result(
            new_engine(opened), request_id, result, error=error, metadata=metadata
        )


async def timeout_request(store: StorePlace, request_id: str) -> RequestOutcome:
    """The client will not answer any more: its call has failed, as when its time runs out."""
    async with opened_store(existing_store(store)) as opened:
        return await client_requests.end_unanswered(new_engine(opened), request_id)


async def cancel_request(store: StorePlace, request_id: str) -> RequestOutcome:
    """Cancel a request that is no longer needed: its call is cancelled."""
    async with opened_store(existing_store(store)) as opened:
        return await client_requests.end_unanswered(new_engine(opened), request_id, cancelled=True)
