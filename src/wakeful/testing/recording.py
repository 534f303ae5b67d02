"""Recordings: a real model is asked once, and its file answers from then on, without a key and without a network.

A request is known by what it says (instructions, conversation, tools, settings), never by when or in which turn it was
made. One that the file does not know is refused and shown beside the nearest that it does. Settings and metadata are
redacted before they are written: keys and headers never get into the file.
"""

import difflib
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from wakeful.bootstrap.engines import resolve_model
from wakeful.contracts.conversation import ITEM
from wakeful.contracts.errors import InvalidConfig, ModelFailure
from wakeful.contracts.model_settings import stored_settings
from wakeful.contracts.models import FailureKind, ModelGlimpse, Reply, Stage, TokenUsage
from wakeful.contracts.values import Value
from wakeful.decisions.redaction import redact
from wakeful.ports import Model, ModelRequest

SHOWN_LINES = 24
_GLIMPSE: TypeAdapter[ModelGlimpse] = TypeAdapter(ModelGlimpse)
_HEADERS = ("header", "headers", "extra_headers", "request_headers", "response_headers")


class LostAttempt(Value):
    """A failure, as the provider told it."""

    message: str
    kind: FailureKind
    stage: Stage
    retryable: bool | None = None
    status: int | None = None
    retry_after: float | None = None
    usage: TokenUsage | None = None


class Exchange(Value):
    """One request and how it ended."""

    request: dict[str, Any]
    glimpses: list[dict[str, Any]] = []
    reply: Reply | None = None
    failure: LostAttempt | None = None


class Tape(Value):
    """A recording, as a file. Items of conversations stand in it once, however many requests repeat them."""

    wakeful_recording: Literal[1] = 1
    model: str
    items: list[dict[str, Any]] = []
    exchanges: list[Exchange] = []


