"""What a script may hold. Closed: a key that nobody knows is an error, not a silence."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, NonNegativeFloat, NonNegativeInt, Tag, field_validator, model_validator

from wakeful.contracts.conversation import AssistantPart
from wakeful.contracts.models import FailureKind, Stage, StopReason, TokenUsage
from wakeful.contracts.values import Value


class CallStep(Value):
    """A tool call."""

    name: str = Field(min_length=1)
    arguments: dict[str, Any] | str = {}
    """A mapping, or the text a model would have written: that need not be JSON at all."""
    id: str | None = Field(default=None, min_length=1)
    """Left out: `call_<round>_<position>`, the same each time the turn is run."""

    @field_validator("arguments", mode="before")
    @classmethod
    def _mapping_or_text(cls, value: object) -> object:
        if not isinstance(value, dict | str):
            raise ValueError(f"must be a mapping or a text, not {type(value).__name__}")
        return value


class FailStep(Value):
    """An attempt that is lost."""

    kind: FailureKind
    message: str | None = None
    stage: Stage | None = None
    """Left out: the stage at which this kind usually happens."""
    status: int | None = None
    retry_after: NonNegativeFloat | None = None
    after_chunks: NonNegativeInt = 0
    """How many glimpses are shown first, when the request streams."""


class Step(Value):
    """One answered model call. A text by itself stands for `{text: ...}`."""

    text: str | None = None
    reasoning: str | None = None
    calls: tuple[CallStep, ...] = ()
    parts: tuple[AssistantPart, ...] = ()
    """Raw parts (images, files, thinking, calls), after the text and before the calls."""
    usage: TokenUsage | None = None
    """Left out: the provider reports none."""
    delay: NonNegativeFloat = 0
    """Seconds before anything comes."""
    delta_delay: NonNegativeFloat = 0
    """Seconds before each glimpse, when the request streams."""
    chunks: int | tuple[str, ...] | None = None
    """How the text is split while it streams: into how many pieces, or into these. Left out: into words."""
    fail: tuple[FailStep, ...] = ()
    """One lost attempt after the other, then the reply. Without a reply the last one repeats."""
    stop_reason: StopReason | None = None
    """Left out: `tool_calls` when there are calls, else `end`."""
    metadata: dict[str, Any] = {}
    """What the provider says about the request, kept with the reply."""

    @field_validator("fail", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return value if isinstance(value, list | tuple) else (value,)

    @field_validator("chunks", mode="before")
    @classmethod
    def _count_or_pieces(cls, value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
        if isinstance(value, list | tuple) and all(isinstance(piece, str) for piece in value):
            return tuple(value)
        raise ValueError(f"must be a number from 1 or a list of texts, not {value!r}")

    @model_validator(mode="before")
    @classmethod
    def _text_from_pieces(cls, data: object) -> object:
        """The pieces alone say the text, too."""
        if isinstance(data, dict) and data.get("text") is None and isinstance(data.get("chunks"), list | tuple):
            pieces = data["chunks"]
            if all(isinstance(piece, str) for piece in pieces):
                return {**data, "text": "".join(pieces)}
        return data

    @model_validator(mode="after")
    def _says_something(self) -> "Step":
        if isinstance(self.chunks, tuple) and "".join(self.chunks) != self.text:
            raise ValueError(f"the chunks make {''.join(self.chunks)!r} and the text is {self.text!r}")
        if not (self.replies or self.fail):
            raise ValueError("says nothing: give at least one of text, reasoning, calls, parts or fail")
        return self

    @property
    def replies(self) -> bool:
        """There is something to say, were it an empty text."""
        return self.text is not None or self.reasoning is not None or bool(self.calls or self.parts)


def _text_or_step(value: object) -> str:
    return "text" if isinstance(value, str) else "step"


class ScriptFile(Value):
    """A script as a file. A list by itself stands for `{steps: [...]}`."""

    description: str = ""
    usage: Literal["auto"] | None = None
    """`auto`: tokens are estimated (UTF-8 bytes / 3) where a step gives none. Left out: none are reported."""
    steps: tuple[
        Annotated[Annotated[str, Tag("text")] | Annotated[Step, Tag("step")], Discriminator(_text_or_step)], ...
    ] = Field(json_schema_extra={"minItems": 1})

    @field_validator("steps")
    @classmethod
    def _not_empty(cls, steps: tuple[object, ...]) -> tuple[object, ...]:
        if not steps:  # not `min_length`, which also complains when every step is wrong in itself
            raise ValueError("there are no steps")
        return steps
