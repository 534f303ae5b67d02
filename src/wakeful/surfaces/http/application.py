"""The application: routes of the table, events, deliveries, health, metrics, and errors in one shape."""

import asyncio
import logging
import re
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException

from wakeful._version import __version__
from wakeful.contracts.errors import NotEntitled, WakefulError
from wakeful.service.access import TokenBook
from wakeful.service.operations.artifacts import SHOW_ARTIFACT, ArtifactName
from wakeful.service.operations.operation import NoRequest, OpenStore
from wakeful.service.operations.process import METRICS
from wakeful.service.operations.triggers import DELIVER, TriggerDelivery
from wakeful.surfaces.http.body_routes import require
from wakeful.surfaces.http.chat_routes import chat_router
from wakeful.surfaces.http.error_answers import HttpProblem, problem, problem_of
from wakeful.surfaces.http.event_routes import event_router
from wakeful.surfaces.http.event_streams import OpenStreams
from wakeful.surfaces.http.guard import API_VERSION, caller_of, count_refusal
from wakeful.surfaces.http.openapi_document import describe
from wakeful.surfaces.http.operation_routes import ERRORS, needs_scope, operation_router, refuse_unknown_fields
from wakeful.surfaces.http.route_index import RouteIndex, add_routes
from wakeful.surfaces.http.task_routes import task_router
from wakeful.views.store_records import ArtifactContent
from wakeful.views.trigger_records import DeliveryReceipt

_log = logging.getLogger("wakeful.http")
_CODES = {404: "not_found", 405: "method_not_allowed", 400: "bad_request"}
JSON = "application/json"
SAFE = ("text/plain", "application/json", "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")
"""Types that are told as they are; everything else is bytes."""
_REFUSED = {
    "unknown_trigger": 404,
    "revoked": 410,
    "agent_stopped": 409,
    "key_reused": 409,
    "too_large": 413,
    "secret_missing": 503,
}
"""Of a refused delivery; all other reasons are 422, and a signature that does not hold is 401."""