class RecordedModel:
    """A model that remembers. Whether it asks or answers from its file is settled when it is made."""

    def __init__(self, model: Model | str, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._model = None if self._path.exists() else resolve_model(model)
        self._tape = Tape(model=self._model.ref) if self._model is not None else _read(self._path)
        self._positions = {_canonical(item): position for position, item in enumerate(self._tape.items)}
        self._answers: dict[str, list[Exchange]] = {}
        for exchange in self._tape.exchanges:
            self._answers.setdefault(_canonical(self._whole(exchange.request)), []).append(exchange)

    @property
    def ref(self) -> str:
        return self._tape.model

    @property
    def replays(self) -> bool:
        """The file was there: no model is asked."""
        return self._model is None

    def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        return self._replay(request) if self._model is None else self._record(self._model, request)

    async def _record(self, model: Model, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        asked = self._stored(_spoken(request))
        glimpses: list[dict[str, Any]] = []
        try:
            async for piece in model.respond(request):
                if isinstance(piece, Reply):
                    clean = piece.model_copy(update={"request_metadata": _clean(piece.request_metadata)})
                    self._keep(Exchange(request=asked, glimpses=glimpses, reply=clean))
                else:
                    glimpses.append(piece.model_dump(mode="json"))
                yield piece
        except ModelFailure as failure:
            lost = LostAttempt(
                message=failure.message,
                kind=failure.kind,
                stage=failure.stage,
                retryable=failure.retryable,
                status=failure.status,
                retry_after=failure.retry_after,
                usage=failure.usage,
            )
            self._keep(Exchange(request=asked, glimpses=glimpses, failure=lost))
            raise

    async def _replay(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        spoken = _spoken(request)
        answers = self._answers.get(_canonical(spoken))
        if answers is None:
            raise self._unknown_request(spoken)
        # The same request again has the next answer; a program that is run again, the last one.
        exchange = answers.pop(0) if len(answers) > 1 else answers[0]
        if request.stream:
            for glimpse in exchange.glimpses:
                yield _GLIMPSE.validate_python(glimpse)
        if exchange.reply is not None:
            yield exchange.reply
        elif exchange.failure is not None:
            lost = exchange.failure.model_dump(exclude={"message", "usage"})
            raise ModelFailure(exchange.failure.message, **lost, usage=exchange.failure.usage)

    def _keep(self, exchange: Exchange) -> None:
        """Written whole each time, beside the file and then over it: a kill leaves the last complete recording."""
        self._tape.exchanges.append(exchange)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_name(f"{self._path.name}.new")
        beside.write_text(self._tape.model_dump_json(indent=1, exclude_defaults=False) + "\n", "utf-8")
        beside.replace(self._path)

    def _stored(self, spoken: dict[str, Any]) -> dict[str, Any]:
        """The request with its items by number."""
        numbers = []
        for item in spoken["history"]:
            name = _canonical(item)
            if name not in self._positions:
                self._positions[name] = len(self._tape.items)
                self._tape.items.append(item)
            numbers.append(self._positions[name])
        return {**spoken, "history": numbers}

    def _whole(self, stored: dict[str, Any]) -> dict[str, Any]:
        """The request with its items in place."""
        try:
            history = [self._tape.items[number] for number in stored["history"]]
            return {**stored, "history": history, "settings": _settings_of(stored)}
        except (KeyError, IndexError, TypeError):
            raise _not_a_recording(self._path, "a request names an item that is not there") from None

    def _unknown_request(self, spoken: dict[str, Any]) -> ModelFailure:
        nearest = self._nearest(spoken)
        shown = list(_difference(nearest, spoken)) if nearest is not None else ["the recording is empty"]
        if len(shown) > SHOWN_LINES:
            shown = [*shown[:SHOWN_LINES], f"... and {len(shown) - SHOWN_LINES} lines more"]
        return ModelFailure(
            f"{self._path} has no answer to this request. Delete the file to record again.\n"
            f"Recorded (-) and asked now (+):\n" + "\n".join(shown),
            kind="contract_error",
            stage="send",
            retryable=False,
        )

    def _nearest(self, spoken: dict[str, Any]) -> dict[str, Any] | None:
        """The recorded request with the most lines in common, the same round and attempt first."""
        wholes = [self._whole(exchange.request) for exchange in self._tape.exchanges]
        here = [whole for whole in wholes if all(whole.get(k) == spoken[k] for k in ("answered", "attempt"))]
        lines = _lines(spoken)
        return max(here or wholes, default=None, key=lambda whole: _alike(_lines(whole), lines))


def record(model: Model | str, path: str | os.PathLike[str]) -> RecordedModel:
    """The same model, recorded: asked while `path` does not exist, answered from it when it does.

    A model given by its reference is not even made when the file is there, so that no key is needed.
    """
    return RecordedModel(model, path)


def _spoken(request: ModelRequest) -> dict[str, Any]:
    """What a request says, and nothing about when it was said."""
    said = {
        "answered": request.answered,
        "attempt": request.attempt,
        "instructions": request.instructions,
        "history": [ITEM.dump_python(item, mode="json", exclude_defaults=True) for item in request.history],
        "tools": [
            {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
            for tool in request.tools
        ],
        "tool_choice": request.tool_choice,
        "settings": _clean(request.settings.written()),
        "output_schema": request.output_schema,
    }
    plain: dict[str, Any] = json.loads(json.dumps(said, default=repr))
    return plain


def _settings_of(stored: dict[str, Any]) -> dict[str, Any]:
    """Settings as they are written today; in older recordings each of them had the name of one API."""
    told = {name: value for name, value in stored["settings"].items() if name != "prompt_cache_key"}
    return _clean(stored_settings(told).written())


def _clean(value: dict[str, Any]) -> dict[str, Any]:
    """Without secrets, and without headers whatever is in them."""
    kept: dict[str, Any] = redact({key: inner for key, inner in value.items() if key.lower() not in _HEADERS})
    return {key: _clean(inner) if isinstance(inner, dict) else inner for key, inner in kept.items()}


def _read(path: Path) -> Tape:
    try:
        return Tape.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _not_a_recording(path, f"{where}: {first['msg']}" if where else first["msg"]) from None


def _not_a_recording(path: Path, why: str) -> InvalidConfig:
    return InvalidConfig(f"{path} is not a recording: {why}", "Delete it to record again, or name another file.")


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _lines(request: dict[str, Any]) -> list[str]:
    return json.dumps(request, indent=1, sort_keys=True, ensure_ascii=False).splitlines()


def _alike(one: list[str], other: list[str]) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=False).quick_ratio()


def _difference(recorded: dict[str, Any], asked: dict[str, Any]) -> Iterator[str]:
    lines = difflib.unified_diff(_lines(recorded), _lines(asked), lineterm="", n=1)
    return (line for line in lines if not line.startswith(("---", "+++", "@@")))
