"""How long what a runtime knows is kept, and the report on what has gone."""

from typing import Annotated

from pydantic import Field

from wakeful.contracts.values import Value

DAY_US = 86_400_000_000
GB = 1_000_000_000

Days = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Retention(Value):
    """How long things are kept, in days. `0` keeps them for ever.

    Messages, answers and results of tools stay in their conversation, whatever stands here; so do briefs, work items,
    approvals, costs, rules, and everything that is open.
    """

    turns: Days = 30
    """Details of turns that ended: which context, route and tools each was given, and what hooks said."""
    temporary_agents: Days = 7
    """Runs without a thread and without a key: their whole log."""
    task_output: Days = 7
    """Files with the output of background tasks that ended; a summary stays."""
    spilled_output: Days = 30
    """Results that were too long for the model, in full; what the model was shown stays."""
    blobs: Days = 1
    """Stored contents to which nothing refers any more."""
    feed: Days = 30
    """The feed over all agents; the events that it names stay in their logs."""
    request_keys: Days = 7
    """Idempotency keys of requests, with their answers."""
    notice_gb: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5
    """A notice is written when the store grows beyond this size; `0`: never."""

    def before(self, days: float, now: int) -> int | None:
        """The time before which things have reached this age; None: they are kept for ever."""
        return None if days == 0 else now - round(days * DAY_US)


class RetentionReport(Value):
    """What a pass of retention removed, or would remove."""

    dry_run: bool = False
    turns: int = 0
    """Turns some of whose events expired."""
    events: int = 0
    """Events that expired: their bodies are gone, their place in the log stays."""
    rows: int = 0
    """Rows of the log that are stored together from now on, and take less."""
    streams: int = 0
    """Logs of temporary agents, and of the idempotency keys of a day."""
    outputs: int = 0
    """Results that had been kept in full."""
    tasks: int = 0
    """Tasks whose output files are gone."""
    blobs: int = 0
    """Contents to which nothing refers."""
    feed: int = 0
    """Rows of the feed over all agents."""
    freed_bytes: int = 0
    """What was stored of all that."""

    @property
    def is_empty(self) -> bool:
        return not any(
            (self.turns, self.events, self.rows, self.streams, self.outputs, self.tasks, self.blobs, self.feed)
        )
