"""A backup of a home, and what a restored one lacks: records for readers."""

from wakeful.contracts.values import Value


class BackupReport(Value):
    """What a backup holds, and what it does not."""

    file: str
    home: str
    size_bytes: int
    agents: tuple[str, ...]
    files: int
    """In it, the database and large contents among them."""
    secrets: tuple[str, ...] = ()
    """Secrets of the home that are not in it, by name."""
    left_out: tuple[str, ...] = ()
    """Other things of the home that are not in it, with the reason."""
    running_tasks: tuple[str, ...] = ()
    """Background commands that run: a restored home has lost them."""
    damaged: tuple[str, ...] = ()
    """What of the logs of agents is not what was written: it is in the backup as it is."""
    retired: bool = False
    """The home starts no more."""


class RestoreReport(Value):
    """A home that was restored. It starts paused."""

    file: str
    home: str
    taken_at: float
    """When the backup was taken; seconds since the epoch."""
    agents: tuple[str, ...]
    files: int
    missing_paths: tuple[str, ...] = ()
    """Folders that agents work in and that are not here."""
    missing_secrets: tuple[str, ...] = ()
    """Secrets that the old home had and this one has not, by name."""
    problems: tuple[str, ...] = ()
    """What `wakeful check` says about its files here: keys, tools."""
    lost_tasks: tuple[str, ...] = ()
    """Background commands that ran when the backup was taken; their agents are told."""
    damaged: tuple[str, ...] = ()
    """What of the logs of agents was not what was written when the backup was taken. Other agents are not affected."""
