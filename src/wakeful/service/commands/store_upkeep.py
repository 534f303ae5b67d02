"""Upkeep that somebody asks for: what a store takes, retention now, the log held against what was written."""

from wakeful.contracts.retention import Retention, RetentionReport
from wakeful.ports import Clock, Store
from wakeful.runtime.retention import RetentionPass
from wakeful.runtime.task_folders import tasks_folder
from wakeful.views.store_upkeep import LogDamage, StoreStats, VerifyReport


async def compact_store(store: Store, clock: Clock, settings: Retention, *, dry_run: bool = False) -> RetentionReport:
    """One pass of retention over everything."""
    with tasks_folder(store.location) as folder:
        return await RetentionPass(store, clock, settings, folder, dry=dry_run, everything=True).run()


async def store_stats(store: Store, clock: Clock, settings: Retention) -> StoreStats:
    """Reads everything."""
    size = await store.retention.size()
    return StoreStats(
        store=store.location,
        size_bytes=size.total_bytes,
        free_bytes=size.free_bytes,
        turns=await store.count_turns(),
        tables=_largest_first(size.tables),
        agents=_largest_first(size.agents),
        retention=settings,
        would_free=await compact_store(store, clock, settings, dry_run=True),
    )


async def verify_store(store: Store) -> VerifyReport:
    """Every stored byte against the chain, the database against its anchor."""
    found = await store.verify()
    return VerifyReport(
        store=store.location,
        agents=len(await store.agents()),
        damage=[
            LogDamage(agent=each.agent_id, sequence=each.seq, problem=each.what)
            for each in found
            if not each.is_unproven
        ],
        notes=[each.what for each in found if each.is_unproven],
    )


def _largest_first(sizes: dict[str, int]) -> dict[str, int]:
    return dict(sorted(sizes.items(), key=lambda each: (-each[1], each[0])))
