"""The sections of an agent's file that have a shape of their own: budget, spending, compaction.

They are for the published schema. Which fields a file has, `engine/agent_options` says; what a value may be is checked
when an agent is made of it.
"""

from typing import Annotated, TypeAlias

from pydantic import Field

from wakeful.contracts.budgets import BudgetProfile
from wakeful.contracts.described_values import DescribedValue
from wakeful.contracts.retries import LONGEST_PATIENCE, PATIENCE
from wakeful.contracts.values import Value

REFERENCE = r"^[A-Za-z][A-Za-z0-9_-]*[:/]\S"
"""`provider:model`."""
ModelName: TypeAlias = Annotated[str, Field(pattern=REFERENCE)]
Dollars: TypeAlias = Annotated[float, Field(ge=0)] | Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?$")]


class RunBudgetSection(DescribedValue):
    """Limits of one run."""

    usd: Dollars | None = None
    tokens: int | None = Field(None, ge=1)
    input_tokens: int | None = Field(None, ge=1)
    output_tokens: int | None = Field(None, ge=1)
    model_calls: int | None = Field(None, ge=1)
    tool_calls: int | None = Field(None, ge=0)
    seconds: float | None = Field(None, gt=0)
    """Of work; instead of minutes."""
    minutes: float | None = Field(None, gt=0)
    depth: int | None = Field(None, ge=0)
    """How deep children may go."""
    subtasks: int | None = Field(None, ge=0)
    per_tool: dict[str, Annotated[int, Field(ge=0)]] | None = None
    """Calls of single tools, by name."""
    profile: BudgetProfile = "autonomous"
    """Where the limits that are not named come from."""
    unpriced_token_ceiling: int | None = Field(None, ge=1)
    """Where money is limited: tokens that models without a known price may use."""
    final_answer_reserve: bool = True
    """Keep the last model call for an answer."""


class RetrySection(Value):
    """How long a run waits while no model answers."""

    patience: float = Field(PATIENCE, ge=0, le=LONGEST_PATIENCE)
    """Seconds; 0: it returns after the quick attempts, with status `waiting`."""


class WindowSection(Value):
    """A spending limit for all runs of an agent together, in one period."""

    usd: Dollars


class BudgetSection(RunBudgetSection):
    """Limits of one run; or those under `per_run`, beside spending limits of all runs (`per_day` and the like)."""

    per_run: RunBudgetSection | None = None
    per_hour: WindowSection | None = None
    per_day: WindowSection | None = None
    per_month: WindowSection | None = None


class CompactionSection(DescribedValue):
    """When a conversation that grows too long for its model is folded into a summary."""

    enabled: bool = True
    threshold: float = Field(0.8, gt=0, le=1)
    """The share of the model's window from which on it is folded."""
    keep_user_turns: int = Field(4, ge=1)
    """The newest messages of the user that stay word for word."""
    model: str | None = Field(None, pattern=REFERENCE)
    """The model that writes the summary. Default: the agent's own."""
