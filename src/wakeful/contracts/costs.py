"""What a turn cost: the words of the cost summary.

Rule: money is a decimal string and is added as decimals. What nobody knows the price of is counted in `unpriced_calls`
and adds nothing to `cost`: a sum with such calls in it is a lower bound, and `cost_complete` says so.
"""

from typing import Literal

from wakeful.contracts.values import Value


class CostLine(Value):
    """Some requests to models, added up."""

    calls: int = 0
    """Every attempt that was sent, also one that was lost."""
    input_tokens: int = 0
    """All input, cached included."""
    cached_input_tokens: int = 0
    """The part of the input that a provider's cache served."""
    cache_write_tokens: int = 0
    """The part of the input that was written to a provider's cache."""
    output_tokens: int = 0
    """Reasoning included."""
    reasoning_tokens: int = 0
    """The part of the output that was thought."""
    cost: str = "0"
    """A decimal number: what the priced calls cost."""
    unpriced_calls: int = 0
    """Calls whose cost is not known: their model has no known price, or nobody reported what they used."""


class CostSummary(Value):
    """A root turn's cost: `total` is the sum of `by_model` and the sum of `by_depth`, field by field."""

    type: Literal["cost_summary"] = "cost_summary"
    thread_id: str
    turn_id: str
    currency: str = "USD"
    total: CostLine = CostLine()
    by_model: dict[str, CostLine] = {}
    """By `provider:model`."""
    by_depth: dict[str, CostLine] = {}
    """By how deep in the tree: "0" is the root's own requests, its planner's and its summaries'."""
    tool_calls: int = 0
    subtasks: int = 0
    duration_ms: int = 0
    max_cost_usd: str | None = None
    """The limit on money, where one was set."""
    cost_complete: bool = True
    """False: some call has no known price, and the total is a lower bound."""
    usage_complete: bool = True
    """False: some call's tokens were not reported, and count as none."""


class PriceListUsed(Value):
    """A list that prices were taken from."""

    name: str
    """A package and its version; `settings` and `code` are prices of the owner's, `free` is a script's."""
    date: str | None = None
    """The day of the list, where it is known."""


class CostReport(Value):
    """What the turns of a store cost, in groups. `total` is the sum of the groups."""

    by: str
    """What the groups are: model, agent, day or depth."""
    since: str | None = None
    """Requests before this moment are left out."""
    agent: str | None = None
    turn_id: str | None = None
    turns: int = 0
    currency: str = "USD"
    total: CostLine = CostLine()
    groups: dict[str, CostLine] = {}
    price_lists: tuple[PriceListUsed, ...] = ()
    """Where the prices are from."""
    cost_complete: bool = True
    usage_complete: bool = True
