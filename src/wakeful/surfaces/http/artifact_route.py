"""`GET /artifacts/{artifact_id}`: the bytes of a long result. They are somebody's text, and never a page of ours."""

import re
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from wakeful.service.operations.artifacts import SHOW_ARTIFACT, ArtifactName
from wakeful.service.operations.operation import OpenStore
from wakeful.surfaces.http.operation_routes import ERRORS, needs_scope, require

SAFE = ("text/plain", "application/json", "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")
"""Types that are told as they are; everything else is bytes."""


def artifact_router(opened: OpenStore) -> APIRouter:
    """The one route."""
    router = APIRouter(dependencies=[Depends(needs_scope("observe"))], tags=["artifacts"])
    bytes_of = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}

    @router.get(
        "/artifacts/{artifact_id}",
        summary="Show (artifacts)",
        description="Scope: `observe`. The bytes of an artifact, as a file to be saved; secrets in text are redacted.",
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
