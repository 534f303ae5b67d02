"""Budgets: what a caller may ask for, and the limits a turn is held to.

A limit of N allows N and refuses the N+1th before it happens.
"""

from typing import Any, Literal

from wakeful.contracts.errors import NotBuiltYet
from wakeful.contracts.values import Value


class Limits(Value):
    """What a turn is held to; None, and what is absent, is no limit."""

    model_calls: int | None = None
    tool_calls: int | None = None
    seconds: float | None = None
    """Of work: waiting for a person and downtime are free."""
    max_steps: int | None = None
    """Rounds of one level."""


AUTONOMOUS = Limits(model_calls=200, tool_calls=1_000, seconds=1_800.0, max_steps=200)
"""The library's default: 30 minutes, 200 model calls, 1,000 tool calls."""
UNLIMITED = Limits()


class Budget(Value):
    """What a run may use: `Budget(model_calls=8, seconds=60)`. What is not named keeps the default profile's limit."""

    model_calls: int | None = None
    seconds: float | None = None
    profile: Literal["autonomous", "unlimited"] = "autonomous"

    def __init__(
        self,
        *,
        model_calls: int | None = None,
        seconds: float | None = None,
        usd: float | None = None,
        tokens: int | None = None,
        tool_calls: int | None = None,
        **data: Any,
    ) -> None:
        for name, asked in (("usd", usd), ("tokens", tokens), ("tool_calls", tool_calls)):
            if asked is not None:
                raise NotBuiltYet(
                    f"Budget({name}=...)",
                    "a limit that is accepted and not kept would be worse than none; "
                    "Budget(model_calls=..., seconds=...) and Budget.unlimited() work",
                )
        if model_calls is not None and model_calls < 1:
            raise ValueError(f"Budget(model_calls={model_calls}): a turn needs at least one model call")
        if seconds is not None and seconds <= 0:
            raise ValueError(f"Budget(seconds={seconds}): give a positive number of seconds")
        super().__init__(**{"model_calls": model_calls, "seconds": seconds, **data})

    @classmethod
    def unlimited(cls) -> "Budget":
        """No limit at all: for a benchmark, or for a caller who watches the run."""
        return cls(profile="unlimited")

    def limits(self, max_steps: int | None = None) -> Limits:
        """The limits this budget stands for, together with an agent's own `max_steps`."""
        base = UNLIMITED if self.profile == "unlimited" else AUTONOMOUS
        return Limits(
            model_calls=self.model_calls if self.model_calls is not None else base.model_calls,
            tool_calls=base.tool_calls,
            seconds=self.seconds if self.seconds is not None else base.seconds,
            max_steps=max_steps if max_steps is not None else base.max_steps,
        )


class BudgetLeft(Value):
    """What is left of a turn's budget at the moment a tool looks; None is no limit."""

    model_calls: int | None
    tool_calls: int | None
    seconds: float | None
