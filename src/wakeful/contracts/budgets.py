"""Budgets: what a caller may ask for, and the limits a turn is held to.

A limit of N allows N and refuses the N+1th before it happens. One budget holds for a whole tree: a turn and everything
it splits off. The constants here are the only place where the numbers of the `interactive` profile stand; an owner may
say others for an installation (`settings/limit_overrides`), a user interface has no setting for them.
"""

from collections.abc import Mapping
from decimal import Decimal
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from wakeful.contracts.amounts import InvalidBudget, checked_count, checked_counts, checked_duration, checked_money
from wakeful.contracts.values import Value

MAX_DEPTH: Final = 3
"""Children exist at depth 1, 2 and 3; the turn itself is at 0."""
MAX_ITERATIONS_PER_LEVEL: Final = 20
MAX_PARALLEL_PER_TURN: Final = 8
"""At most this many calls of a tree run at the same time."""
MAX_TOTAL_SUBTASKS: Final = 32
MAX_TOTAL_LLM_CALLS: Final = 60
MAX_TOTAL_TOOL_CALLS: Final = 200
MAX_WALL_CLOCK_MS: Final = 180_000
MAX_TOOL_RESULT_BYTES: Final = 50_000
"""The largest tool result a model is shown; what is longer is cut, and whole in an artifact."""
MAX_HISTORY_TOKENS: Final = 128_000
MAX_SCHEMA_RETRIES: Final = 3
"""How often a child's result that does not fit its schema may be given again."""

LimitOverrides: TypeAlias = Mapping[str, int | float]
"""Numbers of the owner that replace those of a profile, by field of `Limits`."""
NO_OVERRIDES: Final[LimitOverrides] = MappingProxyType({})
BudgetProfile: TypeAlias = Literal["autonomous", "interactive", "unlimited"]
Money: TypeAlias = str | int | float | Decimal


class Limits(Value):
    """The limits of a turn; None, and an absent field, is no limit.

    It is stored without what has its default, so that no default here may ever follow a constant that can change.
    """

    model_calls: int | None = None
    tool_calls: int | None = None
    seconds: float | None = None
    """Of work: waiting for a person and downtime are free."""
    max_steps: int | None = None
    """Rounds of one level."""
    depth: int | None = None
    """How deep children may go: 0 allows none, 1 no grandchildren."""
    subtasks: int | None = None
    """Children of the whole tree."""
    width: int | None = None
    """Calls that run at the same time, in the whole tree."""
    tokens: int | None = None
    """Input and output together."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: str | None = None
    """Dollars, as a decimal text."""
    per_tool: dict[str, int] = {}
    """Calls of single tools, by name; a tool that is not named has no limit of its own."""
    result_bytes: int | None = None
    """The most text of one tool result that a model is shown."""
    history_tokens: int | None = None
    """Most tokens of history in a model request; older parts are pruned. None: the model's own window."""
    unpriced_token_ceiling: int | None = None
    """Where money is limited: how many tokens models without a known price may use. None: such a model is refused."""
    final_answer_reserve: bool = True
    """The last model call is kept for an answer: the model is told so and may call no tool."""
    schema_retries: int = 3
    """How often a child's result that does not fit its schema may be given again."""
    stall_repeats: int | None = None
    """How often the same call may be made with the same arguments in a row before the turn ends."""
    failure_repeats: int | None = None
    """How often the same call may fail in the same way in a row before the model is told to do something else."""


INTERACTIVE: Final = Limits(
    model_calls=MAX_TOTAL_LLM_CALLS,
    tool_calls=MAX_TOTAL_TOOL_CALLS,
    seconds=MAX_WALL_CLOCK_MS / 1_000,
    max_steps=MAX_ITERATIONS_PER_LEVEL,
    depth=MAX_DEPTH,
    subtasks=MAX_TOTAL_SUBTASKS,
    width=MAX_PARALLEL_PER_TURN,
    result_bytes=MAX_TOOL_RESULT_BYTES,
    history_tokens=MAX_HISTORY_TOKENS,
    schema_retries=MAX_SCHEMA_RETRIES,
)
"""Somebody waits for the answer."""
AUTONOMOUS: Final = INTERACTIVE.model_copy(
    update={
        "model_calls": 200,
        "tool_calls": 1_000,
        "seconds": 1_800.0,
        "max_steps": 200,
        # About as many for each model call as in a chat; a child needs at least one call of its own.
        "subtasks": 128,
        # Nobody watches what would be dropped: the history is compacted to the model's window instead.
        "history_tokens": None,
    }
)
"""The library's default: 30 minutes, 200 model calls, 1,000 tool calls."""
UNLIMITED: Final = Limits(
    depth=MAX_DEPTH, width=MAX_PARALLEL_PER_TURN, result_bytes=MAX_TOOL_RESULT_BYTES, schema_retries=MAX_SCHEMA_RETRIES
)
"""Nothing that is used up is limited. The shape of the tree is: without a depth a model could delegate for ever
without getting anywhere, and without a width a single reply could start any number of calls."""
PROFILES: Final[Mapping[str, Limits]] = MappingProxyType(
    {"autonomous": AUTONOMOUS, "interactive": INTERACTIVE, "unlimited": UNLIMITED}
)


