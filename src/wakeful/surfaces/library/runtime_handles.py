"""Parts of a runtime that have verbs of their own: the memory of an agent, and phones."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeful.service.living_runtime import LivingRuntime
    from wakeful.surfaces.library.channels_handle import ChannelsHandle
    from wakeful.surfaces.library.memory_handle import MemoryHandle


class RuntimeHandles:
    """Handles of a runtime."""

    @property
    def _here(self) -> "LivingRuntime":
        raise NotImplementedError

    def memory(self, agent: str) -> "MemoryHandle":
        """An agent's memory: `await rt.memory("ops").list()`, and `show`, `edit`, `forget`, `working`."""
        from wakeful.surfaces.library.memory_handle import MemoryHandle

        return MemoryHandle(self._here.engine, agent)

    @property
    def channels(self) -> "ChannelsHandle":
        """Phones that are told and that decide: `await rt.channels.list()`, and `add`, `pair`, `test`, `remove`."""
        from wakeful.surfaces.library.channels_handle import ChannelsHandle

        return ChannelsHandle(self._here.engine)
