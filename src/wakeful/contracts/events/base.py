"""What every event class says about itself.

`kind` is its name in the log, `aliases` the names other documents use for the same fact (filters accept either),
`version` the version of its payload, `needs` the ids its envelope must carry, `outsider` whether somebody who does not
own the agent's lease may append it.
"""

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Field

from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.contracts.values import Value

Need: TypeAlias = Literal["thread_id", "turn_id", "step_id", "tool_call_id", "action_id"]

Preview: TypeAlias = Annotated[str, Field(json_schema_extra={"maxLength": PREVIEW_CHARS})]
"""The beginning of a text, for whoever only wants to see what it is."""

THREAD: tuple[Need, ...] = ("thread_id",)
TURN: tuple[Need, ...] = (*THREAD, "turn_id")
STEP: tuple[Need, ...] = (*TURN, "step_id")
CALL: tuple[Need, ...] = (*STEP, "tool_call_id")


class Event(Value):
    """A payload: one thing that happened, in the past tense."""

    kind: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    version: ClassVar[int] = 1
    needs: ClassVar[tuple[Need, ...]] = TURN
    outsider: ClassVar[bool] = False


class RuntimeFact(Event):
    """A fact about an agent between its turns: the state of a turn does not follow from it."""

    needs: ClassVar[tuple[Need, ...]] = ()
    outsider: ClassVar[bool] = True


class UnrecognisedEvent(Event):
    """A kind from a newer version or another writer."""

    model_config = ConfigDict(extra="allow", frozen=True)
    kind: ClassVar[str] = "wakeful.unrecognised"
    needs: ClassVar[tuple[Need, ...]] = ()

    original_kind: str
    original_version: int
    body: dict[str, Any]
