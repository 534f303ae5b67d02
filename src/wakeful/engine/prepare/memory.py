"""What a turn that begins is shown of its agent's memory: the snapshot of working memory for the prompt, what changed
since then for the end of the conversation, and entries that were found for the message."""

import asyncio
from dataclasses import dataclass

import apsw

from wakeful.contracts.events import ContextItem, MemoryProjected, MissingFact
from wakeful.contracts.memory import WorkingMemorySnapshot
from wakeful.decisions.memory.working_memory import delta_since, delta_words, for_reader, snapshot_words
from wakeful.engine.memory_desk import NOTHING_RECALLED, MemoryDesk, Recollection
from wakeful.ports import Store

MAX_SECONDS = 10.0
"""How long is searched for a message; a turn that could not wait for more goes on without."""


@dataclass(frozen=True, slots=True)
class MemoryMaterial:
    """What was found out for a turn."""

    snapshot: str = ""
    """The block of the prompt."""
    projected: MemoryProjected | None = None
    recalled: Recollection = NOTHING_RECALLED
    missing: tuple[MissingFact, ...] = ()

    @property
    def is_shown(self) -> bool:
        return bool(self.snapshot or self.recalled.text)

    @property
    def refs(self) -> tuple[ContextItem, ...]:
        return self.recalled.used.entries if self.recalled.used is not None else ()


NO_MEMORY = MemoryMaterial()


async def memory_of(store: Store, desk: MemoryDesk, thread_id: str, question: str | None) -> MemoryMaterial:
    """For a turn that begins. With a question, memory is searched for it. Does not raise: what fails is missing."""
    snapshot, projected = await _working_memory(store, desk, thread_id)
    if question is None or not question.strip():
        return MemoryMaterial(snapshot, projected)
    try:
        async with asyncio.timeout(MAX_SECONDS):
            found = await desk.recall(question)
    except TimeoutError:
        return MemoryMaterial(snapshot, projected, missing=_missing(f"no answer within {MAX_SECONDS:.0f} s"))
    except apsw.Error as damage:
        return MemoryMaterial(snapshot, projected, missing=_missing(str(damage)))
    return MemoryMaterial(snapshot, projected, found)


async def _working_memory(store: Store, desk: MemoryDesk, thread_id: str) -> tuple[str, MemoryProjected | None]:
    held = await store.working_memory(desk.agent_id)
    if held is None:
        return "", None
    before = await store.prompted_memory(desk.agent_id, thread_id)
    knows = before is not None and before.snapshot_revision == held.snapshot_revision
    since = before.revision if knows and before is not None else held.snapshot_revision
    current = for_reader(WorkingMemorySnapshot.model_validate(held.current), desk.whose)
    delta = delta_since(current, held.field_revisions, since, held.revision, held.turn_index, "a turn begins")
    projected = MemoryProjected(
        snapshot_revision=held.snapshot_revision,
        revision=held.revision,
        compression_epoch=held.compression_epoch,
        changed_fields=delta.changed_fields if delta is not None else (),
        text=desk.hide(delta_words(delta)) if delta is not None else "",
    )
    snapshot = for_reader(WorkingMemorySnapshot.model_validate(held.snapshot), desk.whose)
    return desk.hide(snapshot_words(snapshot)), projected


def _missing(why: str) -> tuple[MissingFact, ...]:
    return (MissingFact(fact=f"memories for the message: {why[:500]}", status="blocked", needed_for="memory"),)
