"""The artifacts of turns: listed, and read with the secrets of their run hidden."""

from collections.abc import Iterable

from wakeful.contracts.errors import ArtifactNotFound
from wakeful.ports import Store, TurnRow
from wakeful.service.queries.turns import EventReader, find_turn, turn_events
from wakeful.views.store_records import Artifact, ArtifactContent, artifacts_of

LOOKED_THROUGH = 1_000
"""How many of the newest turns are looked through for an artifact whose turn is not named."""
SHORTEST = 6
"""Characters of a hash that may stand for all of it."""


async def list_artifacts(store: Store, turn: str | None, *, keys: Iterable[str]) -> list[Artifact]:
    """The artifacts of a turn, or of the newest one. Raises TurnNotFound."""
    row = await find_turn(store, turn)
    found, reader = await _of_turn(store, row, keys)
    return [each.model_copy(update={"preview": reader.secrets.hide(each.preview)}) for each in found]


async def read_artifact(
    store: Store, artifact_id: str, turn: str | None, *, reveal: bool, keys: Iterable[str]
) -> ArtifactContent:
    """One artifact with its bytes. Without `reveal`, the secrets of its run are hidden in text.

    Raises ArtifactNotFound.
    """
    rows = [await find_turn(store, turn)] if turn is not None else await store.turns(limit=LOOKED_THROUGH)
    for row in rows:
        found, reader = await _of_turn(store, row, keys)
        meant = [each for each in found if _is_meant(artifact_id, each.artifact_id)]
        if len(meant) > 1:
            names = " or ".join(each.artifact_id for each in meant[:5])
            raise ArtifactNotFound(f"{artifact_id!r} stands for several artifacts of turn {row.turn_id}", names)
        for artifact in meant:
            data = await store.get_blob(artifact.artifact_id)
            if artifact.is_text and not reveal:
                data = reader.secrets.hide(data.decode("utf-8", "replace")).encode()
            known = artifact.model_copy(update={"preview": reader.secrets.hide(artifact.preview)})
            return ArtifactContent(**known.model_dump(), data=data)
    where = (
        f"turn {rows[0].turn_id}" if turn is not None else f"the newest {LOOKED_THROUGH:,} turns of {store.location}"
    )
    raise ArtifactNotFound(
        f"there is no artifact {artifact_id!r} in {where}",
        "List them: wakeful artifacts TURN, or store.artifacts(turn).",
    )


async def _of_turn(store: Store, row: TurnRow, keys: Iterable[str]) -> tuple[list[Artifact], EventReader]:
    facts = await turn_events(store, row)
    found = artifacts_of(row.turn_id, facts)
    reader = EventReader(store, keys=keys)
    if found:
        await reader.learn(facts)
    return found, reader


def _is_meant(name: str, digest: str) -> bool:
    bare = name.removeprefix("sha256:")
    return digest == name or (len(bare) >= SHORTEST and digest.removeprefix("sha256:").startswith(bare))
