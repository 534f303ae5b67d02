"""The store in one SQLite file: `SqliteStore.open(path)`, or `SqliteReader.open(path)` where nothing can be written.

Here live the connection and its rules (`connection`), the numbered migrations, group commit (`writer`), the helper
thread for barriers and checkpoints (`helper`), the log (`log`), what shows that its end is there (`anchor`), the rows
(`tables`), leases (`owners`) and blobs. Which rows a fact changes is not decided here but in `store.tables`.
"""

from wakeful.store.sqlite.reader import SqliteReader
from wakeful.store.sqlite.store import SqliteStore

__all__ = ["SqliteReader", "SqliteStore"]
