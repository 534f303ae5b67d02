"""`wakeful store stats`, `compact`, `verify`: the size of a store, retention now, and whether the log is whole."""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.contracts.retention import RetentionReport
from wakeful.service.operations.operation import NoRequest
from wakeful.service.operations.upkeep import (
    COMPACT,
    EXPORT,
    IMPORT,
    STATS,
    VERIFY,
    WOULD_FREE,
    RetentionTerms,
    TransferFile,
)
from wakeful.surfaces.cli.exit_codes import FAILED
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import ask, place_to_ask, store_to_write
from wakeful.surfaces.cli.screen import columns, prose
from wakeful.surfaces.cli.shown_values import counted, json_text, one_line, out, plain, size
from wakeful.views.store_upkeep import TransferReport

SHOWN = 10
"""The largest tables and agents that are listed."""
WIDEST = 44


def stats(store: StoreOption = None, json: JsonOption = False) -> None:
    """Show what the store takes, by table and by agent, and what retention would free now."""
    report = ask(STATS, RetentionTerms(), place_to_ask(store))
    if json:
        out(json_text(report.model_dump(mode="json"), indent=2))
        return
    out(f"{plain(report.store)}: {size(report.size_bytes)}, {size(report.free_bytes)} of it free")
    out(f"{counted(report.turns, 'turn')}, {counted(len(report.agents), 'log')}")
    for title, sizes in (("TABLE", report.tables), ("LOG OF", report.agents)):
        rows = [(one_line(plain(name), WIDEST), size(count)) for name, count in [*sizes.items()][:SHOWN]]
        if rows:
            out(["", *columns(rows, (title, "SIZE"))])
        if len(sizes) > SHOWN:
            out(f"and {len(sizes) - SHOWN} more, {size(sum([*sizes.values()][SHOWN:]))}")
    out("")
    _tell(report.would_free)


def compact(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, and remove nothing.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Remove expired data now, and give the space back. A runtime does this by itself.

    The section [retention] of wakeful.toml says how long things are kept. Open turns, approvals, waits and unknown
    outcomes are never touched; nor are conversations, briefs, work items and costs.
    """
    report = ask(WOULD_FREE if dry_run else COMPACT, RetentionTerms(), place_to_ask(store))
    if json:
        out(json_text(report.model_dump(mode="json"), indent=2))
    else:
        _tell(report)


def verify(store: StoreOption = None, json: JsonOption = False) -> None:
    """Check every stored byte against the hash chains, and the database against its anchor.

    Ends with exit code 1 if anything differs from what was written.
    """
    report = ask(VERIFY, NoRequest(), place_to_ask(store))
    if json:
        out(json_text({**report.model_dump(mode="json"), "is_whole": report.is_whole}, indent=2))
    else:
        for each in report.damage:
            where = f"agent {plain(each.agent)}, event {each.sequence}" if each.agent else "the database"
            prose(f"{where}: {plain(each.problem)}")
        for note in report.notes:
            prose(f"note: {plain(note)}")
        many = f"{len(report.damage)} found" if report.damage else "every row is as it was written"
        out(f"{counted(report.agents, 'log')} of {plain(report.store)}: {many}")
    if not report.is_whole:
        raise typer.Exit(FAILED)


def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; it must not exist.")],
    agent: Annotated[list[str] | None, typer.Option("--agent", help="Only this agent. May be repeated.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Write the logs of agents, with the contents they refer to, to a file of JSON lines.

    The file holds everything that was said, and only you may read it. wakeful store import takes it in elsewhere.
    """
    _told(ask(EXPORT, TransferFile(str(file), tuple(agent or ())), place_to_ask(store)), json, "written to")


def take_in(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that wakeful store export wrote.")],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Import exported logs. A file that does not verify is refused, and nothing is written."""
    _told(ask(IMPORT, TransferFile(str(file)), store_to_write(store)), json, "taken in from")


def _told(report: TransferReport, json: bool, what: str) -> None:
    if json:
        out(json_text(report.model_dump(mode="json"), indent=2))
    else:
        counts = f"{counted(report.events, 'event')}, {counted(report.blobs, 'content')}"
        out(f"{counted(len(report.agents), 'log')} {what} {plain(report.file)}: {counts}")


def _tell(report: RetentionReport) -> None:
    if report.is_empty:
        out("nothing has expired" if report.dry_run else "nothing was removed: nothing has expired")
        return
    rows = [
        ("details of turns", report.turns, f"{counted(report.events, 'event')} expired"),
        ("rows of logs, packed together", report.rows, "nothing of them is lost"),
        ("temporary agents", report.streams, "their whole log"),
        ("long outputs", report.outputs, "the preview stays"),
        ("outputs of tasks", report.tasks, "the summary stays"),
        ("contents that nothing refers to", report.blobs, ""),
        ("rows of the feed", report.feed, "their events stay"),
    ]
    shown = [(what, str(count), note) for what, count, note in rows if count]
    out(columns(shown, ("WOULD BE REMOVED" if report.dry_run else "REMOVED", "COUNT", "")))
    out(f"{size(report.freed_bytes)} {'would be' if report.dry_run else 'were'} freed")
