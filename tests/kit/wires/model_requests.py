"""Requests to ask a model with, and what comes back, for the suites that test models."""

from collections.abc import Mapping
from typing import Any

from wakeful.contracts.conversation import History
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.ports import Model, ModelRequest


def a_request(
    answered: int = 0, settings: ModelSettings | Mapping[str, Any] | None = None, **changed: Any
) -> ModelRequest:
    """A request of the round after `answered` finished model calls; not streaming unless it says so."""
    fields: dict[str, Any] = {
        "instructions": "",
        "history": History(),
        "tools": (),
        "turn_id": "turn_1",
        "step": answered + 1,
        "attempt": 1,
        "stream": False,
        "settings": settings if isinstance(settings, ModelSettings) else ModelSettings(**(settings or {})),
        **changed,
    }
    return ModelRequest(answered=answered, **fields)


async def pieces_of(model: Model, request: ModelRequest) -> list[ModelGlimpse | Reply]:
    """Everything that comes."""
    return [piece async for piece in model.respond(request)]


async def reply_of(model: Model, request: ModelRequest) -> Reply:
    """The reply, which is the last thing that comes and the only reply."""
    *glimpses, reply = await pieces_of(model, request)
    assert isinstance(reply, Reply)
    assert not any(isinstance(glimpse, Reply) for glimpse in glimpses)
    return reply
