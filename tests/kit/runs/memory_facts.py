"""The part of the story of all tables that is about memory."""

from kit.runs.store_facts import AGENT, NOON, THREAD, TURN
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    AnyEvent,
    CompactionCompleted,
    ContextItem,
    MemoryEntryEdited,
    MemoryEntryForgotten,
    MemoryEpisodeFinalized,
    MemoryProjected,
    MemoryTurnRecorded,
    MemoryUsed,
)
from wakeful.contracts.events.context import WindowStart
from wakeful.contracts.memory import MemoryLine, TurnMemoryDelta, WorkingMemorySnapshot
from wakeful.ports import Claim, Store

OTHER_TURN = "turn_9"


def recorded(index: int, *decisions: MemoryLine, turn: str = TURN, **fields: str) -> Fact:
    """A turn that is over, with what it decided."""
    told = TurnMemoryDelta(turn_index=index, messages=1, decisions=decisions, touched_files=(f"file{index}.py",))
    now = WorkingMemorySnapshot(recent_decisions=decisions, working_set_files=(f"file{index}.py",))
    return of_turn(MemoryTurnRecorded(turn=told, working_memory=now, **fields), turn)


def of_turn(event: AnyEvent, turn: str = TURN) -> Fact:
    return Fact(event, NOON + 20, THREAD, turn)


def used(*refs: str) -> Fact:
    return of_turn(MemoryUsed(use="get", entries=tuple(ContextItem(ref=ref, kind="memory") for ref in refs)))


def folded() -> CompactionCompleted:
    return CompactionCompleted(
        compaction_id="comp_1",
        trigger="manual",
        summary_ref="agent_1:1",
        continuation_ref="agent_1:1",
        tokens_before=9,
        tokens_after=1,
        window=WindowStart(from_turn=TURN, items=0),
        duration_ms=1,
        cut=0,
        summary=UserItem(parts=(Text("so far"),), origin="runtime"),
    )


PRICE = MemoryLine(text="The price is 7.", source="brief:brief_1")
COLOUR = MemoryLine(text="It is blue.", source="brief:brief_2")
MEMORY: list[list[Fact]] = [
    [recorded(1, PRICE)],
    [of_turn(MemoryProjected(snapshot_revision=0, revision=1, changed_fields=("recent_decisions",), text="- 7"))],
    [recorded(2, PRICE, COLOUR)],
    [of_turn(MemoryEpisodeFinalized(episode_id=f"ep_{TURN}", boundary_reason="result"))],
    [of_turn(MemoryEpisodeFinalized(episode_id="ep_of_nobody", boundary_reason="result"))],
    [recorded(3, PRICE, COLOUR, workspace_id="ws_1", principal="ann")],
    [of_turn(folded())],
    [used("mem_1", "mem_2")],
    [used("mem_1")],
]
"""What turns of the first agent add, and are shown."""
MEMORY_OUTSIDE: list[list[Fact]] = [
    [Fact(MemoryEntryEdited(entry="brief:brief_1", entry_kind="brief", text="The price is 8.", edited_by="ann"), NOON)],
    [Fact(MemoryEntryForgotten(entry="brief:brief_2", entry_kind="brief", forgotten_by="ann"), NOON + 1)],
    [Fact(MemoryEntryForgotten(entry="brief:brief_1", entry_kind="brief", forgotten_by="ann"), NOON + 2)],
]
"""What a person corrects."""


async def tell_memory(store: Store, claim: Claim, second: Claim) -> None:
    for facts in MEMORY:
        await store.append(claim, facts)
    for facts in MEMORY_OUTSIDE:
        await store.admit(AGENT, facts)
    await store.append(claim, [recorded(4, PRICE)])
    await store.append(second, [recorded(1, turn=OTHER_TURN)])
    projected = MemoryProjected(snapshot_revision=0, revision=1)
    await store.append(second, [of_turn(projected, OTHER_TURN)])
    ended = MemoryEpisodeFinalized(episode_id=f"ep_{OTHER_TURN}", boundary_reason="turn_cap")
    await store.append(second, [of_turn(ended, OTHER_TURN)])
