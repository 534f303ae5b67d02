"""`wakeful approvals approve`, `reject`, `edit`, `answer`, `always`: the word of a person, once.

Ends with 0 when this word decided. With 1 when somebody was faster: their decision is shown and nothing is changed.
With 2 when the decision does not fit, or whoever decides is not entitled.
"""

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from wakeful.contracts.approvals import Always, Answer, Approve, Decided, Reject
from wakeful.service import Engine
from wakeful.service.operations import DECIDE, OPERATOR, ApprovalDecision, ArgumentChange
from wakeful.surfaces.cli.approval_words import DAY, HOUR, MINUTE, call_text, decided_words, rule_line
from wakeful.surfaces.cli.options import StoreOption
from wakeful.surfaces.cli.outcomes import FAILED, resume_line
from wakeful.surfaces.cli.places import ask, store_to_read
from wakeful.surfaces.cli.problems import WrongRequest, complain, unreadable
from wakeful.surfaces.cli.shown_values import out

Id: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="The id, or as much of it as means one record.")]
As: TypeAlias = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="NAME",
        help="Who decides. It is written down, and held to whom a rule names; whoever can write the store is believed.",
    ),
]
Note: TypeAlias = Annotated[str, typer.Option("--note", metavar="TEXT", help="A word for the record.")]
_SPAN = re.compile(r"^(\d+(?:\.\d+)?)(s|m|min|h|d|w)$")
_UNITS = {"s": 1, "m": MINUTE, "min": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}

Decide: TypeAlias = Callable[[Engine], Awaitable[Decided]]


def approve(approval: Id, note: Note = "", by: As = OPERATOR, store: StoreOption = None) -> None:
    """Let the call run, with exactly the arguments that are shown."""
    _decide(approval, Approve(note), by, store)


def reject(
    approval: Id,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORDS", help="Why not, or what to do instead: the model reads it."),
    ] = None,
    by: As = OPERATOR,
    store: StoreOption = None,
) -> None:
    """Refuse the call. The run goes on, and the model reads the words."""
    _decide(approval, Reject(" ".join(words or ())), by, store)


def edit(
    approval: Id,
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Single arguments; the others stay.")
    ] = None,
    arguments: Annotated[
        str | None, typer.Option("--arguments", metavar="JSON|@FILE", help="All arguments, as a JSON object.")
    ] = None,
    note: Note = "",
    by: As = OPERATOR,
    store: StoreOption = None,
) -> None:
    """Let the call run with other arguments. Both are kept; a value left as [redacted] stays what it was."""
    whole = _object(arguments) if arguments is not None else None
    changed = dict(_assignment(each) for each in changes or ())
    if whole is None and not changed:
        raise WrongRequest("nothing to change was given", f"wakeful approvals edit {approval} NAME=VALUE")

    _decide(approval, ArgumentChange(whole, changed, note), by, store)


def answer(
    approval: Id,
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="The answer; of a call, its result.")],
    note: Note = "",
    by: As = OPERATOR,
    store: StoreOption = None,
) -> None:
    """Answer a question; of a call, give a result in its place: it is not run."""
    _decide(approval, Answer(" ".join(text), note), by, store)


def always(
    approval: Id,
    tool: Annotated[bool, typer.Option("--tool", help="Not only this exact call: whatever the tool is given.")] = False,
    pattern: Annotated[
        list[str] | None,
        typer.Option(
            "--pattern",
            metavar="NAME=PATTERN",
            help="Calls of the tool whose argument looks so, * for anything: --pattern 'cmd=git status*'. Without =, "
            "names of tools. May be given several times.",
        ),
    ] = None,
    duration: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="For how long: 30m, 8h, 7d. Left out: until revoked.")
    ] = None,
    note: Note = "",
    by: As = OPERATOR,
    store: StoreOption = None,
) -> None:
    """Let the call run, and do not ask again: about this exact call, unless more is said.

    A standing answer loosens no deny. They are listed by wakeful approvals rules.
    """
    if tool and pattern:
        raise WrongRequest("--tool and --pattern are two different scopes", "say one of them")
    seconds = _seconds(duration) if duration is not None else None
    named = [each for each in pattern or () if "=" not in each]
    if len(named) > 1:
        raise WrongRequest(f"several names of tools were given: {', '.join(named)}", "give one, * allowed")
    decided = Always(
        scope="pattern" if pattern else "tool" if tool else "call",
        match=named[0] if named else None,
        arguments=dict(_assignment(each) for each in pattern or () if "=" in each),
        for_seconds=seconds,
        note=note,
    )
    _decide(approval, decided, by, store)


# --- what is typed ---------------------------------------------------------------------------------------------------


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise WrongRequest(f"{text!r} is not NAME=VALUE", "for example: cents=4200")
    return name, value


def _object(text: str) -> dict[str, Any]:
    """`--arguments`: JSON, or @ and a file of it."""
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise unreadable(text[1:], error, "give a file with a JSON object") from None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise WrongRequest(
            f"--arguments is no JSON: {error}", """for example: --arguments '{"cents": 4200}'"""
        ) from None
    if not isinstance(value, dict):
        raise WrongRequest(f"--arguments is a {type(value).__name__}", "give a JSON object: {...}")
    return value


def _seconds(text: str) -> float:
    found = _SPAN.match(text.strip().lower())
    if found is None or float(found[1]) == 0:
        raise WrongRequest(f"--for {text} is no time", "give a number and s, m, h, d or w: --for 7d")
    return float(found[1]) * _UNITS[found[2]]


# --- deciding and telling --------------------------------------------------------------------------------------------


def _decide(approval: str, decided: Decided | ArgumentChange, by: str, store: Path | None) -> None:
    place = store_to_read(store)
    told = ask(DECIDE, ApprovalDecision(approval, decided, by), place)
    record = told.outcome.approval
    if told.outcome.duplicate:
        complain(f"{record.id} was decided before: {decided_words(record)}", "nothing was changed")
        raise typer.Exit(FAILED)
    out(f"{decided_words(record)}  {call_text(record)}")
    if told.rule is not None:
        out(f"from now on  {rule_line(told.rule)}")
        out(f"take it back: wakeful approvals revoke {told.rule.rule_id}{place.flag}")
    for other in told.others:
        out(f"still waits: {other.id}  {call_text(other)}")
    if told.ahead is not None and not told.others:
        runs = told.ahead.row.state == "running"
        line = resume_line(told.ahead, place)
        out(f"{'its process goes on by itself; if there is none' if runs else 'go on'}: {line}")
