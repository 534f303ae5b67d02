"""Artifacts: in which turns each was left. What it is stands in their facts, and its bytes in a blob."""

from typing import NamedTuple, Protocol

from wakeful.ports.tables import RowQuery, Rows, Table, TableIndex


class ArtifactRow(NamedTuple):
    """An artifact that a call of a turn left."""

    artifact_id: str
    """The hash of its bytes: the same bytes in two turns have two rows."""
    turn_id: str
    agent_id: str
    seq: int
    """The newest event of the turn that names it."""
    expired_at: int | None = None
    """When its bytes were removed."""


ARTIFACTS_BY_ID = RowQuery(("artifact_id", "turn_id"), served_by="key")
TURNS_OF_ARTIFACT = RowQuery(("turn_id",), equal=("artifact_id",), served_by="key")
ARTIFACTS_OF_TURN = RowQuery(("artifact_id",), equal=("turn_id",), served_by="artifacts_of_turn")

ARTIFACTS = Table(
    "artifacts",
    ArtifactRow,
    key=("artifact_id", "turn_id"),
    indexes=(TableIndex("artifacts_of_turn", ("turn_id", "artifact_id")),),
    queries=(ARTIFACTS_BY_ID, TURNS_OF_ARTIFACT, ARTIFACTS_OF_TURN),
)


class Artifacts(Rows, Protocol):
    """Reads where artifacts are."""

    async def turns_of_artifact(self, artifact_id: str, *, limit: int) -> list[ArtifactRow]:
        """The turns that left it, newest first: ids of turns follow the clock."""
        return await self.list_rows(ARTIFACTS, TURNS_OF_ARTIFACT, artifact_id, limit=limit, backwards=True)

    async def artifacts_from(self, beginning: str, *, limit: int) -> list[str]:
        """Artifacts whose id begins with this, in order: a step for each, however many turns left it."""
        found: list[str] = []
        while len(found) < limit:
            page = await self.list_rows(ARTIFACTS, ARTIFACTS_BY_ID, after=found[-1:] or (beginning,), limit=1)
            if not page or not page[0].artifact_id.startswith(beginning):
                break
            found.append(page[0].artifact_id)
        return found
