"""Grants: the part of a turn's budget that a child agent is given, and what becomes of it.

What a child is given its parent's turn has no more. What the child leaves goes back to that turn, while it runs. A
limit that the turn does not have the child does not have either; no limit of a child is above what is left of the
turn's. Time is not handed over: it passes for both.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from wakeful.contracts.budgets import BudgetLeft, Limits
from wakeful.decisions.ledger import TurnLedger, left_of

COUNTS: Final = ("model_calls", "tool_calls", "tokens", "input_tokens", "output_tokens", "subtasks")


class TooLittle(NamedTuple):
    """Why nothing can be handed on."""

    what: str
    asked: str
    left: str


def grant_of(limits: Limits, left: BudgetLeft, ledger: TurnLedger, asked: Mapping[str, Any]) -> Limits | TooLittle:
    """What a child is given: what was asked for, else half of what is left. Its parent keeps something of everything.

    The child itself counts as one subtask.
    """
    given: dict[str, Any] = {}
    for name in COUNTS:
        there = getattr(left, name)
        if name == "subtasks" and there is not None:
            there -= 1
        wanted = asked.get(name)
        keeps = 1 if name == "model_calls" else 0
        if there is None:
            given[name] = wanted
        elif wanted is None:
            given[name] = max(0, there) // 2
        elif wanted > there - keeps:
            return TooLittle(name, str(wanted), str(max(0, there - keeps)))
        else:
            given[name] = wanted
        if name == "model_calls" and there is not None and (given[name] < 1 or there - given[name] < 1):
            return TooLittle(name, str(given[name] or 1), str(max(0, there - 1)))
        if name == "subtasks" and there is not None and there < 0:
            return TooLittle(name, "1", "0")
        if name.endswith("tokens") and there is not None and given[name] < 1:
            return TooLittle(name, "1", str(there))
    money = _money(left.usd, asked.get("usd"))
    if isinstance(money, TooLittle):
        return money
    ceiling = limits.unpriced_token_ceiling
    if ceiling is not None:
        given["unpriced_token_ceiling"] = max(0, ceiling - ledger.unpriced_tokens - ledger.held_unpriced) // 2
    per_tool = {name: most // 2 for name, most in left.per_tool.items()}
    return limits.model_copy(update={**given, "usd": money, "per_tool": per_tool, "seconds": left.seconds})


def _money(left: str | None, asked: Any) -> str | TooLittle | None:
    wanted = None if asked is None else Decimal(str(asked))
    if left is None:
        return None if wanted is None else str(wanted)
    there = Decimal(left)
    if wanted is None:
        wanted = there / 2
    if wanted <= 0 or wanted > there:
        return TooLittle("usd", str(wanted), left)
    return str(wanted)


def without(limits: Limits, grant: Limits) -> Limits:
    """What a turn has when it has given this away. The child itself is one subtask."""
    return _moved(limits, grant, -1, subtasks=1)


def given_back(limits: Limits, left: Limits) -> Limits:
    """What a turn has when this comes back. The child was made all the same."""
    return _moved(limits, left, 1, subtasks=0)


def given_again(limits: Limits, left: Limits) -> Limits:
    """What a turn has when a child takes up again what it gave back. It is not made a second time."""
    return _moved(limits, left, -1, subtasks=0)


def left_after(limits: Limits, ledger: TurnLedger, seconds: float) -> Limits:
    """What a child's next turn may use after one that was held to these limits."""
    left = left_of(ledger, limits, seconds)
    changes: dict[str, Any] = {name: getattr(left, name) for name in (*COUNTS, "seconds", "usd")}
    if limits.unpriced_token_ceiling is not None:
        changes["unpriced_token_ceiling"] = max(0, limits.unpriced_token_ceiling - ledger.unpriced_tokens)
    return limits.model_copy(update={**changes, "per_tool": left.per_tool})


def at_most(left: Limits, grant: Limits) -> Limits:
    """What came back, and no more of anything than was given."""
    changes: dict[str, Any] = {}
    for name in (*COUNTS, "unpriced_token_ceiling"):
        came, gave = getattr(left, name), getattr(grant, name)
        changes[name] = None if gave is None else min(gave, came or 0)
    money = None if grant.usd is None else str(min(Decimal(grant.usd), Decimal(left.usd or 0)))
    per_tool = {name: min(gave, left.per_tool.get(name, 0)) for name, gave in grant.per_tool.items()}
    return left.model_copy(update={**changes, "usd": money, "per_tool": per_tool})


def nothing_of(grant: Limits) -> Limits:
    """A grant that is used up."""
    used_up: dict[str, Any] = {name: 0 for name in COUNTS if getattr(grant, name) is not None}
    if grant.usd is not None:
        used_up["usd"] = "0"
    if grant.unpriced_token_ceiling is not None:
        used_up["unpriced_token_ceiling"] = 0
    return grant.model_copy(update={**used_up, "per_tool": dict.fromkeys(grant.per_tool, 0)})


def _moved(limits: Limits, other: Limits, sign: int, *, subtasks: int) -> Limits:
    changes: dict[str, Any] = {}
    for name in (*COUNTS, "unpriced_token_ceiling"):
        has, moves = getattr(limits, name), getattr(other, name)
        if has is not None and moves is not None:
            more = subtasks if name == "subtasks" else 0
            changes[name] = max(0, has + sign * (moves + more))
    if limits.usd is not None and other.usd is not None:
        changes["usd"] = str(max(Decimal(0), Decimal(limits.usd) + sign * Decimal(other.usd)))
    moved = {name: max(0, most + sign * other.per_tool.get(name, 0)) for name, most in limits.per_tool.items()}
    return limits.model_copy(update={**changes, "per_tool": moved})
