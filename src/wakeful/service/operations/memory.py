"""What may be asked about an agent's memory: what is in it, what it says, and to correct or forget it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation, check_no_tool

if TYPE_CHECKING:
    from wakeful.views.memory_records import MemoryRecord, WorkingMemoryState

_ENTRY = "wakeful.views.memory_records.MemoryRecord"
PAGE = 100


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """Entries of an agent: the newest, or those nearest to some words."""

    agent: str
    find: str | None = None
    """Words: the entries nearest to them come first."""
    limit: int = PAGE
    after: str | None = None
    """The last entry of the page before."""


@dataclass(frozen=True, slots=True)
class MemoryName:
    """One entry by its handle, and who asks."""

    agent: str
    ref: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """What an entry is to say."""

    agent: str
    ref: str
    text: str
    """What the entry is to say."""
    by: str = ""


@dataclass(frozen=True, slots=True)
class MemoryOwner:
    """The agent whose working memory is meant."""

    agent: str


async def _list(opened: OpenStore, asked: MemoryQuery) -> "list[MemoryRecord]":
    from wakeful.service.queries.memory import memory_entries

    return await memory_entries(opened.store, asked.agent, find=asked.find, limit=asked.limit, after=asked.after)


async def _show(opened: OpenStore, asked: MemoryName) -> "MemoryRecord":
    from wakeful.service.queries.memory import memory_entry

    return await memory_entry(opened.store, asked.agent, asked.ref)


async def _working(opened: OpenStore, asked: MemoryOwner) -> "WorkingMemoryState":
    from wakeful.service.queries.memory import working_memory

    return await working_memory(opened.store, asked.agent)


async def _edit(opened: OpenStore, asked: MemoryEdit) -> "MemoryRecord":
    from wakeful.service.commands.memory import edit_memory

    check_no_tool("its memory")
    return await edit_memory(opened.engine, asked.agent, asked.ref, asked.text, by=asked.by)


async def _forget(opened: OpenStore, asked: MemoryName) -> "MemoryRecord":
    from wakeful.service.commands.memory import forget_memory

    check_no_tool("its memory")
    return await forget_memory(opened.engine, asked.agent, asked.ref, by=asked.by)


LIST_MEMORY = Operation("memory.list", "observe", MemoryQuery, _ENTRY, _list, many=True)
SHOW_MEMORY = Operation("memory.show", "observe", MemoryName, _ENTRY, _show)
SHOW_WORKING_MEMORY = Operation(
    "memory.working", "observe", MemoryOwner, "wakeful.views.memory_records.WorkingMemoryState", _working
)
EDIT_MEMORY = Operation("memory.edit", "operate", MemoryEdit, _ENTRY, _edit, repeatable=True)
FORGET_MEMORY = Operation("memory.forget", "operate", MemoryName, _ENTRY, _forget, repeatable=True)
