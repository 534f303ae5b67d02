"""`wakeful context`: what the model saw in a turn's requests, and why each part was in or out."""

from typing import Annotated

import typer

from wakeful.service.operations import SHOW_CONTEXT, TurnStep
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import ask, store_to_read
from wakeful.surfaces.cli.shown_values import arguments_text, columns, json_text, one_line, out, plain
from wakeful.views.turn_context import RequestView, SummaryView, TurnContext


def command(
    turn: Annotated[str | None, typer.Argument(metavar="TURN", help="Left out: the newest turn.")] = None,
    step: Annotated[int | None, typer.Option("--step", metavar="N", help="The messages of this request.")] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show what a turn's model was shown: instructions, tools, history, summaries, and what was left out."""
    place = store_to_read(store)
    told = ask(SHOW_CONTEXT, TurnStep(turn, step), place)
    if json:
        out(json_text(told, indent=2))
        return
    view = TurnContext.model_validate(told)
    _head(view)
    if step is not None:
        _messages(view.requests[-1])
        return
    _requests(view)
    for summary in view.summaries:
        _summary(summary, view.turn_id)
    _read_again(view)
    if view.requests:
        out(["", f"the messages of one request: wakeful context {view.turn_id} --step 1{place.flag}"])


def _head(view: TurnContext) -> None:
    window = f", a window of {view.window:,} tokens" if view.window is not None else ""
    out(f"turn {view.turn_id} of agent {plain(view.agent)}, thread {plain(view.thread)}{window}")
    out(["", "what its requests rest on at the end:"])
    rows = [(each.kind, _count(each.tokens), plain(each.ref), one_line(each.words, 100)) for each in view.sections]
    out(columns(rows, ("PART", "TOKENS", "REF", "WHY")))
    for left in view.left_out:
        out(f"left out: {left.reason}, {plain(left.ref)}{f' ({left.words})' if left.words else ''}")


def _requests(view: TurnContext) -> None:
    out(["", "requests:"])
    rows = [
        (
            f"{each.phase or each.level or ''} {each.step}".strip(),
            plain(each.model_ref),
            str(each.items),
            _count(each.tokens_estimated),
            _count(each.input_tokens),
            plain(each.rests_on or ""),
        )
        for each in view.requests
    ]
    out(columns(rows, ("STEP", "MODEL", "MESSAGES", "TOKENS, ABOUT", "COUNTED", "RESTS ON")))


def _summary(summary: SummaryView, turn_id: str) -> None:
    where = "" if summary.turn_id == turn_id else f" (in turn {summary.turn_id})"
    out(["", f"{plain(summary.compaction_id)}: {summary.trigger}, {summary.outcome}{where}"])
    if summary.outcome == "completed":
        by = f", written by {plain(summary.written_by)}" if summary.written_by else ""
        out(f"  stands for {summary.stands_for} messages of {summary.turns} turns{by}")
        out(f"  {summary.tokens_before:,} tokens before, {summary.tokens_after or 0:,} after")
        out(f"  {one_line(summary.preview, 200)}")
    elif summary.why_not:
        out(f"  {one_line(summary.why_not, 300)}")


def _read_again(view: TurnContext) -> None:
    if not view.folded_calls and not view.read_again:
        return
    out(["", f"folded calls: {view.folded_calls}; asked for again: {len(view.read_again)}"])
    for each in view.read_again:
        out(f"  step {each.step}: {plain(each.tool)}({arguments_text(each.arguments, 100)})")


def _messages(request: RequestView) -> None:
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
    out(columns(rows, ("", "WHO", "TOKENS", "TEXT")))


def _count(tokens: int | None) -> str:
    return f"{tokens:,}" if tokens is not None else "-"
