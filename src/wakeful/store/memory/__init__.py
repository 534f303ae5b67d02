"""The store without a disk: the same bytes, the same chain, the same epochs, gone with the process.

`Memory` is what is kept; a `MemoryStore` is one owner working on it. Two stores on one `Memory` are two owners, as two
processes on one database are.
"""

from wakeful.store.memory.contents import Memory
from wakeful.store.memory.store import MemoryStore

__all__ = ["Memory", "MemoryStore"]