class Budget(Value):
    """The limits of a run: `Budget(usd=0.25, model_calls=8)`. Limits that are not named come from the profile."""

    usd: str | None = None
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    model_calls: int | None = None
    tool_calls: int | None = None
    seconds: float | None = None
    depth: int | None = None
    subtasks: int | None = None
    per_tool: dict[str, int] = {}
    profile: BudgetProfile = "autonomous"
    unpriced_token_ceiling: int | None = None
    final_answer_reserve: bool = True
    stall_repeats: int | None = None
    failure_repeats: int | None = None

    def __init__(
        self,
        *,
        usd: Money | None = None,
        tokens: int | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        model_calls: int | None = None,
        tool_calls: int | None = None,
        seconds: float | None = None,
        minutes: float | None = None,
        depth: int | None = None,
        subtasks: int | None = None,
        per_tool: Mapping[str, int] | None = None,
        profile: BudgetProfile = "autonomous",
        unpriced_token_ceiling: int | None = None,
        final_answer_reserve: bool = True,
        stall_repeats: int | None = None,
        failure_repeats: int | None = None,
        **unknown: Any,
    ) -> None:
        """Raises InvalidBudget, naming the field and its value."""
        for name in unknown:
            near = get_close_matches(name, (*type(self).model_fields, "minutes"), n=3, cutoff=0.6)
            known = ", ".join((*type(self).model_fields, "minutes"))
            hint = f"did you mean {' or '.join(near)}?" if near else f"known are: {known}"
            raise InvalidBudget(f"Budget has no field {name!r}", hint)
        if profile not in PROFILES:
            raise InvalidBudget(f"Budget(profile={profile!r})", f"give one of: {', '.join(PROFILES)}")
        if not isinstance(final_answer_reserve, bool):
            raise InvalidBudget(f"Budget(final_answer_reserve={final_answer_reserve!r})", "give True or False")
        if seconds is not None and minutes is not None:
            raise InvalidBudget(f"Budget(seconds={seconds!r}, minutes={minutes!r})", "give one of the two")
        long = checked_duration("Budget: minutes", minutes, "minutes")
        checked = {
            "usd": checked_money("Budget: usd", usd),
            "tokens": checked_count("Budget: tokens", tokens, 1),
            "input_tokens": checked_count("Budget: input_tokens", input_tokens, 1),
            "output_tokens": checked_count("Budget: output_tokens", output_tokens, 1),
            "model_calls": checked_count("Budget: model_calls", model_calls, 1),
            "tool_calls": checked_count("Budget: tool_calls", tool_calls, 0),
            "seconds": checked_duration("Budget: seconds", seconds, "seconds") if long is None else long * 60,
            "depth": checked_count("Budget: depth", depth, 0),
            "subtasks": checked_count("Budget: subtasks", subtasks, 0),
            "per_tool": checked_counts("Budget: per_tool", per_tool),
            "profile": profile,
            "unpriced_token_ceiling": checked_count("Budget: unpriced_token_ceiling", unpriced_token_ceiling, 1),
            "final_answer_reserve": final_answer_reserve,
            "stall_repeats": checked_count("Budget: stall_repeats", stall_repeats, 2),
            "failure_repeats": checked_count("Budget: failure_repeats", failure_repeats, 2),
        }
        super().__init__(**checked)

    @classmethod
    def unlimited(cls) -> "Budget":
        """Nothing that is used up is limited: for a benchmark, or for a caller who watches the run."""
        return cls(profile="unlimited")

    def changed(self, **changes: Any) -> "Budget":
        """Another budget: this one with some of its arguments given anew."""
        if "minutes" in changes:
            changes.setdefault("seconds", None)
        return Budget(**{**self.model_dump(), **changes})

    def limits(self, max_steps: int | None = None, overrides: LimitOverrides = NO_OVERRIDES) -> Limits:
        """The limits this budget stands for, together with an agent's own `max_steps`.

        The budget's own limits win over the owner's, and those over the profile's. An unlimited one stays unlimited.
        """
        base = PROFILES[self.profile]
        held = self.profile != "unlimited"
        said: dict[str, Any] = {
            name: value for name, value in overrides.items() if held or getattr(base, name) is not None
        }
        own = self.model_dump(exclude={"profile", "final_answer_reserve"}, exclude_none=True)
        said |= {**own, "final_answer_reserve": self.final_answer_reserve}
        if max_steps is not None:
            said["max_steps"] = max_steps
        return base.model_copy(update=said)


class BudgetLeft(Value):
    """The rest of a turn's budget at this moment; None is no limit."""

    model_calls: int | None
    tool_calls: int | None
    seconds: float | None
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: str | None = None
    """Dollars, as a decimal text."""
    subtasks: int | None = None
    per_tool: dict[str, int] = {}
    """Of the tools that have a limit of their own."""


class SpendWindow(Value):
    """A spending limit of an agent for an hour, a day or a month, over all its runs."""

    period: Literal["hour", "day", "month"]
    usd: str
    """Dollars, as a decimal text."""

    def __init__(self, period: Literal["hour", "day", "month"], usd: Money) -> None:
        if period not in ("hour", "day", "month"):
            raise InvalidBudget(f"SpendWindow(period={period!r})", "give hour, day or month")
        amount = checked_money(f"SpendWindow({period}): usd", usd)
        if amount is None:
            raise InvalidBudget(f"SpendWindow({period}): usd=None", "give an amount in dollars, 0 or more")
        checked: dict[str, Any] = {"period": period, "usd": amount}
        super().__init__(**checked)
