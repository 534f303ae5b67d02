"""What may be asked about artifacts: long results that are kept beside the log."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation
from wakeful.service.operations.turns import TurnName

if TYPE_CHECKING:
    from wakeful.views.store_records import Artifact, ArtifactContent


@dataclass(frozen=True, slots=True)
class ArtifactName:
    """An artifact by its id or enough of its beginning, and its turn where that is known."""

    artifact: str
    turn: str | None = None
    reveal: bool = False
    """Show secrets instead of [redacted]."""


async def _artifacts(opened: OpenStore, asked: TurnName) -> "list[Artifact]":
    from wakeful.service.queries.artifacts import list_artifacts

    return await list_artifacts(opened.store, asked.turn, keys=opened.keys())


async def _artifact(opened: OpenStore, asked: ArtifactName) -> "ArtifactContent":
    from wakeful.service.queries.artifacts import read_artifact

    return await read_artifact(opened.store, asked.artifact, asked.turn, reveal=asked.reveal, keys=opened.keys())


_RECORDS = "wakeful.views.store_records"
LIST_ARTIFACTS = Operation("artifacts.list", "observe", TurnName, f"{_RECORDS}.Artifact", _artifacts, many=True)
SHOW_ARTIFACT = Operation("artifacts.show", "observe", ArtifactName, f"{_RECORDS}.ArtifactContent", _artifact)
