"""`wakeful approvals approve`, `reject`, `edit`, `answer`, `always`: a person's decision, once.

Ends with 0 when this decision counts. With 1 when another came first: it is shown and nothing is changed. With 2 when
the decision does not fit, or the person is not entitled.
"""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from wakeful.contracts.approvals import Always, Answer, Approve, Decided, Reject
from wakeful.service import Engine
from wakeful.service.operations.approvals import DECIDE, ApprovalDecision, ArgumentChange
from wakeful.service.operations.operation import OPERATOR
from wakeful.surfaces.cli.approval_words import call_text, decided_words, rule_line
from wakeful.surfaces.cli.options import ApprovalArgument, StoreOption, seconds_of
from wakeful.surfaces.cli.outcomes import resume_line
from wakeful.surfaces.cli.places import ask, store_to_read
from wakeful.surfaces.cli.problems import Failure, WrongRequest, unreadable
from wakeful.surfaces.cli.screen import prose, short
from wakeful.surfaces.cli.shown_values import out

As: TypeAlias = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="NAME",
        help="Your name, for the log. Must be an approver where the rule names some.",
    ),
]
Note: TypeAlias = Annotated[str, typer.Option("--note", metavar="TEXT", help="A note for the log.")]

Decide: TypeAlias = Callable[[Engine], Awaitable[Decided]]


def approve(approval: ApprovalArgument, note: Note = "", by: As = OPERATOR, store: StoreOption = None) -> None:
    """Approve a call: it runs with exactly the arguments that are shown."""
    _decide(approval, Approve(note), by, store)


def reject(
    approval: ApprovalArgument,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORDS", help="The reason, or what to do instead. The model reads it."),
    ] = None,
    by: As = OPERATOR,
    store: StoreOption = None,
) -> None:
    """Reject a call. The run continues, and the model reads your words."""
    _decide(approval, Reject(" ".join(words or ())), by, store)


def edit(
    approval: ApprovalArgument,
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Arguments to change; the others stay.")
    ] = None,
    arguments: Annotated[
        str | None, typer.Option("--arguments", metavar="JSON|@FILE", help="All arguments, as a JSON object.")
    ] = None,
    note: Note = "",
    by: As = OPERATOR,
    store: StoreOption = None,
) -> None:
    """Approve a call with other arguments. The log keeps both; a value left as [redacted] is not changed."""
    whole = _object(arguments) if arguments is not None else None
    changed = dict(_assignment(each) for each in changes or ())
    if whole is None and not changed:
        raise WrongRequest(
            "no change was given", f"name the arguments to change: wakeful approvals edit {approval} NAME=VALUE"
        )

    _decide(approval, ArgumentChange(whole, changed, note), by, store)


def answer(
    approval: ApprovalArgument,
    text: Annotated[
        list[str], typer.Argument(metavar="TEXT", help="The answer, or the result that replaces the call.")
    ],
    note: Note = "",
    by: As = OPERATOR,
    store: StoreOption = None,
) -> None:
    """Answer a question. For a call: give its result yourself, and the call does not run."""
    _decide(approval, Answer(" ".join(text), note), by, store)


def always(
    approval: ApprovalArgument,
    tool: Annotated[bool, typer.Option("--tool", help="Any call of this tool, with any arguments.")] = False,
    pattern: Annotated[
        list[str] | None,
        typer.Option(
            "--pattern",
            metavar="NAME=PATTERN",
            help="Calls whose argument matches, * for any text: --pattern 'cmd=git status*'. Without =, the pattern is "
            "for names of tools. Repeatable.",
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="How long the rule is valid: 30m, 8h, 7d. Default: until revoked."),
    ] = None,
    note: Note = "",
    by: As = OPERATOR,
    store: StoreOption = None,
) -> None:
    """Approve a call, and make a rule that approves the same call from now on.

    --tool and --pattern widen the rule. A rule never allows a call that a policy denies. List the rules with wakeful
    approvals rules.
    """
    if tool and pattern:
        raise WrongRequest("--tool and --pattern were both given", "give one of them")
    seconds = seconds_of(duration) if duration is not None else None
    named = [each for each in pattern or () if "=" not in each]
    if len(named) > 1:
        raise WrongRequest(f"several tool names were given: {', '.join(named)}", "give one, * allowed")
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
        raise WrongRequest(f"{text!r} is not NAME=VALUE", "write it like this: cents=4200")
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
            f"--arguments is not JSON: {error}", """write it like this: --arguments '{"cents": 4200}'"""
        ) from None
    if not isinstance(value, dict):
        raise WrongRequest(f"--arguments is a {type(value).__name__}", "give a JSON object: {...}")
    return value


# --- deciding and telling --------------------------------------------------------------------------------------------


def _decide(approval: str, decided: Decided | ArgumentChange, by: str, store: Path | None) -> None:
    place = store_to_read(store)
    told = ask(DECIDE, ApprovalDecision(approval, decided, by), place)
    record = told.outcome.approval
    if told.outcome.duplicate:
        raise Failure(f"{short(record.id)} was decided before: {decided_words(record)}", "nothing was changed")
    out(f"{short(record.id)}  {decided_words(record)}")
    if isinstance(decided, ArgumentChange):
        prose([f"  was  {call_text(record)}", f"  now  {call_text(record, arguments=told.outcome.arguments)}"])
    else:
        prose(f"  {call_text(record)}")
    if told.rule is not None:
        prose(f"new rule: {rule_line(told.rule)}")
        out(f"revoke it: wakeful approvals revoke {short(told.rule.rule_id)}{place.flag}")
    for other in told.others:
        prose(f"still pending: {short(other.id)}  {call_text(other)}")
    if told.ahead is not None and not told.others:
        if told.ahead.row.state == "running":
            out("The process that runs the turn continues by itself. If it has ended:")
        out(f"continue: {resume_line(told.ahead, place)}")
