"""Steps, made ready once: the reply as it will be given, what fails before it, and how it streams.

Giving a reply must cost next to nothing, so nothing is built, checked or split when a request comes. The glimpses are
cut the first time somebody streams the step.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from wakeful.contracts.content import Part, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.errors import MalformedScript, ModelFailure
from wakeful.contracts.models import ArgumentsDelta, FailureKind, ModelGlimpse, ReasoningDelta, Reply, Stage, TextDelta
from wakeful.contracts.values import unchecked
from wakeful.providers.scripted.problems import HINT, in_steps
from wakeful.providers.scripted.schema import CallStep, FailStep, Step

PROVIDER = "scripted"
_plain_text, _plain_item, _plain_reply = unchecked(Text), unchecked(AssistantItem), unchecked(Reply)
"""Of the answers of functions that give a text, which are made on each call."""
_WORDS = re.compile(r"\S+\s*|\s+")
_STAGES: dict[FailureKind, Stage] = {
    "connection": "connect",
    "empty_response": "body",
    "stream_interrupted": "body",
    "invalid_response": "decode",
}
"""Where a kind of failure usually happens; all others while waiting for the headers."""


class ReadyStep:
    """One step, ready to be given."""

    __slots__ = ("_chunks", "_glimpses", "delay", "delta_delay", "failures", "is_plain", "reply")

    def __init__(
        self,
        reply: Reply | None,
        *,
        failures: tuple[FailStep, ...] = (),
        delay: float = 0,
        delta_delay: float = 0,
        chunks: int | tuple[str, ...] | None = None,
    ) -> None:
        self.reply = reply
        """None: the step only fails."""
        self.failures = failures
        self.delay = delay
        self.delta_delay = delta_delay
        self.is_plain = not failures and not delay
        """Nothing stands before the reply."""
        self._chunks = chunks
        self._glimpses: tuple[ModelGlimpse, ...] | None = None

    @property
    def glimpses(self) -> tuple[ModelGlimpse, ...]:
        """The reply as it streams, in the order of its parts."""
        if self._glimpses is None:
            parts = self.reply.item.parts if self.reply is not None else ()
            self._glimpses = tuple(glimpse for part in parts for glimpse in _glimpses(part, self._chunks))
        return self._glimpses

    def failure(self, attempt: int) -> FailStep | None:
        """What this attempt dies of, if anything."""
        if attempt <= len(self.failures):
            return self.failures[attempt - 1]
        return self.failures[-1] if self.reply is None else None


def ready(step: object, position: int, where: str) -> ReadyStep:
    """A step in any of its spellings. `position` counts from 0 and names the calls that have no id."""
    if isinstance(step, str):
        return ReadyStep(_plain_reply(item=_plain_item(parts=(_plain_text(text=step),), provider=PROVIDER)))
    if isinstance(step, Reply):
        return ReadyStep(step)
    if isinstance(step, AssistantItem):
        return ReadyStep(Reply(item=step, stop_reason="tool_calls" if step.calls else "end"))
    if isinstance(step, Mapping):
        try:
            step = Step.model_validate(dict(step))
        except ValidationError as error:
            raise in_steps(where, position + 1, error) from None
    if not isinstance(step, Step):
        raise MalformedScript(
            f"{where}: step {position + 1}: must be a text, a mapping, a Reply or an AssistantItem, "
            f"not {type(step).__name__} {step!r}",
            HINT,
        )
    return ReadyStep(
        _reply_of(step, position) if step.replies else None,
        failures=step.fail,
        delay=step.delay,
        delta_delay=step.delta_delay,
        chunks=step.chunks,
    )


def failure_of(fail: FailStep, ref: str) -> ModelFailure:
    """The scripted failure as a provider raises it."""
    stage = fail.stage or ("body" if fail.after_chunks else _STAGES.get(fail.kind, "headers"))
    return ModelFailure(
        fail.message or f"{ref} failed as its script says: {fail.kind}",
        kind=fail.kind,
        stage=stage,
        status=fail.status,
        retry_after=fail.retry_after,
    )


def _reply_of(step: Step, position: int) -> Reply:
    parts: list[Part | CallPart] = []
    if step.reasoning is not None:
        parts.append(Thinking(text=step.reasoning, provider=PROVIDER))
    if step.text is not None:
        parts.append(Text(step.text))
    parts += step.parts
    parts += [_call(call, f"call_{position + 1}_{number}") for number, call in enumerate(step.calls, 1)]
    calls = any(isinstance(part, CallPart) for part in parts)
    usage = step.usage
    if usage is not None and not usage.total_tokens:
        usage = usage.model_copy(update={"total_tokens": usage.input_tokens + usage.output_tokens})
    # `construct`: the step was checked, and a function's steps are made ready on each call.
    return Reply.model_construct(
        item=AssistantItem.model_construct(parts=tuple(parts), provider=PROVIDER),
        stop_reason=step.stop_reason or ("tool_calls" if calls else "end"),
        usage=usage,
        request_metadata=step.metadata,
    )


def _call(call: CallStep, call_id: str) -> CallPart:
    given = call.arguments
    arguments = _object(given) if isinstance(given, str) else given
    return CallPart.model_construct(
        call_id=call.id or call_id,
        name=call.name,
        arguments=arguments,
        raw_arguments=given if arguments is None and isinstance(given, str) else None,
    )


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _glimpses(part: Part | CallPart, chunks: int | tuple[str, ...] | None) -> list[ModelGlimpse]:
    match part:
        case Text():
            return [TextDelta(text=piece) for piece in _split(part.text, chunks)]
        case Thinking():
            return [ReasoningDelta(text=piece) for piece in _split(part.text, None)]
        case CallPart():
            written = part.raw_arguments if part.raw_arguments is not None else json.dumps(part.arguments)
            return [ArgumentsDelta(call_id=part.call_id, name=part.name, text=written)]
        case _:  # a picture or a file comes whole, with the reply
            return []


def _split(text: str, chunks: int | tuple[str, ...] | None) -> list[str]:
    """A text in pieces that together are the text again."""
    if isinstance(chunks, tuple):
        return list(chunks)
    if chunks is None:
        return _WORDS.findall(text)
    size = -(-len(text) // chunks)
    return [text[start : start + size] for start in range(0, len(text), size)] if text else []
