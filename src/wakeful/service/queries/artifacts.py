"""The artifacts of turns: listed, and read with the secrets of their run hidden."""

from collections.abc import Iterable, Sequence

from wakeful.contracts.envelope import iso
from wakeful.contracts.errors import ArtifactExpired, ArtifactNotFound
from wakeful.ports import Store, TurnRow
from wakeful.ports.artifacts import ARTIFACTS
from wakeful.service.queries.turns import EventReader, find_turn, turn_events
from wakeful.views.artifacts import artifacts_of
from wakeful.views.store_records import Artifact, ArtifactContent

SHA256 = "sha256:"
"""What every id begins with, and nobody has to write."""
SHORTEST = 6
"""Characters of a hash that may stand for all of it."""
NAMED = 5
"""How many ids an error names."""


async def list_artifacts(store: Store, turn: str | None, *, keys: Iterable[str]) -> list[Artifact]:
    """The artifacts of a turn, or of the newest one. Raises TurnNotFound."""
    row = await find_turn(store, turn)
    found, reader = await _of_turn(store, row, keys)
    return [each.model_copy(update={"preview": reader.secrets.hide(each.preview)}) for each in found]


async def read_artifact(
    store: Store, artifact_id: str, turn: str | None, *, reveal: bool, keys: Iterable[str]
) -> ArtifactContent:
    """One artifact with its bytes. Without `reveal`, the secrets of its run are hidden in text.

    Raises ArtifactNotFound, or ArtifactExpired.
    """
    row = await find_turn(store, turn) if turn is not None else await _turn_with(store, artifact_id)
    found, reader = await _of_turn(store, row, keys) if row is not None else ([], None)
    meant = [each for each in found if _is_meant(artifact_id, each.artifact_id)]
    if len(meant) > 1:
        raise _ambiguous(artifact_id, [each.artifact_id for each in meant])
    if row is None or reader is None or not meant:
        where = f"turn {row.turn_id}" if row is not None and turn is not None else store.location
        raise ArtifactNotFound(
            f"there is no artifact {artifact_id!r} in {where}",
            "List them: wakeful artifacts TURN, or store.artifacts(turn).",
        )
    artifact = meant[0]
    known_of = await store.get_row(ARTIFACTS, artifact.artifact_id, row.turn_id)
    if known_of is not None and known_of.expired_at is not None:
        raise ArtifactExpired(
            f"artifact {artifact_id} has expired: retention removed it on {iso(known_of.expired_at)[:10]}",
            "Its preview is still there: wakeful artifacts TURN. How long output is kept: [retention] spilled_output.",
        )
    data = await store.get_blob(artifact.artifact_id)
    if artifact.is_text and not reveal:
        data = reader.secrets.hide(data.decode("utf-8", "replace")).encode()
    known = artifact.model_copy(update={"preview": reader.secrets.hide(artifact.preview)})
    return ArtifactContent(**known.model_dump(), data=data)


async def _turn_with(store: Store, artifact_id: str) -> TurnRow | None:
    """The newest turn that left the artifact of this id, or of the one id that begins so."""
    whole = artifact_id if artifact_id.startswith(SHA256) else SHA256 + artifact_id
    there = await store.turns_of_artifact(whole, limit=1)
    if not there and len(whole) >= len(SHA256) + SHORTEST:
        ids = await store.artifacts_from(whole, limit=NAMED)
        if len(ids) > 1:
            raise _ambiguous(artifact_id, ids)
        there = await store.turns_of_artifact(ids[0], limit=1) if ids else []
    return await store.turn(there[0].turn_id) if there else None


def _ambiguous(artifact_id: str, ids: Sequence[str]) -> ArtifactNotFound:
    return ArtifactNotFound(f"{artifact_id!r} matches several artifacts", " or ".join(ids[:NAMED]))


async def _of_turn(store: Store, row: TurnRow, keys: Iterable[str]) -> tuple[list[Artifact], EventReader]:
    facts = await turn_events(store, row)
    found = artifacts_of(row.turn_id, facts)
    reader = EventReader(store, keys=keys)
    if found:
        await reader.learn(facts)
    return found, reader


def _is_meant(name: str, digest: str) -> bool:
    bare = name.removeprefix(SHA256)
    return digest == name or (len(bare) >= SHORTEST and digest.removeprefix(SHA256).startswith(bare))