def application(opened: OpenStore, closing: asyncio.Event, tokens: TokenBook | None = None) -> FastAPI:
    """Everything behind the door, for one store and the runtime on it. Streams end when `closing` is set, and when the
    token of their reader is revoked."""
    app = FastAPI(
        title="wakeful",
        version=API_VERSION,
        summary="A durable runtime for AI agents.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.add_exception_handler(WakefulError, _told)
    app.add_exception_handler(RequestValidationError, _wrong_request)
    app.add_exception_handler(HTTPException, _framework)
    app.add_exception_handler(Exception, _failed)

    @app.get("/health", tags=["process"])
    async def health(request: Request) -> dict[str, str]:
        found = {"status": "draining" if closing.is_set() else "ok", "version": __version__}
        if opened.process is not None and caller_of(request.scope).is_local:
            found |= {"home": opened.process.home_dir, "store": opened.process.store}
        return found

    @app.get(
        "/metrics",
        tags=["process"],
        response_class=Response,  # its errors are JSON like all others
        responses={**ERRORS, 200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        dependencies=[Depends(needs_scope("observe"))],
    )
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse((await METRICS.handler(opened, NoRequest())).text)

    @app.post(
        "/callbacks/{mode}/{token}",
        tags=["triggers"],
        responses={
            **ERRORS,
            200: {"model": DeliveryReceipt, "description": "It came before, and was taken then."},
            202: {"model": DeliveryReceipt, "description": "It was taken."},
        },
        openapi_extra={"requestBody": {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}},
    )
    async def deliver(request: Request, mode: str, token: str) -> Response:
        return await _delivered(request, opened)

    streams = OpenStreams(closing, tokens)
    add_routes(
        app,
        [
            event_router(opened, streams),
            artifact_router(opened),
            chat_router(opened, streams),
            task_router(opened, streams),
            operation_router(lambda _: opened),
        ],
    )
    describe(app)
    return app


def front(app: FastAPI) -> RouteIndex:
    """The application behind the index of its routes."""
    return RouteIndex(app.router.routes, _said, app)


def artifact_router(opened: OpenStore) -> APIRouter:
    """The bytes of artifacts. They are somebody's text: a file to be saved, and never a page of ours."""
    router = APIRouter(
        dependencies=[Depends(needs_scope("observe")), Depends(refuse_unknown_fields)], tags=["artifacts"]
    )
    bytes_of = {
        "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        JSON: {"schema": ArtifactContent.model_json_schema(mode="serialization")},
    }

    @router.get(
        "/artifacts/{artifact_id}",
        responses={**ERRORS, 200: {"description": "Its bytes, in its own type.", "content": bytes_of}},
        response_class=Response,
    )
    async def show(
        request: Request,
        artifact_id: Annotated[str, Path(min_length=1, max_length=500)],
        turn: Annotated[str | None, Query(description="The turn that left it, where it is known.")] = None,
        reveal: Annotated[bool, Query(description="With secrets; needs the scope `reveal`.")] = False,
    ) -> Response:
        if reveal:
            require(request, "reveal")
        found = await SHOW_ARTIFACT.handler(opened, ArtifactName(artifact_id, turn, reveal))
        if request.headers.get("accept", "").strip().lower() == JSON:
            return Response(found.model_dump_json(), media_type=JSON)
        kind = found.media_type.partition(";")[0].strip().lower()
        plain = kind if kind in SAFE else "text/plain" if found.is_text else "application/octet-stream"
        name = re.sub(r"\W+", "-", found.artifact_id)[:40]
        return Response(
            found.data,
            media_type=plain + ("; charset=utf-8" if plain.startswith("text/") else ""),
            headers={
                "content-disposition": f'attachment; filename="{name}"',
                "x-content-type-options": "nosniff",
                "content-security-policy": "sandbox; default-src 'none'",
            },
        )

    return router


async def _delivered(request: Request, opened: OpenStore) -> Response:
    delivery = TriggerDelivery(request.url.path, await request.body(), dict(request.headers))
    receipt = await DELIVER.handler(opened, delivery)
    if receipt.outcome == "refused":
        reason = receipt.reason or "refused"
        status = _REFUSED.get(reason, 401 if reason.startswith("signature") else 422)
        refusal = problem(status, reason, receipt.message or "the delivery was refused")
        count_refusal(request.scope, refusal)
        return _answer(refusal)
    shown = receipt.model_dump(mode="json", include={"outcome", "message_id", "hint_id"}, exclude_none=True)
    return JSONResponse(shown, status_code=202 if receipt.outcome == "accepted" else 200)


def _answer(found: HttpProblem) -> Response:
    return Response(found.body, found.status, media_type="application/json")


async def _said(request: Request, error: Exception) -> Response:
    """What a client is told, whatever was raised."""
    match error:
        case WakefulError():
            return await _told(request, error)
        case RequestValidationError():
            return await _wrong_request(request, error)
        case HTTPException():
            return await _framework(request, error)
    return await _failed(request, error)


async def _told(request: Request, error: Exception) -> Response:
    found = problem_of(error)
    if isinstance(error, NotEntitled):
        count_refusal(request.scope, found)
    return _answer(found)


async def _wrong_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    places = [_place(each) for each in error.errors()[:5]]
    return _answer(problem(422, "invalid_request", "; ".join(places), "See /openapi.json for what is accepted."))


def _place(each: "dict[str, object]") -> str:
    location = each["loc"]
    assert isinstance(location, tuple)
    where = ".".join(str(part) for part in location if part not in ("body", "query", "path"))
    kind, message = each["type"], str(each["msg"])
    if kind == "extra_forbidden":
        return f"there is no field {where!r} here"
    if kind == "missing":
        return f"{where} is missing" if where else "the body is missing"
    if not where and kind in ("model_type", "model_attributes_type", "dataclass_type", "dict_type"):
        return "the body is not a JSON object"
    return f"{where}: {message[:1].lower()}{message[1:]}" if where else message


async def _framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, asked = _CODES.get(error.status_code, "refused"), f"{request.method} {request.url.path}"
    message, hint = str(error.detail), "See /openapi.json for the routes."
    allowed = (error.headers or {}).get("Allow", "")
    if error.status_code == 404:
        message = f"there is nothing at {asked}"
    elif error.status_code == 405:
        message, hint = f"{asked} is not allowed", f"Use {allowed} there." if allowed else hint
    answer = _answer(problem(error.status_code, code, message, hint))
    if allowed:
        answer.headers["allow"] = allowed
    return answer


async def _failed(request: Request, error: Exception) -> Response:
    _log.error("a request failed: %s %s", request.method, request.url.path, exc_info=error)
    return _answer(problem_of(error))
