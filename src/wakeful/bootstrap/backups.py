"""A home as one file, and a home from one."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.homes import check_home
from wakeful.bootstrap.keys import secret_names
from wakeful.bootstrap.stores import check_not_lost, read_only_store
from wakeful.contracts.errors import InvalidRequest, StoreLocked
from wakeful.settings.home import home as own_home
from wakeful.settings.home import home_secret

if TYPE_CHECKING:
    from wakeful.service.backups.backup import CopiedStore
    from wakeful.views.home_backup import BackupReport, RestoreReport


async def back_up_home(file: Path | None, *, final: bool = False) -> "BackupReport":
    """Write the home to one file, while it is in use. With `final` it must not be, and starts no more afterwards.

    Raises InvalidRequest, StoreProblem; then there is no file.
    """
    import time
    from contextlib import ExitStack

    from wakeful.runtime.home_lock import runtime_lock
    from wakeful.service.backups.backup import back_up, file_name
    from wakeful.settings.store_file import default_store
    from wakeful.store.sqlite.owners import LivingOwners
    from wakeful.store.sqlite.transfer import copy_database

    store = default_store()
    if not store.is_file():
        check_not_lost(store)
        raise InvalidRequest(f"there is no store {store} to back up", 'One is made by: wakeful run "hello"')
    with ExitStack() as held:
        if final:
            try:
                held.enter_context(runtime_lock(str(store)))
            except StoreLocked as error:
                raise StoreLocked(error.message, "Stop it before a final backup: wakeful daemon stop") from None
            holder = LivingOwners(store.absolute()).anybody()
            if holder is not None:
                raise StoreLocked(f"{store} is in use by {holder}", "Wait until that process has ended, or stop it.")
        return await asyncio.to_thread(
            back_up,
            own_home(),
            store,
            file if file is not None else Path(file_name(time.time())),
            copy_database=copy_database,
            inspect=lambda copy: asyncio.run(_inspected(copy)),
            final=final,
        )


async def _inspected(copy: Path) -> "CopiedStore":
    from wakeful.service.backups.backup import CopiedStore
    from wakeful.service.backups.restore import damage_words

    async with read_only_store(str(copy)) as store:
        agents = [row.agent_id for row in await store.runtime_agents()]
        tasks = [row for row in await store.open_tasks() if row.kind == "command_task"]
        told = [f"{row.task_id} of {row.agent_id}: {row.summary}" for row in tasks]
        damaged = [each for each in await store.verify() if not each.is_unproven]
        return CopiedStore(agents, told, damage_words(damaged))


async def restore_home(file: Path) -> "RestoreReport":
    """A home from a backup, paused. Raises InvalidRequest, StoreProblem; then the home is as empty as before."""
    from wakeful.service.backups.restore import missing_folders, read_backup, restoring, settle
    from wakeful.store.sqlite import SqliteStore
    from wakeful.views.home_backup import RestoreReport

    home = own_home()
    record, contents = await asyncio.to_thread(read_backup, file)
    with restoring(home, file, record, contents) as store:
        opened = await SqliteStore.open(str(store), key=home_secret())
        try:
            log = await settle(new_engine(opened), file)
        finally:
            await opened.close()
    checked = check_home(None)
    wanted: list[str] = record.manifest.get("secrets") or []
    return RestoreReport(
        file=str(file),
        home=str(home),
        taken_at=float(record.header.get("created_at") or 0),
        agents=tuple(log.agents),
        files=len(record.manifest["files"]),
        missing_paths=missing_folders(log.paths),
        missing_secrets=tuple(each for each in wanted if each.partition(" ")[0] not in secret_names()),
        problems=tuple(f"{each.where}: {each.message}" for each in checked.problems),
        lost_tasks=tuple(log.lost_tasks),
        damaged=tuple(log.damaged),
    )
