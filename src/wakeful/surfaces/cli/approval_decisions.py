"""`wakeful approvals approve`, `reject`, `edit`, `answer`, `always`: a person's decision, once.

Ends with 0 when this decision counts. With 1 when another came first: it is shown and nothing is changed. With 2 when
the decision does not fit, or the person is not entitled.
"""

from json import loads
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import typer

from wakeful.contracts.errors import AlreadyDecided
from wakeful.service.operations.agents import AgentName
from wakeful.service.operations.approvals import LIST_RULES, SHOW_APPROVAL, ApprovalName
from wakeful.service.operations.decisions import (
    DECIDE_BY_ANSWER,
    DECIDE_BY_EDIT,
    DECIDE_FOR_ALWAYS,
    DECIDE_PLAINLY,
    SEARCH_APPROVALS,
    AlwaysDecision,
    AnswerDecision,
    ApprovalSearch,
    DecisionRecord,
    EditDecision,
    PlainDecision,
)
from wakeful.service.operations.operation import Operation
from wakeful.surfaces.cli.approval_words import call_text, decided_words, rule_line
from wakeful.surfaces.cli.options import ApprovalArgument, JsonOption, StoreOption, seconds_of
from wakeful.surfaces.cli.outcomes import resume_line
from wakeful.surfaces.cli.places import UNATTENDED, ask, place_to_ask
from wakeful.surfaces.cli.problems import Failure, WrongRequest, unreadable
from wakeful.surfaces.cli.screen import prose, short
from wakeful.surfaces.cli.shown_values import json_text, out, plain

Q = TypeVar("Q", PlainDecision, EditDecision, AnswerDecision, AlwaysDecision)
Note: TypeAlias = Annotated[str, typer.Option("--note", metavar="TEXT", help="A note for the log.")]


def approve(approval: ApprovalArgument, note: Note = "", json: JsonOption = False, store: StoreOption = None) -> None:
    """Approve a call: it runs with exactly the arguments that are shown."""
    _decide(DECIDE_PLAINLY, PlainDecision(approval, "approved", note), store, json=json)


def reject(
    approval: ApprovalArgument,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORDS", help="The reason, or what to do instead. The model reads it."),
    ] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Reject a call. The run continues, and the model reads your words."""
    _decide(DECIDE_PLAINLY, PlainDecision(approval, "rejected", " ".join(words or ())), store, json=json)


def edit(
    approval: ApprovalArgument,
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Arguments to change; the others stay.")
    ] = None,
    arguments: Annotated[
        str | None, typer.Option("--arguments", metavar="JSON|@FILE", help="All arguments, as a JSON object.")
    ] = None,
    note: Note = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Approve a call with other arguments. The log keeps both; a value left as [redacted] is not changed."""
    whole = _object(arguments) if arguments is not None else None
    changed = dict(_assignment(each) for each in changes or ())
    if whole is None and not changed:
        raise WrongRequest(
            "no change was given", f"name the arguments to change: wakeful approvals edit {approval} NAME=VALUE"
        )

    _decide(DECIDE_BY_EDIT, EditDecision(approval, whole, changed, note), store, json=json)


def answer(
    approval: ApprovalArgument,
    text: Annotated[
        list[str], typer.Argument(metavar="TEXT", help="The answer, or the result that replaces the call.")
    ],
    note: Note = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Answer a question. For a call: give its result yourself, and the call does not run."""
    _decide(DECIDE_BY_ANSWER, AnswerDecision(approval, " ".join(text), note), store, json=json)


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
    json: JsonOption = False,
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
    asked = AlwaysDecision(
        approval,
        scope="pattern" if pattern else "tool" if tool else "call",
        match=named[0] if named else None,
        arguments=dict(_assignment(each) for each in pattern or () if "=" in each),
        for_seconds=seconds,
        reason=note,
    )
    _decide(DECIDE_FOR_ALWAYS, asked, store, json=json)


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
        value = loads(text)
    except ValueError as error:
        raise WrongRequest(
            f"--arguments is not JSON: {error}", """write it like this: --arguments '{"cents": 4200}'"""
        ) from None
    if not isinstance(value, dict):
        raise WrongRequest(f"--arguments is a {type(value).__name__}", "give a JSON object: {...}")
    return value


# --- deciding and telling --------------------------------------------------------------------------------------------


def _decide(operation: Operation[Q, DecisionRecord], asked: Q, store: Path | None, *, json: bool) -> None:
    place = place_to_ask(store)
    try:
        told = ask(operation, asked, place)
    except AlreadyDecided:
        told = None
    record = told.approval if told is not None else ask(SHOW_APPROVAL, ApprovalName(asked.approval), place)
    if told is None or told.duplicate:
        raise Failure(f"{short(record.id)} was decided before: {decided_words(record)}", "nothing was changed")
    if json:
        out(json_text(told.model_dump(mode="json"), indent=2))
        return
    out(f"{short(record.id)}  {decided_words(record)}")
    if told.arguments is not None:
        prose([f"  was  {call_text(record)}", f"  now  {call_text(record, arguments=told.arguments)}"])
    else:
        prose(f"  {call_text(record)}")
    if told.rule_id is not None:
        rule = next(each for each in ask(LIST_RULES, AgentName(), place) if each.rule_id == told.rule_id)
        prose(f"new rule: {rule_line(rule)}")
        out(f"revoke it: wakeful approvals revoke {short(rule.rule_id)}{place.flag}")
    others = ask(SEARCH_APPROVALS, ApprovalSearch(run_id=record.turn_id), place)
    for other in others:
        prose(f"still pending: {short(other.id)}  {call_text(other)}")
    if others:
        return
    if told.ahead is not None:
        out(f"continue: {resume_line(told.ahead, place)}")
    elif place.is_unattended:
        out(UNATTENDED)
    else:
        out(f"watch it: wakeful tail {plain(record.agent)} --follow{place.flag}")
