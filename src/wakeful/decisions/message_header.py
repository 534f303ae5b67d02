"""What the model is told about a message besides its words: where it comes from, and whose word it is.

The owner's own words are shown as they are, and so is what a program passes to `run`. The header is one line, whatever
the names in it hold: who writes to an agent must not be able to write a header.
"""

import json

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.events import MessageAdmitted
from wakeful.contracts.messages import BriefBody, JsonBody, OperatorOrigin, TextBody

_OF_CALLER = ("run_once", "cli_prompt")
"""What takes in messages whose caller is on the line."""


def shown_item(message: MessageAdmitted) -> UserItem:
    """The message as the conversation holds it."""
    item = message.item
    if message.body is not None:
        words = (Text(f"{item.text}\n\n"),) if item.text else ()  # the owner's, about what a program sends
        item = item.model_copy(update={"parts": (*words, Text(body_text(message.body)))})
    if message.delivery_surface in _OF_CALLER or message.origin == OperatorOrigin():
        return item
    return item.model_copy(update={"parts": (Text(f"{header(message)}\n"), *item.parts)})


def body_text(body: TextBody | JsonBody | BriefBody) -> str:
    """A body in words."""
    match body:
        case TextBody():
            return body.text
        case JsonBody():
            return json.dumps(body.value, ensure_ascii=False, indent=1)
        case BriefBody():
            return body.text if body.title is None else f"{body.title}\n\n{body.text}"


def header(message: MessageAdmitted) -> str:
    """One line: `[message from webhook, source "ci"; via http_webhook, local_process; authority: ...]`."""
    origin = message.origin.model_dump(exclude_none=True)
    kind = origin.pop("kind")
    named = [f"{name} {json.dumps(value)}" for name, value in origin.items()]
    way = f"{message.delivery_surface}, {message.admission_context}"
    return f"[message from {', '.join([kind, *named])}; via {way}; authority: {message.authority_class}]"
