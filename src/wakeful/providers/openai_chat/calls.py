"""Tool calls as they come in pieces: by index, interleaved, with ids and names that some servers repeat or leave out.

Arguments are the pieces put together, parsed once at the end. A call is made of the structured fields and of nothing
else: no text is ever read as one.
"""

from typing import Any

from pydantic_core import from_json

from wakeful.contracts.conversation import CallPart
from wakeful.contracts.models import ArgumentsDelta
from wakeful.providers.openai_chat.messages import OPAQUE, dumps
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.text import mended, showable, storable

UNKNOWN_TOOL = "unknown_tool"
"""The name of a call in which nobody can find one."""
_KNOWN_OF_CALL = frozenset({"index", "id", "type", "function", "custom"})
_KNOWN_OF_FUNCTION = frozenset({"name", "arguments"})


class WrongShape(ValueError):
    """A field everybody agrees on holds something nobody agreed on."""


class _Draft:
    """One call that is not finished."""

    __slots__ = ("arguments", "call_id", "index", "is_legacy", "name", "of_call", "of_function", "refused")

    def __init__(self, index: int) -> None:
        self.index = index
        self.is_legacy = False
        self.refused: str | None = None
        self.call_id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.of_call: dict[str, Any] = {}
        self.of_function: dict[str, Any] = {}

    @property
    def is_call(self) -> bool:
        """Some servers send a frame with nothing in it where there is no call."""
        return bool(self.name) or (bool(self.arguments) and not self.is_legacy)


class ReplyCalls:
    """The calls of one reply."""

    __slots__ = ("_drafts", "_names", "_newest")

    def __init__(self, names: WireNames) -> None:
        self._names = names
        self._drafts: list[_Draft] = []
        self._newest: dict[int | None, _Draft] = {}
        """By the index its server gave it."""

    def __len__(self) -> int:
        return sum(draft.is_call for draft in self._drafts)

    def add(self, pieces: Any, glimpses: list[Any], *, whole: bool = False) -> None:
        """The `tool_calls` of one delta. `whole` calls, of an answer that came at once, are each their own."""
        if not isinstance(pieces, list):
            raise WrongShape(f"tool_calls is {type(pieces).__name__}, not a list")
        for piece in pieces:
            if not isinstance(piece, dict):
                raise WrongShape(f"a tool call is {type(piece).__name__}, not an object")
            function = piece.get("function")
            if function is None:
                function = _custom(piece)
            if not isinstance(function, dict):
                raise WrongShape(f"the function of a tool call is {type(function).__name__}, not an object")
            index = piece.get("index")
            index = index if isinstance(index, int) else None
            draft = self._new(index) if whole else self._draft(index, piece.get("id"), function.get("name"))
            if isinstance(piece.get("id"), str) and not draft.call_id:
                draft.call_id = mended(piece["id"])
            _keep(draft.of_call, piece, _KNOWN_OF_CALL)
            self._add_function(draft, function, glimpses)

    def add_legacy(self, function: Any, glimpses: list[Any]) -> None:
        """The one `function_call` of the time before there were several."""
        if not isinstance(function, dict):
            raise WrongShape(f"function_call is {type(function).__name__}, not an object")
        draft = self._drafts[0] if self._drafts else self._new(0)
        draft.is_legacy = True
        self._add_function(draft, function, glimpses)

    def refuse(self, written: str, why: str) -> None:
        """What the model wrote was refused by its provider: the one call of this reply, and not one that can be run.

        Its name is looked for so that the model recognises its call; what it wrote is never read as arguments.
        """
        name, arguments = _attempted(written)
        if not name:
            name = next((name for name in self._names.declared() if name in written), UNKNOWN_TOOL)
        self._drafts.clear()
        draft = self._new(0)
        draft.name, draft.arguments, draft.refused = name, [arguments], why

    def parts(self) -> list[CallPart]:
        """The calls in their order. One without an id, or with another's, is given its own by the runtime."""
        return [self._part(draft) for draft in sorted(self._drafts, key=lambda draft: draft.index) if draft.is_call]

    def _draft(self, index: int | None, call_id: Any, name: Any) -> _Draft:
        """The call a piece belongs to: the newest with its index. Some servers give every call the index 0, or none;
        then an id that is known finds its call, and a new id with a name begins another. A new id alone does not:
        there are servers that make one up for each piece."""
        newest = self._newest.get(index)
        if newest is None:
            return self._new(index)
        if call_id and newest.call_id and call_id != newest.call_id:
            for draft in self._drafts:
                if draft.call_id == call_id:
                    return draft
            if name:
                return self._new(index)
        return newest

    def _new(self, index: int | None) -> _Draft:
        """A new call; one whose index is taken stands behind all others."""
        taken = {draft.index for draft in self._drafts}
        draft = _Draft(max(taken, default=-1) + 1 if index is None or index in taken else index)
        self._drafts.append(draft)
        self._newest[index] = draft
        return draft

    def _add_function(self, draft: _Draft, function: dict[str, Any], glimpses: list[Any]) -> None:
        name = function.get("name")
        if isinstance(name, str) and name != draft.name:  # a server that repeats the name means the same call
            draft.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = dumps(arguments).decode()
        elif arguments is not None and not isinstance(arguments, str):
            raise WrongShape(f"the arguments of {draft.name!r} are {type(arguments).__name__}, not a string")
        _keep(draft.of_function, function, _KNOWN_OF_FUNCTION)
        if arguments:
            draft.arguments.append(arguments)
            shown = self._names.from_wire(draft.name)
            glimpses.append(ArgumentsDelta(call_id=draft.call_id, name=showable(shown), text=showable(arguments)))

    def _part(self, draft: _Draft) -> CallPart:
        raw = mended("".join(draft.arguments))
        arguments = _object(raw) if draft.refused is None else None
        kept = {key: value for key, value in (("call", draft.of_call), ("function", draft.of_function)) if value}
        return CallPart(
            call_id=draft.call_id,
            name=self._names.from_wire(mended(draft.name)),
            arguments=arguments,
            raw_arguments=raw if arguments is None else None,
            refused=draft.refused,
            opaque={OPAQUE: storable(kept)} if kept else {},
        )


def _object(raw: str) -> dict[str, Any] | None:
    """The arguments, when they are a JSON object. None at all are an empty one: a tool may want none."""
    if not raw.strip():
        return {}
    try:
        value = from_json(raw, allow_inf_nan=False)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _attempted(written: str) -> tuple[str, str]:
    """The name and the arguments in what a model wrote, where it wrote them as JSON; else no name, and all of it."""
    try:
        value = from_json(written)
    except ValueError:
        return "", written
    if not isinstance(value, dict) or not isinstance(name := value.get("name"), str):
        return "", written
    arguments = value.get("arguments", value.get("parameters"))
    return name, arguments if isinstance(arguments, str) else dumps(arguments if arguments is not None else {}).decode()


def _custom(piece: dict[str, Any]) -> dict[str, Any]:
    """A call of a free-text tool: its text is no JSON object, and the model is told so like of any other."""
    custom = piece.get("custom")
    return {"name": custom.get("name"), "arguments": custom.get("input")} if isinstance(custom, dict) else {}


def _keep(kept: dict[str, Any], piece: dict[str, Any], known: frozenset[str]) -> None:
    if not piece.keys() <= known:
        kept.update({key: value for key, value in piece.items() if key not in known and value is not None})
