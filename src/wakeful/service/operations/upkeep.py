"""What may be asked about the upkeep of a store: its size, retention now, and whether it is what was written."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import NoRequest, OpenStore, Operation, check_no_tool

if TYPE_CHECKING:
    from wakeful.contracts.retention import Retention, RetentionReport
    from wakeful.views.store_upkeep import StoreStats, TransferReport, VerifyReport


@dataclass(frozen=True, slots=True)
class RetentionTerms:
    """How long things are kept; None: as the owner's file says."""

    retention: "Retention | None" = None


@dataclass(frozen=True, slots=True)
class TransferFile:
    """A file with logs; of some agents, or of all."""

    path: str
    agents: tuple[str, ...] = ()


async def _export(opened: OpenStore, asked: TransferFile) -> "TransferReport":
    from wakeful.service.commands.store_transfer import export_logs

    return await export_logs(opened.store, Path(asked.path), asked.agents)


async def _import(opened: OpenStore, asked: TransferFile) -> "TransferReport":
    from wakeful.service.commands.store_transfer import import_logs

    check_no_tool("the logs of a store")
    return await import_logs(opened.store, Path(asked.path))


async def _stats(opened: OpenStore, asked: RetentionTerms) -> "StoreStats":
    from wakeful.service.commands.store_upkeep import store_stats

    return await store_stats(opened.store, opened.engine.clock, _terms(asked))


async def _compact(opened: OpenStore, asked: RetentionTerms) -> "RetentionReport":
    from wakeful.service.commands.store_upkeep import compact_store

    check_no_tool("what a store keeps")
    return await compact_store(opened.store, opened.engine.clock, _terms(asked))


async def _would_free(opened: OpenStore, asked: RetentionTerms) -> "RetentionReport":
    from wakeful.service.commands.store_upkeep import compact_store

    return await compact_store(opened.store, opened.engine.clock, _terms(asked), dry_run=True)


async def _verify(opened: OpenStore, asked: NoRequest) -> "VerifyReport":
    from wakeful.service.commands.store_upkeep import verify_store

    return await verify_store(opened.store)


def _terms(asked: RetentionTerms) -> "Retention":
    from wakeful.settings.retention import owner_retention

    return owner_retention() if asked.retention is None else asked.retention


_REPORT = "wakeful.contracts.retention.RetentionReport"
STATS = Operation("store.stats", "observe", RetentionTerms, "wakeful.views.store_upkeep.StoreStats", _stats)
COMPACT = Operation("store.compact", "operate", RetentionTerms, _REPORT, _compact, repeatable=True)
WOULD_FREE = Operation("store.would_free", "observe", RetentionTerms, _REPORT, _would_free)
VERIFY = Operation("store.verify", "observe", NoRequest, "wakeful.views.store_upkeep.VerifyReport", _verify)
_TRANSFER = "wakeful.views.store_upkeep.TransferReport"
EXPORT = Operation("store.export", "observe", TransferFile, _TRANSFER, _export)
IMPORT = Operation("store.import", "operate", TransferFile, _TRANSFER, _import)
