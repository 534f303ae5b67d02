"""`wakeful context`: the context of a turn's model requests, and why each part is in it or not."""

from typing import Annotated

import typer

from wakeful.service.operations.turn_reports import SHOW_CONTEXT, TurnStep
from wakeful.surfaces.cli.options import JsonOption, StoreOption, TurnArgument, WideOption
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.screen import columns, prose, short
from wakeful.surfaces.cli.shown_values import arguments_text, json_text, one_line, out, plain
from wakeful.views.turn_context import RequestView, SummaryView, TurnContext


def command(
    turn: TurnArgument = None,
    step: Annotated[int | None, typer.Option("--step", metavar="N", help="Show the messages of this request.")] = None,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """Show the context of a turn's model requests: instructions, tools, history, summaries, and left-out parts."""
    place = place_to_ask(store)
    told = ask(SHOW_CONTEXT, TurnStep(turn, step), place)
    if json:
        out(json_text(told, indent=2))
        return
    view = TurnContext.model_validate(told)
    _head(view, wide=wide)
    if step is not None:
        _messages(view.requests[-1], wide=wide)
        return
    _requests(view, wide=wide)
    for summary in view.summaries:
        _summary(summary, view.turn_id)
    _read_again(view)
    if view.requests:
        out(["", f"messages of one request: wakeful context {short(view.turn_id)} --step 1{place.flag}"])


def _head(view: TurnContext, *, wide: bool) -> None:
    window = f", window of {view.window:,} tokens" if view.window is not None else ""
    out(f"turn {short(view.turn_id)} of agent {plain(view.agent)}{window}")
    out([f"thread {plain(short(view.thread))}", "", "parts of the last request:"])
    refs = [plain(each.ref) if wide else "" for each in view.sections]
    rows = [
        (each.kind, _count(each.tokens), one_line(each.words, 200), ref)
        for each, ref in zip(view.sections, refs, strict=True)
    ]
    out(columns(rows, ("PART", "TOKENS", "WHY", "REF" if wide else ""), wide=wide))
    for left in view.left_out:
        prose(f"left out: {left.reason}, {plain(left.ref)}{f' ({left.words})' if left.words else ''}")


def _requests(view: TurnContext, *, wide: bool) -> None:
    out(["", "requests:"])
    rows = [
        (
            f"{each.phase or each.level or ''} {each.step}".strip(),
            plain(each.model_ref),
            str(each.items),
            _count(each.tokens_estimated),
            _count(each.input_tokens),
            plain(each.rests_on or "") if wide else "",
        )
        for each in view.requests
    ]
    out(columns(rows, ("STEP", "MODEL", "MESSAGES", "ESTIMATED", "COUNTED", "BASED ON" if wide else ""), wide=wide))


def _summary(summary: SummaryView, turn_id: str) -> None:
    where = "" if summary.turn_id == turn_id else f" (in turn {summary.turn_id})"
    out(["", f"{plain(summary.compaction_id)}: {summary.trigger}, {summary.outcome}{where}"])
    if summary.outcome == "completed":
        by = f", written by {plain(summary.written_by)}" if summary.written_by else ""
        out(f"  stands for {summary.stands_for} messages of {summary.turns} turns{by}")
        out(f"  {summary.tokens_before:,} tokens before, {summary.tokens_after or 0:,} after")
        prose(f"  {one_line(summary.preview, 200)}")
    elif summary.why_not:
        prose(f"  {one_line(summary.why_not, 300)}")


def _read_again(view: TurnContext) -> None:
    if not view.folded_calls and not view.read_again:
        return
    out(["", f"calls in summaries: {view.folded_calls}; requested again: {len(view.read_again)}"])
    for each in view.read_again:
        prose(f"  step {each.step}: {plain(each.tool)}({arguments_text(each.arguments, 100)})")


def _messages(request: RequestView, *, wide: bool) -> None:
    out(["", f"step {request.step}: {request.items} messages to {plain(request.model_ref)}"])
    rows = [
        (
            str(each.place),
            "summary" if each.is_summary else "runtime" if each.origin == "runtime" else each.role,
            _count(each.tokens),
            one_line(each.preview, 120),
        )
        for each in request.shown
    ]
    out(columns(rows, ("#", "ROLE", "TOKENS", "TEXT"), wide=wide))


def _count(tokens: int | None) -> str:
    return f"{tokens:,}" if tokens is not None else "-"
