"""`wakeful events`: the newest turns, or the log of one, as it is stored or as it happens."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeAlias

import typer
from rich.console import Console
from rich.text import Text

from wakeful.bootstrap.store_operations import reading_store
from wakeful.contracts.envelope import RuntimeEvent
from wakeful.service.operations.turn_reports import LIST_LINES, LineQuery, follow_lines
from wakeful.service.operations.turns import LIST_EVENTS, LIST_TURNS, EventQuery, TurnQuery, read_events
from wakeful.service.queries.turns import kinds_named, wire
from wakeful.surfaces.cli.event_lines import event_line, transcript_line
from wakeful.surfaces.cli.exit_codes import INTERRUPTED
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.lines import line
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.places import StoreAddress, ask, place_to_ask
from wakeful.surfaces.cli.places import follow as follow_daemon
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.screen import columns, short
from wakeful.surfaces.cli.shown_values import age_cell, arguments_text, json_text, one_line, out, plain
from wakeful.views.cost import CostSummary
from wakeful.views.turn_lines import TurnLine
from wakeful.views.wire_messages import (
    BudgetExceeded,
    Chunk,
    PlanningUpdate,
    TaskUpdate,
    ToolCallUpdate,
    TurnTerminal,
    WireMessage,
)

Views: TypeAlias = Literal["facts", "stream", "transcript", "wire"]
NEWEST = 20
PAGE = 1_000
"""The most events that a daemon gives at once."""


def command(
    turn: Annotated[
        str | None,
        typer.Argument(metavar="TURN", help="Id, beginning of the id, or key. Default: list the newest turns."),
    ] = None,
    store: StoreOption = None,
    follow_it: Annotated[bool, typer.Option("--follow", "-f", help="Follow a running turn until it ends.")] = False,
    json: JsonOption = False,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="NAME", help="Only events of this type, or with this alias.")
    ] = None,
    view: Annotated[
        Views,
        typer.Option(
            "--as", help="facts: the log. stream: live progress. transcript: messages. wire: client messages."
        ),
    ] = "facts",
    after: Annotated[int, typer.Option("--after", metavar="SEQ", help="Only events after this sequence number.")] = 0,
    reveal: Annotated[bool, typer.Option("--reveal", help="Show secrets instead of [redacted].")] = False,
    wide: WideOption = False,
) -> None:
    """Show the log of a turn, with secrets hidden. Without TURN, list the newest turns."""
    place = place_to_ask(store)
    if turn is None and not follow_it:
        given = {"--kind": kind is not None, "--as": view != "facts", "--after": after > 0, "--reveal": reveal}
        for option in (option for option, is_given in given.items() if is_given):
            raise WrongRequest(f"{option} needs a turn", "name one: wakeful events TURN")
        _list(place, json=json, wide=wide)
        return
    kinds = kinds_named(kind) if kind is not None else None
    if kinds is not None and view != "facts":
        raise WrongRequest(f"--kind filters the log, and --as {view} shows another view", "leave one of them out")
    printer = _Printer(json, kinds, wide=wide or view == "transcript")
    try:
        if place.daemon is None:
            asyncio.run(_print_file(turn, view, after, reveal, place, printer, follow_it))
        elif view == "facts":
            for event in _told(EventQuery(turn, after, reveal=reveal), place, follow_it, quiet=json):
                printer.print_event(event)
        else:
            for each in _told_lines(LineQuery(turn, view, after, reveal=reveal), place, follow_it, quiet=json):
                printer.print_line(each)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _list(place: StoreAddress, *, json: bool, wide: bool) -> None:
    rows = ask(LIST_TURNS, TurnQuery(limit=NEWEST), place)
    remember("turns", [row.turn_id for row in rows], place, [row.key for row in rows if row.key])
    if json:
        for row in rows:
            out(json_text(row.model_dump(mode="json")))
    elif rows:
        cells = [
            (
                short(r.turn_id),
                r.state,
                age_cell(round(r.created_at * 1_000_000)),
                r.agent,
                one_line(r.prompt, 200) if r.deleted_at is None else "(thread deleted)",
            )
            for r in rows
        ]
        out(columns(cells, ("TURN", "STATE", "AGE", "AGENT", "PROMPT"), wide=wide))
        out(["", f"log of a turn: wakeful events {short(rows[0].turn_id)}{place.flag}"])
    else:
        out("no turns yet")


def _told(asked: EventQuery, place: StoreAddress, follow_it: bool, *, quiet: bool) -> Iterator[RuntimeEvent]:
    """The events of a turn, as a daemon tells them."""
    if follow_it:
        yield from follow_daemon(LIST_EVENTS, asked, place, quiet=quiet)
        return
    while page := ask(LIST_EVENTS, replace(asked, limit=PAGE), place):
        yield from page
        asked = replace(asked, after=int(page[-1].event_id.rpartition(":")[2]))


def _told_lines(asked: LineQuery, place: StoreAddress, follow_it: bool, *, quiet: bool) -> Iterator[TurnLine]:
    """The lines of a turn in one of its views, as a daemon tells them."""
    if follow_it:
        yield from follow_daemon(LIST_LINES, asked, place, quiet=quiet)
        return
    while page := ask(LIST_LINES, replace(asked, limit=PAGE), place):
        yield from page
        asked = replace(asked, after=page[-1].event_seq)


async def _print_file(
    turn: str | None,
    view: Views,
    after: int,
    reveal: bool,
    place: StoreAddress,
    printer: "_Printer",
    follow_it: bool,
) -> None:
    async with reading_store(place.path) as opened:
        if view == "facts":
            async for event in read_events(opened, EventQuery(turn, after, reveal=reveal), follow_it=follow_it):
                printer.print_event(event)
        else:
            async for each in follow_lines(opened, LineQuery(turn, view, after, reveal=reveal), follow_it=follow_it):
                printer.print_line(each)


class _Printer:
    """Prints what is to be seen of a turn, one line each, as it comes."""

    def __init__(self, json: bool, kinds: frozenset[str] | None, *, wide: bool) -> None:
        self._json = json
        self._kinds = kinds
        self._console = Console(highlight=False)
        self._cuts = self._console.is_terminal and not wide
        """Lines are cut to fit a screen; in a pipe and with `--wide` they are whole. Messages are never cut."""

    def print_event(self, event: RuntimeEvent) -> None:
        """A fact, if its kind is wanted."""
        if self._kinds is None or event.type in self._kinds:
            self._print(wire(event), event_line(event))

    def print_line(self, each: TurnLine) -> None:
        if each.stream is not None:
            self._print(each.stream.model_dump(mode="json", exclude_none=True), line(each.stream))
        elif each.transcript is not None:
            self._print(each.transcript.model_dump(mode="json", exclude_none=True), transcript_line(each.transcript))
        elif each.wire is not None:
            self._print(each.wire.model_dump(mode="json", exclude_none=True), wire_line(each.wire))

    def _print(self, data: dict[str, Any], words: Text | None) -> None:
        if self._json:
            out(json_text(data))
            self._console.file.flush()
        elif words is not None:
            cut = {"overflow": "ellipsis", "no_wrap": True} if self._cuts else {"soft_wrap": True}
            self._console.print(words, **cut)


INDENT = "  "


def wire_line(message: WireMessage) -> Text:
    """Its kind and what it is about; what belongs to a child stands to the right."""
    match message:
        case Chunk():
            return _line(message.type, message.depth, one_line(message.content, 200))
        case ToolCallUpdate(status="start"):
            return _line(message.type, message.depth, f"→ {plain(message.name)}({arguments_text(message.args)})")
        case ToolCallUpdate():
            said = f"{'✗' if message.is_error else '✓'} {plain(message.name)}  {one_line(message.result or '')}"
            return _line(message.type, message.depth, said)
        case PlanningUpdate():
            more = f": {one_line(message.content)}" if message.content else ""
            return _line(message.type, message.depth, f"{message.phase} {message.status}{more}")
        case TaskUpdate():
            what = message.step or message.task
            return _line(message.type, message.depth, f"{message.event} {one_line(what.title)}")
        case BudgetExceeded():
            return _line(message.type, 0, f"{message.reason}: {message.observed:g} of {message.limit:g}")
        case CostSummary():
            total = message.total
            tokens = f"{total.input_tokens} + {total.output_tokens} tokens"
            known = f"{total.cost} {message.currency}" if message.cost_complete else "not all prices are known"
            return _line(message.type, 0, f"{total.calls} requests, {tokens}, {known}")
        case TurnTerminal():
            why = f": {one_line(message.message)}" if message.message else ""
            return _line(message.type, 0, f"{message.status} ({message.stop_reason}){why}")


def _line(kind: str, depth: int, words: str) -> Text:
    return Text.assemble((f"{kind:<18}", "dim"), INDENT * depth, words)
