"""`wakeful events`: the newest turns, or the log of one, as it is stored or as it happens."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer
from rich.console import Console
from rich.text import Text

from wakeful.bootstrap.keys import own_keys
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.envelope import RuntimeEvent, StoredFact
from wakeful.service import Store, TurnRow, redact
from wakeful.service.operations.turns import LIST_EVENTS, LIST_TURNS, EventQuery, TurnQuery
from wakeful.service.queries.turns import EventReader, find_turn, follow, kinds_named, turn_events, wire
from wakeful.surfaces.cli.event_lines import event_line, transcript_line
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.lines import line
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.outcomes import INTERRUPTED
from wakeful.surfaces.cli.places import StoreAddress, ask, place_to_ask
from wakeful.surfaces.cli.places import follow as follow_daemon
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.screen import columns, short
from wakeful.surfaces.cli.shown_values import age_cell, arguments_text, json_text, one_line, out, plain
from wakeful.views.cost import CostSummary
from wakeful.views.run_stream import RunStream
from wakeful.views.transcript import Transcript
from wakeful.views.wire import WireView
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
    printer = _Printer(view, json, kinds, after, reveal, wide)
    if place.is_far and view != "facts":
        raise WrongRequest(f"--as {view} is made from the file of a store", "run it where that is, or leave --as out")
    try:
        if place.daemon is not None and view == "facts":
            for event in _told(EventQuery(turn, after, reveal=reveal), place, follow_it):
                printer.print_event(event)
        else:
            asyncio.run(_show(turn, place, printer, follow_it))
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _list(place: StoreAddress, *, json: bool, wide: bool) -> None:
    rows = ask(LIST_TURNS, TurnQuery(limit=NEWEST), place)
    named = None if place.is_default else Path(place.path)
    remember("turns", [row.turn_id for row in rows], named, [row.key for row in rows if row.key])
    if json:
        for row in rows:
            out(json_text(row.model_dump(mode="json")))
    elif rows:
        cells = [
            (short(r.turn_id), r.state, age_cell(round(r.created_at * 1_000_000)), r.agent, one_line(r.prompt, 200))
            for r in rows
        ]
        out(columns(cells, ("TURN", "STATE", "AGE", "AGENT", "PROMPT"), wide=wide))
        out(["", f"log of a turn: wakeful events {short(rows[0].turn_id)}{place.flag}"])
    else:
        out("no turns yet")


def _told(asked: EventQuery, place: StoreAddress, follow_it: bool) -> Iterator[RuntimeEvent]:
    """The events of a turn, as a daemon tells them."""
    if follow_it:
        yield from follow_daemon(LIST_EVENTS, asked, place)
        return
    while page := ask(LIST_EVENTS, replace(asked, limit=PAGE), place):
        yield from page
        asked = replace(asked, after=int(page[-1].event_id.rpartition(":")[2]))


async def _show(turn: str | None, place: StoreAddress, printer: "_Printer", follow_it: bool) -> None:
    async with opened_store(place.path, reading=True) as opened:
        row = await find_turn(opened, turn)
        if follow_it:
            await printer.print_all(opened, row, follow(opened, row))
        else:
            stored = await turn_events(opened, row)
            await printer.print_all(opened, row, _each(stored), stored)


async def _each(facts: list[StoredFact]) -> AsyncIterator[StoredFact]:
    for recorded in facts:
        yield recorded


class _Printer:
    """Prints facts in the view that was asked for, one line each, as they come."""

    def __init__(
        self, view: Views, json: bool, kinds: frozenset[str] | None, after: int, reveal: bool, wide: bool
    ) -> None:
        self._view = view
        self._json = json
        self._kinds = kinds
        self._after = after
        self._reveal = reveal
        self._console = Console(highlight=False)
        self._cuts = self._console.is_terminal and not wide and view != "transcript"
        """Lines are cut to fit a screen; in a pipe and with `--wide` they are whole. Messages are never cut."""

    async def print_all(
        self, store: Store, row: TurnRow, facts: AsyncIterator[StoredFact], stored: Sequence[StoredFact] = ()
    ) -> None:
        """`stored` is what is known before the first of them: what is secret there is hidden from the beginning."""
        reader = EventReader(store, reveal=self._reveal, keys=() if self._reveal else own_keys())
        await reader.learn(stored)
        stream, transcript = RunStream(row.turn_id, reveal=self._reveal), Transcript(reveal=self._reveal)
        transcript.learn(stored)
        messages = WireView(row.turn_id, secrets=reader.secrets)
        async for recorded in facts:
            shown = recorded.seq > self._after
            if self._view == "facts":
                event = await reader.read(recorded)  # also when it is not shown: it may say what is secret
                if shown:
                    self.print_event(event)
            elif self._view == "stream":
                for run_event in stream.feed(recorded):
                    if shown:
                        self._print(run_event.model_dump(mode="json", exclude_none=True), line(run_event))
            elif self._view == "wire":
                await reader.learn([recorded])
                for sent in messages.feed(recorded):
                    if shown:
                        self._print(sent.model_dump(mode="json", exclude_none=True), wire_line(sent))
            elif (entry := transcript.feed(recorded)) is not None and shown:
                self._print(entry.model_dump(mode="json", exclude_none=True), transcript_line(entry))

    def print_event(self, event: RuntimeEvent) -> None:
        """A fact, if its kind is wanted."""
        if self._kinds is None or event.type in self._kinds:
            self._print(wire(event), event_line(event))

    def _print(self, data: dict[str, Any], words: Text | None) -> None:
        if self._json:
            # Facts are redacted already, with what their tools declare; the other views hold no arguments of their own.
            out(json_text(data if self._reveal or self._view == "facts" else redact(data)))
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
