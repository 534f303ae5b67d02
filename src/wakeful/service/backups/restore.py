"""A home from a backup. The file is read to its end and checked before anything is written.

From then on the home says that it is being restored, until it is whole: a process that is killed in between leaves a
home that refuses to be used, and the same command begins again.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import InvalidRequest, StoreDamaged, StoreFull, StoreLocked
from wakeful.contracts.events import RuntimeControlChanged
from wakeful.engine.run_request import Engine
from wakeful.ports import Damage, Store
from wakeful.runtime.parked_providers import append_to_runtime
from wakeful.runtime.task_folders import tasks_folder
from wakeful.runtime.tasks import RuntimeTasks
from wakeful.service.backups.archive import ArchiveRecord, NotABackup, check_archive, unpack
from wakeful.service.backups.contents import FILES, HomeContents, contents_named
from wakeful.service.commands.runtime_holds import hold_turns
from wakeful.settings.agent_homes import FOLDER as AGENTS
from wakeful.settings.home_state import clear_state, read_state, sync_folder, write_state

BY = "restore"
ROOM = 1.1
"""Of the space that the files take, at least so much has to be free."""
_ENDS = ("", "-wal", "-shm", "-journal", "-anchor", ".blobs", ".owners", ".tasks", ".runtime-lock")


class RestoredLog(NamedTuple):
    """What was done to the store of a restored home before anybody may use it."""

    agents: list[str]
    paths: list[str]
    """Folders that its agents work in."""
    lost_tasks: list[str]
    damaged: list[str]
    """What of its logs is not what was written: it was so when the backup was taken."""


def read_backup(file: Path) -> tuple[ArchiveRecord, HomeContents]:
    """Check a file from its beginning to its end. Raises NotABackup, or InvalidRequest."""
    record = check_archive(file, lambda header: contents_named(header.get("database")).is_allowed)
    contents = contents_named(record.header.get("database"))
    if contents.database not in record.manifest["files"]:
        raise NotABackup(f"{file} holds no database", "Name a file that wakeful backup wrote.")
    return record, contents


@contextmanager
def restoring(home: Path, file: Path, record: ArchiveRecord, contents: HomeContents) -> Iterator[Path]:
    """Unpack into an empty home; inside, its store may be opened. Without an error the home is whole afterwards, with
    one it is as empty as before. Raises InvalidRequest for a home that is in use."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(home):
        state = read_state(home)
        if state is not None and state.state == "restoring":
            _empty(home, contents)  # what a restore that was cut off has left
        taken = [name for name in _names(contents) if os.path.lexists(home / name)]
        if taken or (state is not None and state.state == "retired"):
            what = f"{taken[0]} is there" if taken else "it was retired"
            raise InvalidRequest(
                f"{home} is a home in use: {what}; nothing was restored",
                "Restore into another one: WAKEFUL_HOME=/path/of/a/new/folder wakeful restore FILE",
            )
        free = shutil.disk_usage(home).free
        if record.total_bytes * ROOM > free:
            raise StoreFull(
                f"the files of {file} take {record.total_bytes:,} bytes, and {free:,} are free in {home}",
                "Free some space and try again.",
            )
        write_state(home, "restoring", file)
        try:
            unpack(file, home, record, contents.is_allowed)
            _sync_folders(home)
            yield home / contents.database
        except BaseException as error:
            _empty(home, contents)
            clear_state(home)
            if isinstance(error, OSError):
                raise InvalidRequest(
                    f"{file} cannot be restored to {home}: {error}", "Nothing is left of it."
                ) from None
            raise
        clear_state(home)


async def settle(engine: Engine, file: Path) -> RestoredLog:
    """Before anybody runs the agents of a restored store: everything is paused, and tasks whose processes belong to
    another home, or to no machine any more, are lost.

    The log of an agent that is not what was written was so in the old home, where the others worked all the same: they
    are restored. Raises StoreDamaged for a store of which nothing can be used.
    """
    store = engine.store
    damaged = [each for each in await store.verify() if not each.is_unproven]
    for damage in damaged:
        if not damage.agent_id:
            raise StoreDamaged(
                f"the log in {file} is damaged: {damage.what}; nothing was restored", "Use another backup."
            )
    reason = f"restored from {file.name}; to go on: wakeful resume --all"
    event = RuntimeControlChanged(control="paused", changed_by=BY, reason=reason)
    await append_to_runtime(engine, Fact(event, engine.clock.now()))
    await hold_turns(engine, "paused")
    with tasks_folder(store.location) as place:
        lost = await RuntimeTasks(engine, place, frozenset).give_up()
    agents = [row.agent_id for row in await store.runtime_agents()]
    told = [f"{row.task_id} of {row.agent_id}: {row.summary}" for row in lost]
    return RestoredLog(agents, await _paths(store, agents), told, damage_words(damaged))


def damage_words(damaged: Sequence[Damage]) -> list[str]:
    """What is damaged in a store, a line each; a store that is copied has another path than the one that is meant."""
    return [f"agent {each.agent_id}, event {each.seq}" if each.agent_id else each.what for each in damaged]


async def _paths(store: Store, agents: list[str]) -> list[str]:
    found: dict[str, None] = {}
    for agent in agents:
        for attached in await store.attached_workspaces(agent):
            found[attached.workspace_anchor] = None
        active = await store.active_workspace(agent)
        if active is not None:
            found.update(dict.fromkeys(filter(None, (active.workspace_anchor, active.execution_root))))
    return [*found]


def missing_folders(paths: Sequence[str]) -> tuple[str, ...]:
    """Those that are not on this machine."""
    return tuple(each for each in paths if not Path(each).is_dir())


def _names(contents: HomeContents) -> list[str]:
    """What a backup brings, at the top of a home or below."""
    return [AGENTS, *FILES, *(f"{contents.database}{end}" for end in _ENDS)]


def _empty(home: Path, contents: HomeContents) -> None:
    for name in _names(contents):
        path = home / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _sync_folders(home: Path) -> None:
    for folder, _, _ in os.walk(home):
        sync_folder(Path(folder))


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreLocked(f"another restore into {home} is under way", "Wait until it has ended.") from None
        yield
    finally:
        os.close(descriptor)
