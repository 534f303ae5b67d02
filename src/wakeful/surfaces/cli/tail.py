"""`wakeful tail` and `wakeful transcript`: what agents do and say, as their operator sees it."""

import asyncio
import sys
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

import typer
from rich.cells import cell_len, set_cell_size

from wakeful.bootstrap.store_operations import reading_store
from wakeful.service.operations.operator_feed import (
    LIST_FEED,
    SHOW_TAIL,
    SHOW_TRANSCRIPT,
    FeedQuery,
    TailQuery,
    TranscriptQuery,
    follow_feed,
)
from wakeful.surfaces.cli.agent_control import AgentArgument
from wakeful.surfaces.cli.event_lines import entry_line, spoken_lines
from wakeful.surfaces.cli.exit_codes import INTERRUPTED
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.places import StoreAddress, ask, local_name, place_to_ask
from wakeful.surfaces.cli.places import follow as follow_daemon
from wakeful.surfaces.cli.runtime_watch import OneAgent
from wakeful.surfaces.cli.screen import width
from wakeful.views.presentation.display_modes import DisplayMode, detail_lines, display_mode
from wakeful.views.presentation.feed_entries import FeedEntry
from wakeful.views.presentation.plain_text import json_text, plain

MADE_BY = 'wakeful send ops "hello"'
DETAIL = "         | "


def tail(
    agent: OneAgent = None,
    display: Annotated[
        str,
        typer.Option(
            "--display", metavar="MODE", help="info (3): results. verbose (4): activity. debug (5): with previews."
        ),
    ] = "info",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new lines as they come, until Ctrl-C.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="How many of the newest lines.")] = 20,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """Show the newest lines of all agents of a runtime, or of one: what needs you, results, activity."""
    mode = display_mode(display)
    place = place_to_ask(store)
    found = ask(SHOW_TAIL, TailQuery(agent, limit, mode), place)
    printer = _Printer(mode, json=json, wide=wide, me="" if place.is_far else local_name())
    if not found and not json and not follow:
        sys.stdout.write("nothing yet\n" if mode != "info" else "nothing yet; more detail: --display verbose\n")
    printer.print(found)
    if printer.has_cut and not follow:
        names = {each.envelope.agent_id for each in found}
        whole = f"wakeful transcript {plain(names.pop()) if len(names) == 1 else 'AGENT'}"
        sys.stdout.write(f"in full: {whole}{place.flag}   each line: --wide\n")
    if follow:
        try:
            after = found[-1].cursor if found else None
            if place.daemon is not None:
                for entry in follow_daemon(LIST_FEED, FeedQuery(after, display=mode), place, quiet=json):
                    printer.print([entry] if agent in (None, entry.envelope.agent_id) else ())
            else:
                asyncio.run(_follow(agent, after, place, printer))
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


async def _follow(agent: str | None, after: str | None, place: StoreAddress, printer: "_Printer") -> None:
    async with reading_store(place.path) as opened:
        async for entry in follow_feed(opened, FeedQuery(after, display=printer.mode)):
            if agent in (None, entry.envelope.agent_id):
                printer.print([entry])


class _Printer:
    """Entries of the feed, a line each; in debug with details below."""

    def __init__(self, mode: DisplayMode, *, json: bool, wide: bool, me: str) -> None:
        self.mode = mode
        self._json = json
        self._me = me
        self._most = 10_000 if wide else width()
        self._day = ""
        self.has_cut = False
        """Something did not fit the screen."""

    def print(self, entries: Iterable[FeedEntry]) -> None:
        for entry in entries:
            if self._json:
                sys.stdout.write(json_text(entry.model_dump(mode="json", exclude_none=True)) + "\n")
                continue
            when = datetime.fromisoformat(entry.envelope.ts).astimezone()
            if (day := f"{when:%Y-%m-%d}") != self._day:
                self._day = day
                sys.stdout.write(f"{day}\n")
            self._write(f"{when:%H:%M:%S} {entry_line(entry, self._me)}")
            for line in detail_lines(entry.presentation, self.mode):
                self._write(f"{DETAIL}{line}")
        sys.stdout.flush()

    def _write(self, line: str) -> None:
        is_whole = cell_len(line) <= self._most
        self.has_cut |= not is_whole
        sys.stdout.write((line if is_whole else set_cell_size(line, self._most - 1) + "…") + "\n")


def transcript(
    agent: AgentArgument,
    thread: Annotated[str | None, typer.Option("--thread", metavar="NAME", help="One thread. Default: all.")] = None,
    turns: Annotated[int, typer.Option("--turns", metavar="N", min=1, help="How many of the newest turns.")] = 20,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show an agent's conversation with its operator: messages, briefs, and failures of providers between them."""
    found = ask(SHOW_TRANSCRIPT, TranscriptQuery(agent, thread, turns), place_to_ask(store))
    if json:
        for line in found:
            sys.stdout.write(json_text(line.model_dump(mode="json", exclude_none=True)) + "\n")
    elif not found:
        sys.stdout.write("no messages yet\n")
    else:
        for line in found:
            sys.stdout.write("\n".join(spoken_lines(line)) + "\n")
