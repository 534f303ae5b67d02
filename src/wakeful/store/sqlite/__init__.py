"""The store in one SQLite file: `SqliteStore.open(path)`.

Here live the connection and its rules (`connection`), the numbered migrations, group commit (`writer`), the helper
thread for barriers and checkpoints (`helper`), the log (`log`), the rows (`views`), leases (`owners`) and blobs. Which
rows a fact changes is not decided here but in `store.rows`.
"""

from wakeful.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
