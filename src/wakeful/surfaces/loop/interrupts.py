"""What an interrupt source answered, read once: a message with an action, or nothing usable."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.transcript import Message, normalise

Action: TypeAlias = Literal["cancel", "redirect", "message"]
SOURCE_ERROR = "source_error"


def read_interrupt(answer: Any) -> Message | None:
    """The message; None when the answer is none."""
    if not isinstance(answer, Message | Mapping):
        return None
    try:
        if isinstance(answer, Mapping) and "role" not in answer:
            answer = {"role": "user", **answer}  # whoever interrupts speaks to the model
        return normalise(answer)
    except InvalidValue:
        return None


def action_of(message: Message) -> Action:
    """What is to be done; what is not known is a message like any other."""
    named = message.metadata.get("interrupt_action") or message.metadata.get("action")
    if named == "cancel":
        return "cancel"
    return "redirect" if named == "redirect" else "message"
