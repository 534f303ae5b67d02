"""Rules of `tainted_files`."""

from wakeful.contracts.events import FilesTainted
from wakeful.ports import TaintRow
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, RowRule, Rules


def _files_tainted(entry: LogEntry, event: FilesTainted, rows: AtHand) -> list[TaintRow | Gone]:
    changed: list[TaintRow | Gone] = []
    named = [(path, 0, digest) for path, digest in event.files.items()]
    if event.settles is not None:
        changed.append(Gone((event.workspace, "", event.settles, entry.agent_id)))
    if event.since is not None:
        named.append(("", event.since, ""))
    by = (event.cause, entry.agent_id, entry.fact.turn_id or "", entry.fact.at)
    return [*changed, *(TaintRow(event.workspace, path, since, digest, *by) for path, since, digest in named)]


TAINT_RULES: Rules = {FilesTainted: RowRule(_files_tainted)}
