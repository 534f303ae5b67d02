"""`wakeful approvals`, `show`, `rules`, `revoke`: pending approvals, and rules that approve by themselves."""

import sys
from typing import Annotated

import typer

from wakeful.service.operations.agents import AgentName
from wakeful.service.operations.approvals import (
    LIST_RULES,
    REASK,
    REVOKE_RULE,
    SHOW_APPROVAL,
    ApprovalName,
    ApprovalReask,
    RuleName,
)
from wakeful.service.operations.decisions import SEARCH_APPROVALS, ApprovalSearch
from wakeful.surfaces.cli.approval_words import (
    call_excerpt,
    call_text,
    details,
    left,
    outcome_words,
    pending_lines,
    rule_line,
)
from wakeful.surfaces.cli.last_list import remember, remember_shown
from wakeful.surfaces.cli.options import ApprovalArgument, JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.people import named_people
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.screen import columns, prose, short
from wakeful.surfaces.cli.shown_values import age_cell, json_text, moment, out, plain
from wakeful.views.presentation.call_lines import MOST_LINES, is_recorded_whole
from wakeful.views.store_records import ApprovalRule


def listed(
    everything: Annotated[bool, typer.Option("--all", help="Include decided ones, oldest first.")] = False,
    turn: Annotated[
        str | None, typer.Option("--turn", metavar="TURN", help="Only this turn: id, beginning of the id, or key.")
    ] = None,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """List pending approvals and questions, each call whole, with the commands that decide them.

    A call of many lines is cut, and its number approves nothing until wakeful approvals show, or --wide, has shown it.
    ID is the approval's id or the beginning of it, or the id or key of a turn that has one pending approval.
    """
    place = place_to_ask(store)
    records = ask(SEARCH_APPROVALS, ApprovalSearch("any" if everything else "pending", turn), place)
    pending = [each for each in records if each.status == "pending"]
    most = None if wide or json else MOST_LINES
    cut = [each.id for each in pending if not call_excerpt(each, most=most).is_whole]
    remember("approvals", [each.id for each in records], place, cut=cut)
    if json:
        out(json_text([record.model_dump(mode="json") for record in records], indent=2))
    elif not records:
        out("nothing is pending" if not everything else "no approvals yet")
    else:
        cells = [
            (
                f"{row:<2} {short(each.id)}",
                plain(each.agent),
                left(each) if each.status == "pending" else outcome_words(each),
                # Of the tools that come with it, the name alone.
                call_text(each, None if wide else 200).removeprefix("wakeful/"),
            )
            for row, each in enumerate(records, 1)
        ]
        out(columns(cells, ("#  ID", "AGENT", "STATE" if everything else "EXPIRES", "CALL"), wide=wide))
        rows = {each.id: row for row, each in enumerate(records, 1)}
        for each in pending:
            out(["", *pending_lines([each], place, rows=rows, most=most, stream=sys.stdout)])


def show(approval: ApprovalArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Show one approval or question in full: tool, arguments, folder, reason, and the commands that decide it."""
    place = place_to_ask(store)
    record = ask(SHOW_APPROVAL, ApprovalName(approval), place)
    if is_recorded_whole(record.arguments):
        remember_shown("approvals", record.id, place)
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
    else:
        prose(details(record, place))


def rules(
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Include revoked rules.")] = False,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """List the rules that were made with wakeful approvals always."""
    place = place_to_ask(store)
    rows = [row for row in ask(LIST_RULES, AgentName(agent), place) if everything or row.revoked_at is None]
    remember("rules", [row.rule_id for row in rows], place)
    if json:
        out(json_text([row.model_dump(mode="json") for row in rows], indent=2))
    elif not rows:
        out("no rules")
    else:
        cells = [
            (
                short(row.rule_id),
                age_cell(int(row.added_at * 1e6)),
                named_people(row.added_by),
                _state(row),
                rule_line(row),
            )
            for row in rows
        ]
        out(columns(cells, ("RULE", "AGE", "BY", "STATE", "ALLOWS"), wide=wide))
        active = next((row for row in rows if row.revoked_at is None), None)
        if active is not None:
            out(["", f"revoke a rule: wakeful approvals revoke {short(active.rule_id)}{place.flag}"])


def revoke(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The rule's id, or its beginning.")],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Revoke a rule. Calls that it allowed ask again, in new turns and in turns that are resumed."""
    place = place_to_ask(store)
    row = ask(REVOKE_RULE, RuleName(rule), place)
    if json:
        out(json_text(row.model_dump(mode="json"), indent=2))
        return
    assert row.revoked_at is not None
    who, when = named_people(row.revoked_by or "-"), moment(int(row.revoked_at * 1e6))
    out(f"{short(row.rule_id)} was revoked by {plain(who)} at {when}")
    prose(rule_line(row))


def reask(
    approval: Annotated[str, typer.Argument(metavar="ID", help="The approval's id, or its beginning.")],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Have an agent of a runtime ask again about a call whose approval expired."""
    sent = ask(REASK, ApprovalReask(approval), place_to_ask(store))
    if json:
        out(json_text(sent.model_dump(mode="json"), indent=2))
        return
    prose(f"{short(sent.message_id)} is stored for agent {plain(sent.agent)}; it may ask again")


def _state(row: ApprovalRule) -> str:
    return "active" if row.revoked_at is None else f"revoked by {named_people(row.revoked_by or '-')}"
