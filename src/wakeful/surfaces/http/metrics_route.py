"""`GET /metrics`: what is counted and measured, as text that Prometheus reads."""

from fastapi import APIRouter, Depends, Response

from wakeful.service.operations.operation import NoRequest, OpenStore
from wakeful.service.operations.process import METRICS
from wakeful.surfaces.http.operation_routes import ERRORS, needs_scope

TEXT = "text/plain; version=0.0.4; charset=utf-8"


def metrics_router(opened: OpenStore) -> APIRouter:
    """The one route."""
    router = APIRouter(dependencies=[Depends(needs_scope("observe"))], tags=["process"])

    @router.get(
        "/metrics",
        summary="Metrics for Prometheus",
        description="Scope: `observe`. Off unless `[telemetry] metrics_route` of the owner's file is true.",
        response_class=Response,
        responses={**ERRORS, 200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics() -> Response:
        found = await METRICS.handler(opened, NoRequest())
        return Response(found.text, headers={"content-type": TEXT})

    return router
