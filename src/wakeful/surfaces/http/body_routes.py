"""Routes that take a body: what a request holds is read here, once, against the models of its route.

The framework describes these routes in OpenAPI, and its own reading of them was a quarter of what accepting a message
cost: dependencies solved anew for each request, and two stacks of exits that nothing is put on. They are answered by
`route_index`, in front of it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wakeful.contracts.errors import InvalidValue, NotEntitled
from wakeful.surfaces.http.guard import AT_ONCE, BODY, HEADERS, caller_of
from wakeful.surfaces.http.request_keys import IDEMPOTENCY, KEY_PATTERN

LONGEST_NAME = 500
WORDS = "text"
"""The field of a body that holds words to an agent."""
SEE = "See /openapi.json for what is accepted."
_NAME: TypeAdapter[str] = TypeAdapter(Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)])
_KEY: TypeAdapter[str] = TypeAdapter(Annotated[str, Field(pattern=KEY_PATTERN)])
_KEY_HEADER = IDEMPOTENCY.lower()


@dataclass(frozen=True, slots=True)
class RequestParts:
    """What a request of a route holds: names in its path, perhaps a body, perhaps a key, a query, other headers."""

    names: tuple[str, ...]
    model: type[BaseModel] | None
    """Of the body; None: there is none."""
    is_needed: bool
    query: type[BaseModel] | None = None
    """Its fields are arguments of the endpoint; None: there is no query."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """From arguments of the endpoint to names of headers, in small letters."""

    def read(self, request: Request) -> dict[str, Any]:
        """The arguments of the endpoint. Raises RequestValidationError with everything that is wrong."""
        scope = request.scope
        body, headers = scope["state"][BODY], scope["state"][HEADERS]
        found: dict[str, Any] = {name: headers.get(header) for name, header in self.headers.items()}
        wrong: list[Any] = []
        for name in self.names:
            value = found[name] = scope["path_params"][name]
            if len(value) > LONGEST_NAME:  # none is empty: such a path is no path of the route
                _take(found, wrong, name, ("path", name), _NAME, value)
        key = headers.get(_KEY_HEADER)
        found["idempotency_key"] = None
        if key is not None:
            _take(found, wrong, "idempotency_key", ("header", IDEMPOTENCY), _KEY, key)
        asked = dict(request.query_params) if scope["query_string"] else {}
        if asked:
            refuse_unknown_query(asked, () if self.query is None else self.query.model_fields)
        if self.query is not None:
            try:
                found |= dict(self.query.model_validate(asked))
            except ValidationError as error:
                wrong += _errors(error, ("query",))
        if self.model is None:
            if body.strip() not in (b"", b"{}", b"null"):
                raise InvalidValue("invalid_request", "", "this route takes no body", SEE)
        else:
            said = _parsed(body)
            if said is not None:
                try:
                    found["asked"] = self.model.__pydantic_validator__.validate_python(said)
                except ValidationError as error:
                    wrong += _errors(error, ("body",))
            elif self.is_needed:
                wrong.append({"type": "missing", "loc": ("body",), "msg": "Field required", "input": None})
            else:
                found["asked"] = self.model()
        if wrong:
            raise RequestValidationError(wrong)
        return found


class BodyRoute(APIRoute):
    """A route whose requests are read by their parts."""

    parts: RequestParts
    scope: str

    def names_in(self, words: Sequence[str]) -> dict[str, str] | None:
        """The names in a path that has as many words as the route's and, where that is none, its first and last one.
        None: it is another route's."""
        for place, own in self._fixed:
            if words[place] != own:
                return None
        names = {name: words[place] for place, name in self._named}
        return names if all(names.values()) else None

    async def respond(self, request: Request) -> Response:
        """Raises what is to be told as an error; nothing has been sent then."""
        require(request, self.scope)
        answer: Response = await self.endpoint(request, **self.parts.read(request))
        return answer

    def prepare(self, parts: RequestParts, scope: str) -> None:
        self.parts, self.scope = parts, scope
        words = self.path.split("/")
        self._named = [(place, word[1:-1]) for place, word in enumerate(words) if word[:1] == "{"]
        self._fixed = [(place, word) for place, word in enumerate(words[:-1]) if place != 1 and word[:1] != "{"]


class JsonAnswer(Response):
    """JSON that is there as bytes."""

    def __init__(self, body: bytes) -> None:
        self.status_code, self.background, self.body = 200, None, body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        at_once = scope["state"].get(AT_ONCE)
        if at_once is None or not at_once(scope, self.body):
            self.raw_headers = [(b"content-length", b"%d" % len(self.body)), (b"content-type", b"application/json")]
            await super().__call__(scope, receive, send)


def require(request: Request, scope: str) -> None:
    """Raises NotEntitled for a caller without the scope."""
    caller = caller_of(request.scope)
    if not caller.may(scope):
        raise NotEntitled(
            f"{caller.name} may not do this: it needs the scope `{scope}`",
            f"Make a token that has it: wakeful token create NAME --scope {scope}",
        )


def refuse_unknown_query(asked: Iterable[str], names: Iterable[str]) -> None:
    """Raises InvalidValue for a field of a query that its route does not know."""
    known = sorted(names)
    unknown = sorted(set(asked).difference(known))
    if unknown:
        told = f"Known here: {', '.join(known)}." if known else "This route takes none."
        raise InvalidValue("invalid_request", "", f"there is no field {unknown[0]!r} here", told)


def _parsed(body: bytes) -> Any:
    """None: there is nothing. The door let nothing through that does not call itself JSON."""
    if not body:
        return None
    try:
        is_utf8 = body[:1] == b"{" and body[1:2] != b"\0"  # as almost every one
        said = _JSON.decode(body.decode("utf-8" if is_utf8 else json.detect_encoding(body), "surrogatepass"))
    except json.JSONDecodeError as error:
        words = f"the body is not JSON: {error.msg} (character {error.pos})"
        wrong = {"type": "json_invalid", "loc": ("body",), "msg": words, "input": {}}
        raise RequestValidationError([wrong]) from error
    except UnicodeDecodeError as error:
        raise HTTPException(400, "the body is not JSON: it is not UTF-8") from error
    except ValueError as error:
        raise HTTPException(400, "the body has a number with too many digits") from error
    if b"\\u" in body:
        _check_text(said)
    return said


def _check_text(said: Any) -> None:
    """Raises InvalidValue for half of a surrogate pair: it is no text, and no name, and nothing can keep it. In words
    to an agent it stands where somebody cut a text, and they are kept without it."""
    rest = {name: value for name, value in said.items() if name != WORDS} if isinstance(said, dict) else said
    try:
        json.dumps(rest, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidValue(
            "invalid_text", "", "the body has half of a surrogate pair", "Send plain Unicode text."
        ) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a key that stands there twice, readers believe different ones. Raises InvalidValue."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, said in Counter(key for key, _ in pairs).items() if said > 1)
        raise InvalidValue("duplicate_key", "", f"the key {twice!r} appears twice in one object", "Send it once.")
    return found


_JSON = json.JSONDecoder(object_pairs_hook=_object)


def _take(
    found: dict[str, Any], wrong: list[Any], name: str, place: tuple[str, ...], adapter: TypeAdapter[str], value: str
) -> None:
    try:
        found[name] = adapter.validate_python(value)
    except ValidationError as error:
        wrong += _errors(error, place)


def _errors(error: ValidationError, place: tuple[str, ...]) -> list[Any]:
    return [{**each, "loc": (*place, *each["loc"])} for each in error.errors(include_url=False)]
