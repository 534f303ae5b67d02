"""What the server answers, before it is written in the words of a wire format, and how a limit cuts it.

Tokens are characters divided by four, rounded up, unless the script says how many there were.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from wakeful.contracts.models import TokenUsage
from wakeful.testing.provider_server.wire_requests import WireRequest

CHARACTERS_A_TOKEN = 4
Finish: TypeAlias = Literal["end", "calls", "length", "filtered", "refused"]
_FILLER = "All work and no play makes a long answer. "


class WireCall(NamedTuple):
    """A tool call: its name on the wire, and its arguments as the model wrote them."""

    name: str
    arguments: str
    call_id: str = ""
    whole: bool = True

    @property
    def parsed(self) -> dict[str, Any]:
        """Nothing where it was cut: as a vendor gives a call that has no arguments yet."""
        try:
            value = json.loads(self.arguments)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """One answer."""

    text: str = ""
    thoughts: str = ""
    calls: tuple[WireCall, ...] = ()
    finish: Finish = "end"
    usage: TokenUsage | None = None
    """What it used. In a script: what it is to report, whatever its size."""
    report: Callable[[int], Any] | None = None
    """How each count is written; None: as it is."""
    reports_usage: bool = True

    def counts(self, usage: Mapping[str, Any]) -> dict[str, Any]:
        """The counts of a usage, as they are to be written."""
        report = self.report
        if report is None:
            return dict(usage)
        return {
            name: self.counts(value)
            if isinstance(value, Mapping)
            else report(value)
            if isinstance(value, int)
            else value
            for name, value in usage.items()
        }

    @property
    def used(self) -> TokenUsage:
        return self.usage or TokenUsage()


def filler(tokens: int) -> str:
    """A text of so many tokens."""
    length = tokens * CHARACTERS_A_TOKEN
    return (_FILLER * (length // len(_FILLER) + 1))[:length]


def tokens_of(characters: int) -> int:
    return -(-characters // CHARACTERS_A_TOKEN)


def fitted(said: WireAnswer, asked: WireRequest) -> WireAnswer:
    """The answer as this request allows it: its tool choice, then its limit; and with what it used counted."""
    allowed = _allowed(said, asked)
    cut = allowed if asked.most is None else _cut(allowed, asked.most)
    if said.usage is not None:
        return replace(cut, usage=said.usage)
    thought = tokens_of(len(cut.thoughts))
    output = thought + tokens_of(len(cut.text)) + sum(map(_size, cut.calls))
    taken = max(1, tokens_of(asked.characters))
    used = TokenUsage(
        input_tokens=taken,
        output_tokens=max(1, output),
        reasoning_tokens=thought,
        total_tokens=taken + max(1, output),
    )
    return replace(cut, usage=used)


def _allowed(said: WireAnswer, asked: WireRequest) -> WireAnswer:
    if said.finish in ("filtered", "refused"):
        return said
    forced = (
        asked.choice if isinstance(asked.choice, tuple) else tuple(asked.tools) if asked.choice == "required" else ()
    )
    calls = said.calls
    if asked.choice == "none":
        calls = ()
    elif forced:
        calls = tuple(call for call in calls if call.name in forced)
        if not calls:
            calls = (WireCall(forced[0], _arguments(said.text, asked.tools.get(forced[0], {}))),)
            said = replace(said, text="")
    if not asked.parallel:
        calls = calls[:1]
    text = said.text or ("" if calls or not said.calls else "I would call a tool, and may not.")
    ids = tuple(call._replace(call_id=call.call_id or _call_id(asked, place)) for place, call in enumerate(calls))
    return replace(said, text=text, calls=ids, finish="calls" if ids and said.finish == "end" else said.finish)


def _call_id(asked: WireRequest, place: int) -> str:
    """The same each time the same conversation asks, so that a repeat after a kill gets the same call."""
    start = {"anthropic": "toolu_", "gemini": "fc_"}.get(asked.wire, "call_")
    return f"{start}{asked.rounds + 1:04d}{place + 1:04d}"


def _arguments(text: str, schema: Mapping[str, Any]) -> str:
    """The arguments of a call that the request demands: what was to be said, where it is an object."""
    try:
        if isinstance(json.loads(text), dict):
            return text
    except ValueError:
        pass
    return json.dumps(example(schema))


def example(schema: Mapping[str, Any]) -> Any:
    """The smallest value that a schema takes, as far as it can be told without looking far."""
    if "const" in schema:
        return schema["const"]
    for name in ("enum", "examples"):
        if schema.get(name):
            return schema[name][0]
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return example(schema[name][0])
    kind = schema.get("type", "object")
    kind = str(kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object":
        inside = schema.get("properties", {})
        return {name: example(inside.get(name, {"type": "string"})) for name in schema.get("required", ())}
    return {
        "string": "",
        "integer": schema.get("minimum", 0),
        "number": schema.get("minimum", 0),
        "boolean": False,
    }.get(kind, [] if kind == "array" else None)


def _size(call: WireCall) -> int:
    return tokens_of(len(call.name) + len(call.arguments))


def _cut(said: WireAnswer, most: int) -> WireAnswer:
    """What fits: thoughts, then words, then calls, as a model makes them. The last one is broken off."""
    left = most * CHARACTERS_A_TOKEN
    thoughts = said.thoughts[:left]
    left -= tokens_of(len(thoughts)) * CHARACTERS_A_TOKEN
    text = said.text[: max(0, left)]
    left -= tokens_of(len(text)) * CHARACTERS_A_TOKEN
    calls: list[WireCall] = []
    for call in said.calls:
        room = left - len(call.name)
        if room <= 0:
            break
        fits = len(call.arguments) <= room
        calls.append(call if fits else call._replace(arguments=call.arguments[:room], whole=False))
        left -= _size(call) * CHARACTERS_A_TOKEN
        if not fits:
            break
    whole = (len(thoughts), len(text), len(calls)) == (len(said.thoughts), len(said.text), len(said.calls))
    if whole and all(call.whole for call in calls):
        return said
    return replace(said, thoughts=thoughts, text=text, calls=tuple(calls), finish="length")
