"""What the server answers: from a script, from lines in the prompt, or from a header of the request.

The reply belongs to the round that the request's own conversation has come to, not to a counter here: a program that
was killed, or asks again after an outage, gets the right one. Lines in the newest message that has any say what the
rounds behind it are:

    think: 300                       the next reply is thought about for 300 tokens
    call: refund {"order": "A17"}    a tool call; `and call:` puts one beside it
    long: 4000                       an answer of so many tokens
    answer: Paid.                    an answer

A line that is a word of the weather (`cut`, `429 after=1`) strikes one attempt of the reply behind it.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from wakeful.contracts.content import Text, Thinking
from wakeful.contracts.models import FailureKind, Reply, StopReason
from wakeful.errors import InvalidConfig
from wakeful.providers.scripted.schema import FailStep
from wakeful.providers.scripted.script_files import load
from wakeful.providers.scripted.steps import ReadyStep, ready
from wakeful.testing.provider_server.answers import Finish, WireAnswer, WireCall, example, filler
from wakeful.testing.provider_server.weather import FINE, WORDS, Trouble, trouble
from wakeful.testing.provider_server.wire_requests import RequestRefused, WireRequest, WireTurn

Script: TypeAlias = "str | Sequence[object] | Callable[[WireRequest], object] | None"
"""As `scripted` takes it: a file, a list of replies, or a function, which gets the request."""
HEADER = "x-provider-script"
"""A request may bring its own reply: a step as JSON in base64."""
DEFAULT = "All right."
_LINE = re.compile(r"\s*(answer|call|and call|think|long):\s?(.*)")
_CALL = re.compile(r"(\S+)\s*(\{.*\})?\s*")
_FINISH: Mapping[StopReason, Finish] = {"length": "length", "content_filter": "filtered", "refusal": "refused"}
_TROUBLES: Mapping[FailureKind, str] = {
    "connection": "reset",
    "timeout": "504",
    "rate_limited": "429",
    "overloaded": "529",
    "server_error": "500",
    "stream_interrupted": "cut",
    "auth_error": "401",
    "quota_exhausted": "quota",
    "context_length_exceeded": "too_long",
    "content_filtered": "filtered",
    "empty_response": "empty",
    "invalid_response": "html",
    "contract_error": "404",
}
"""What a provider does so that an attempt fails as a script says."""


@dataclass
class _ToldRound:
    """One reply that lines in a prompt ask for."""

    text: str = ""
    thoughts: int = 0
    calls: list[tuple[str, str]] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    closed: bool = False


class Replies:
    """Finds the reply to a request, and counts its attempts where some of them are to be struck."""

    def __init__(self, script: Script) -> None:
        self._function = script if callable(script) else None
        self._steps: tuple[ReadyStep, ...] = ()
        if script is not None and not callable(script):
            steps = load(script).steps if isinstance(script, str) else script
            self._steps = tuple(ready(step, place, "the script") for place, step in enumerate(steps))
        self._attempts: dict[bytes, int] = {}
        self._lock = threading.Lock()

    def reply(self, asked: WireRequest, headers: Mapping[str, str]) -> tuple[WireAnswer, Trouble]:
        """What is said, and what befalls this attempt. Raises RequestRefused when the script has nothing to say."""
        if given := headers.get(HEADER):
            return self._of_step(ready(json.loads(base64.b64decode(given)), asked.rounds, HEADER), asked)
        told = _told(asked)
        if told is not None:
            return self._of_round(told, asked)
        if self._function is not None:
            return self._of_step(ready(self._function(asked), asked.rounds, "the script's function"), asked)
        if self._steps:
            return self._of_step(self._step(asked.rounds), asked)
        text = DEFAULT if asked.schema is None else json.dumps(example(asked.schema))
        return WireAnswer(text=text), FINE

    def _step(self, place: int) -> ReadyStep:
        """Past its end a text repeats. Calls do not."""
        step = self._steps[min(place, len(self._steps) - 1)]
        if place >= len(self._steps) and (step.reply is None or step.reply.item.calls):
            words = f"the script has {len(self._steps)} replies and ends in a call; reply {place + 1} was asked for"
            raise RequestRefused(words, code="script_ended")
        return step

    def _of_step(self, step: ReadyStep, asked: WireRequest) -> tuple[WireAnswer, Trouble]:
        said = WireAnswer() if step.reply is None else _said(step.reply, asked)
        if not step.failures:
            return said, FINE
        failure = step.failure(self._attempt(asked))
        return said, FINE if failure is None else _befalls(failure)

    def _of_round(self, told: _ToldRound, asked: WireRequest) -> tuple[WireAnswer, Trouble]:
        calls = tuple(WireCall(_wire_name(name, asked), arguments) for name, arguments in told.calls)
        said = WireAnswer(text=told.text, thoughts=filler(told.thoughts), calls=calls)
        attempt = self._attempt(asked) if told.troubles else 1
        return said, told.troubles[attempt - 1] if attempt <= len(told.troubles) else FINE

    def _attempt(self, asked: WireRequest) -> int:
        """How often this conversation has come to this point."""
        told = repr([(turn.role, turn.text) for turn in asked.turns if turn.role != "system"])
        key = hashlib.sha256(told.encode("utf-8", "replace")).digest()
        with self._lock:
            self._attempts[key] = self._attempts.get(key, 0) + 1
            return self._attempts[key]


def _said(reply: Reply, asked: WireRequest) -> WireAnswer:
    parts = reply.item.parts
    return WireAnswer(
        text="".join(part.text for part in parts if isinstance(part, Text)),
        thoughts="".join(part.text for part in parts if isinstance(part, Thinking) and part.text),
        calls=tuple(
            WireCall(
                _wire_name(call.name, asked),
                call.raw_arguments
                if call.raw_arguments is not None
                else json.dumps(call.arguments, ensure_ascii=False),
                call.call_id,
            )
            for call in reply.item.calls
        ),
        finish=_FINISH.get(reply.stop_reason, "end"),
        usage=reply.usage,
    )


def _wire_name(name: str, asked: WireRequest) -> str:
    """The tool as the request offers it: by its whole name, or by the last part of it."""
    spelt = re.sub(r"[^A-Za-z0-9_-]", "__", name)
    ends = [each for each in asked.tools if each.rpartition("__")[2] == spelt.rpartition("__")[2]]
    return next((each for each in (name, spelt) if each in asked.tools), ends[0] if len(ends) == 1 else spelt)


def _befalls(failure: FailStep) -> Trouble:
    word = _TROUBLES.get(failure.kind, "500")
    if failure.retry_after is not None and "after" in WORDS[word][1]:
        return Trouble(word, (("after", f"{failure.retry_after:g}"),))
    return Trouble(word)


def _told(asked: WireRequest) -> _ToldRound | None:
    """The reply that lines in the newest message with such lines ask for; None when there is none."""
    rounds: list[_ToldRound] = []
    since = 0
    for turn in reversed(asked.turns):
        if turn.role == "assistant":
            since += 1
        elif turn.role == "user" and (rounds := _rounds(turn)):
            break
    if not rounds:
        return None
    return rounds[since] if since < len(rounds) else _ToldRound(text=rounds[-1].text or DEFAULT)


def _rounds(turn: WireTurn) -> list[_ToldRound]:
    """The replies that a message asks for. One without `answer:`, `call:` or `long:` asks for none."""
    rounds: list[_ToldRound] = []
    now = _ToldRound()
    for line in turn.text.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            word = _weather(line)
            if word is not None:
                now.troubles.append(word)
            continue
        kind, value = found.groups()
        call = _CALL.fullmatch(value) if "call" in kind else None
        if kind == "think" and value.strip().isdigit():
            now.thoughts = int(value)
        elif kind == "and call" and call is not None and rounds:
            rounds[-1].calls.append((call[1], call[2] or "{}"))
        elif kind in ("answer", "long", "call") and (kind != "call" or call is not None):
            if call is not None:
                now.calls.append((call[1], call[2] or "{}"))
            else:
                now.text = filler(int(value.split()[0])) if kind == "long" else value
            rounds.append(now)
            now = _ToldRound()
    return rounds


def _weather(line: str) -> Trouble | None:
    if line.strip().partition(" ")[0] not in WORDS:
        return None
    try:
        return trouble(line)
    except InvalidConfig:
        return None  # a sentence that begins with such a word
