"""An agent's memory in a program: look at it, correct it, have something forgotten."""

from typing import TYPE_CHECKING

from wakeful.service.operations.memory import PAGE
from wakeful.surfaces.library.argument_checks import checked_arguments
from wakeful.surfaces.library.tool_refusals import open_to_tools

if TYPE_CHECKING:
    from wakeful.service import Engine
    from wakeful.views.memory_records import MemoryRecord, WorkingMemoryState


@checked_arguments
@open_to_tools("list", "show", "working")
class MemoryHandle:
    """The memory of one agent of a runtime: `rt.memory("ops")`.

        for entry in await rt.memory("ops").list("backup server"):
            print(entry.source_ref, entry.kind, entry.title)

    Entries are sections of `memory/self.md` and `memory/operator.md` in the agent's home, briefs, work items, and
    episodes. A person sees all of them, whomever they came from.
    `find=` searches as the agent's own `memory_search` does, in any script.
    `edit` and `forget` are written down with `by`, and reach every later prompt and search.
    """

    def __init__(self, engine: "Engine", agent: str) -> None:
        self._engine = engine
        self._agent = agent

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._agent!r})"

    async def list(self, find: str | None = None, *, limit: int = PAGE) -> "list[MemoryRecord]":
        """Entries, the newest first; with `find`, those nearest to these words. Raises AgentNotFound."""
        from wakeful.service.queries.memory import memory_entries

        return await memory_entries(self._engine.store, self._agent, find=find, limit=limit)

    async def show(self, source_ref: str) -> "MemoryRecord":
        """One entry, with its source and its last use. Raises InvalidRequest."""
        from wakeful.service.queries.memory import memory_entry

        return await memory_entry(self._engine.store, self._agent, source_ref)

    async def edit(self, source_ref: str, text: str, *, by: str = "program") -> "MemoryRecord":
        """Have an entry say something else. Of a file, its section is changed; a record of the log stays, and is found
        and shown with these words."""
        from wakeful.service.commands.memory import edit_memory

        return await edit_memory(self._engine, self._agent, source_ref, text, by=by)

    async def forget(self, source_ref: str, *, by: str = "program") -> "MemoryRecord":
        """Have an entry found by no search and shown in no prompt any more. The log still holds what it was."""
        from wakeful.service.commands.memory import forget_memory

        return await forget_memory(self._engine, self._agent, source_ref, by=by)

    async def working(self) -> "WorkingMemoryState":
        """Working memory by revision: what the next turns begin with, and the episode that is open."""
        from wakeful.service.queries.memory import working_memory

        return await working_memory(self._engine.store, self._agent)
