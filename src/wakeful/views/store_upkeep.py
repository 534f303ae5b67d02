"""What a store takes, and whether it is what was written: records for readers."""

from wakeful.contracts.retention import Retention, RetentionReport
from wakeful.contracts.values import Value


class StoreStats(Value):
    """What a store takes, and what retention would free now."""

    store: str
    size_bytes: int
    """The database, its write-ahead log, and large contents beside it."""
    free_bytes: int
    """Of these: pages of the database that hold nothing."""
    turns: int
    tables: dict[str, int]
    """Bytes by table, with its indexes, the largest first."""
    agents: dict[str, int]
    """Bytes of the log of each agent, the largest first."""
    retention: Retention
    """How long things are kept here, in days."""
    would_free: RetentionReport


class LogDamage(Value):
    """A place where stored bytes are not what was written."""

    agent: str
    """Empty: the database as a whole."""
    sequence: int
    problem: str


class VerifyReport(Value):
    """A store held against its hash chains and its anchor."""

    store: str
    agents: int
    damage: list[LogDamage]
    notes: list[str] = []
    """What could not be proven, and is no damage."""

    @property
    def is_whole(self) -> bool:
        return not self.damage


class TransferReport(Value):
    """Logs that were written to a file, or read from one."""

    file: str
    agents: list[str]
    events: int
    blobs: int
