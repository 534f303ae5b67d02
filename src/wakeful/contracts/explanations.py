"""Why a call was let through, asked about or refused: the gate's own words, in the order it said them."""

from typing import Any, Literal, TypeAlias

from wakeful.contracts.values import Value

StepKind: TypeAlias = Literal["verdict", "said", "hook", "asked", "answered", "arguments", "held", "ran", "outcome"]


class ExplainedRule(Value):
    """A rule that had a say, as it stood in the turn."""

    ref: str
    text: str
    """In words; empty when the turn's configuration does not have it any more."""


class ExplainedStep(Value):
    """One thing that happened to the call on its way."""

    seq: int
    kind: StepKind
    at: int
    """Microseconds since the epoch."""
    words: str
    by: str = ""
    """Who or what said it: a layer of the gate, a hook, a person."""
    rules: tuple[ExplainedRule, ...] = ()


class CallExplanation(Value):
    """A call's whole way through the gate, from the log."""

    call_id: str
    turn_id: str
    agent: str
    tool: str
    arguments: dict[str, Any] = {}
    """Redacted."""
    verdict: str
    """The last one: allow, ask, deny, sandbox, unavailable; `none` when the call never came before the gate."""
    outcome: str = ""
    """`succeeded`, `denied`, `failed` ...; empty while the call is open."""
    steps: tuple[ExplainedStep, ...]
