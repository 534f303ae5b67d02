"""A chat message as a client sends it. Fields that are not known here are ignored: clients are older and newer."""

from typing import Any

from pydantic import ConfigDict

from wakeful.contracts.values import Value


class ChatMessage(Value):
    """What is read of a message, wherever it goes. Who speaks is known from the connection and is no field of it."""

    model_config = ConfigDict(extra="ignore")

    thread_id: str
    content: str
    provider: str | None = None
    model: str | None = None
    """The model that answers; a saved workflow needs none."""
    collections: tuple[str, ...] = ()
    memory_enabled: bool = False
    request_seq: int = 0
    supersede: bool = False
    """The turn of the thread that still runs is to be stopped first."""
    workflow_inputs: dict[str, Any] = {}
