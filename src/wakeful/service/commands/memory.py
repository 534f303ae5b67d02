"""What a person does to an agent's memory: correct an entry, or have it forgotten.

An entry of a file is changed in the file. Any other is a record of the log, which stays as it is: a fact says what is
found and shown in its place from then on, or that nothing is.
"""

import asyncio

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import InvalidConfig, InvalidRequest, ToolReported
from wakeful.contracts.events import MemoryEntryEdited, MemoryEntryForgotten
from wakeful.contracts.memory import MAX_ENTRY, MemoryEntry
from wakeful.engine.memory_files import FILES, change_section
from wakeful.engine.memory_sources import ref_of
from wakeful.engine.run_request import Engine
from wakeful.service.queries.memory import entry_of, home_of_agent, memory_entry
from wakeful.views.memory_records import MemoryRecord


async def edit_memory(engine: Engine, agent: str, ref: str, text: str, *, by: str) -> MemoryRecord:
    """Have an entry say something else. Raises InvalidRequest for an unknown entry, and for no words or too many."""
    if not text.strip():
        raise InvalidRequest("the entry is empty", f"To remove it: wakeful memory forget {agent} {ref}")
    if len(text) > MAX_ENTRY:
        raise InvalidRequest(f"the entry has {len(text)} characters", f"Give at most {MAX_ENTRY}.")
    _, entry = await entry_of(engine.store, agent, ref)
    key = entry.key
    if entry.kind in FILES:  # words with another heading make it another entry
        key = f"{entry.kind}:{await _change_file(engine, agent, entry, text)}"
    edited = MemoryEntryEdited(entry=key, entry_kind=entry.kind, text=text, edited_by=by)
    await engine.store.admit(agent, [Fact(edited, engine.clock.now())])
    return await memory_entry(engine.store, agent, ref_of(engine.store, agent, key))


async def forget_memory(engine: Engine, agent: str, ref: str, *, by: str) -> MemoryRecord:
    """Have an entry found and shown no more: by no search, in no prompt. Returns what was forgotten."""
    record = await memory_entry(engine.store, agent, ref)
    _, entry = await entry_of(engine.store, agent, record.source_ref)
    if entry.kind in FILES:
        await _change_file(engine, agent, entry, "")
    forgotten = MemoryEntryForgotten(entry=entry.key, entry_kind=entry.kind, forgotten_by=by)
    await engine.store.admit(agent, [Fact(forgotten, engine.clock.now())])
    return record


async def _change_file(engine: Engine, agent: str, entry: MemoryEntry, words: str) -> str:
    """Returns what the section is called from then on."""
    name = entry.key.partition(":")[2]
    file = f"{entry.source_path} of agent {agent!r}"
    try:
        now = await asyncio.to_thread(change_section, home_of_agent(engine.store, agent), entry.kind, name, words)
    except (ToolReported, InvalidConfig) as problem:
        raise InvalidRequest(f"{file} cannot be changed: {problem.message}", "Nothing was changed.") from None
    except UnicodeDecodeError as problem:
        raise InvalidRequest(
            f"{file} is not UTF-8: byte {problem.start} begins no character",
            "Nothing was changed. Save the file as UTF-8, and edit the entry then.",
        ) from None
    except ValueError as problem:
        raise InvalidRequest(f"the entry is {problem}", "Nothing was changed. Give text below the heading.") from None
    if now is None:
        raise InvalidRequest(f"{file} has changed meanwhile", f"Look again: wakeful memory list {agent}")
    return now
