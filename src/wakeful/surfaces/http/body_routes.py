"""Routes of the table that take a body: what a request holds is read here, once, against the models of its route.

The framework describes these routes in OpenAPI, and its own reading of them was a quarter of what accepting a message
cost: dependencies solved anew for each request, and two stacks of exits that nothing is put on.
"""

import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from wakeful.contracts.errors import NotEntitled
from wakeful.surfaces.http.guard import caller_of
from wakeful.surfaces.http.request_keys import IDEMPOTENCY, KEY_PATTERN

LONGEST_NAME = 500
_NAME: TypeAdapter[str] = TypeAdapter(Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)])
_KEY: TypeAdapter[str] = TypeAdapter(Annotated[str, Field(pattern=KEY_PATTERN)])


@dataclass(frozen=True, slots=True)
class RequestParts:
    """What a request of a route holds: names in its path, perhaps a body, perhaps a key."""

    names: tuple[str, ...]
    model: type[BaseModel] | None
    """Of the body; None: the endpoint refuses one."""
    is_needed: bool

    async def read(self, request: Request) -> dict[str, Any]:
        """The arguments of the endpoint. Raises RequestValidationError with everything that is wrong."""
        found: dict[str, Any] = {}
        wrong: list[Any] = []
        for name in self.names:
            _take(found, wrong, name, ("path", name), _NAME, request.path_params[name])
        key = request.headers.get(IDEMPOTENCY)
        found["idempotency_key"] = None
        if key is not None:
            _take(found, wrong, "idempotency_key", ("header", IDEMPOTENCY), _KEY, key)
        if self.model is not None:
            said = _parsed(await request.body())
            if said is not None:
                try:
                    found["asked"] = self.model.model_validate(said)
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

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)  # it says which methods there are
            return
        request = Request(scope, receive, send)
        require(request, self.scope)
        answer = await self.endpoint(request, **await self.parts.read(request))
        await answer(scope, receive, send)


def require(request: Request, scope: str) -> None:
    """Raises NotEntitled for a caller without the scope."""
    caller = caller_of(request.scope)
    if not caller.may(scope):
        raise NotEntitled(
            f"{caller.name} may not do this: it needs the scope `{scope}`",
            f"Make a token that has it: wakeful token create NAME --scope {scope}",
        )


def _parsed(body: bytes) -> Any:
    """None: there is nothing. The door let nothing through that does not call itself JSON."""
    if not body:
        return None
    try:
        return json.loads(body)
    except json.JSONDecodeError as error:
        words = f"the body is no JSON: {error.msg} (character {error.pos})"
        wrong = {"type": "json_invalid", "loc": ("body",), "msg": words, "input": {}}
        raise RequestValidationError([wrong]) from error
    except ValueError as error:
        raise HTTPException(400, "the body is no JSON: it is not UTF-8") from error


def _take(
    found: dict[str, Any], wrong: list[Any], name: str, place: tuple[str, ...], adapter: TypeAdapter[str], value: str
) -> None:
    try:
        found[name] = adapter.validate_python(value)
    except ValidationError as error:
        wrong += _errors(error, place)


def _errors(error: ValidationError, place: tuple[str, ...]) -> list[Any]:
    return [{**each, "loc": (*place, *each["loc"])} for each in error.errors(include_url=False)]
