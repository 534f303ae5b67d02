"""What the model was shown in a turn, and why: the shape of the answer, without the contents themselves."""

from typing import Any, Literal, TypeAlias

from wakeful.contracts.values import Value

SectionKind: TypeAlias = Literal["instructions", "skills", "plan", "tools", "summary", "history", "knowledge"]


class ContextSection(Value):
    """One part of what requests rest on, as it was written down."""

    kind: SectionKind
    ref: str
    tokens: int | None = None
    words: str = ""
    """What it is and why it is in."""


class ContextLeftOut(Value):
    """Something that is not shown to the model, and why."""

    ref: str
    reason: str
    words: str = ""


class SummaryView(Value):
    """A compaction: what its summary stands for, or why there is none."""

    compaction_id: str
    turn_id: str
    seq: int
    """Its number in the agent's log."""
    level: str | None = None
    trigger: str
    outcome: Literal["completed", "failed", "open"]
    stands_for: int = 0
    """Items."""
    turns: int = 0
    messages: int = 0
    tokens_before: int = 0
    tokens_after: int | None = None
    written_by: str | None = None
    preview: str = ""
    why_not: str = ""


class ShownItem(Value):
    """One message of a request."""

    place: int
    role: str
    origin: str = ""
    tokens: int
    preview: str
    is_summary: bool = False


class RequestView(Value):
    """One request to a model."""

    step: int
    attempt: int
    phase: Literal["planner", "compaction"] | None = None
    level: str | None = None
    model_ref: str
    items: int
    """Messages it showed."""
    tokens_estimated: int
    input_tokens: int | None = None
    """As the provider counted them, where it was answered."""
    rests_on: str | None = None
    """The summary at the beginning of its conversation."""
    shown: tuple[ShownItem, ...] = ()
    """Only where the request was asked for."""


class ReadAgain(Value):
    """A call that asked once more for what had been folded away."""

    call_id: str
    tool: str
    arguments: dict[str, Any] = {}
    step: int
    folded_by: str


class TurnContext(Value):
    """What a turn's model saw, request by request."""

    turn_id: str
    agent: str
    thread: str
    history_from: str
    """The first event its conversation rests on."""
    window: int | None = None
    """Tokens that the model can be shown."""
    sections: tuple[ContextSection, ...] = ()
    left_out: tuple[ContextLeftOut, ...] = ()
    tools: tuple[str, ...] = ()
    requests: tuple[RequestView, ...] = ()
    summaries: tuple[SummaryView, ...] = ()
    tokens_folded: int = 0
    """Before less after, over the turn's own compactions."""
    folded_calls: int = 0
    """Calls whose results are not shown word for word any more."""
    read_again: tuple[ReadAgain, ...] = ()
