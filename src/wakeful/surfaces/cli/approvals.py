"""`wakeful approvals`, `show`, `rules`, `revoke`: what waits for a person, and the answers that stand."""

from typing import Annotated

import typer

from wakeful.contracts.envelope import iso
from wakeful.contracts.policies import Rule
from wakeful.service import RuleRow
from wakeful.service.operations import (
    LIST_APPROVALS,
    LIST_RULES,
    OPERATOR,
    REVOKE_RULE,
    SHOW_APPROVAL,
    AgentName,
    ApprovalFilter,
    ApprovalName,
    RuleName,
)
from wakeful.surfaces.cli.approval_words import age, call_text, decided_words, details, left, pending_lines, rule_line
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import ask, store_to_read
from wakeful.surfaces.cli.shown_values import columns, json_text, moment, one_line, out, plain
from wakeful.views.explanation import rule_words


def listed(
    everything: Annotated[bool, typer.Option("--all", help="Also what was decided, oldest first.")] = False,
    turn: Annotated[str | None, typer.Option("--turn", metavar="TURN", help="Of one turn alone.")] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List what waits for a person: approvals and questions, with the commands that decide them.

    Then: wakeful approvals show | approve | reject | edit | answer | always ID, and wakeful approvals rules | revoke.
    An id may be cut short as long as it means one record.
    """
    place = store_to_read(store)
    records = ask(LIST_APPROVALS, ApprovalFilter(turn, decided=everything), place)
    if json:
        out(json_text([record.model_dump(mode="json") for record in records], indent=2))
    elif not records:
        out("nothing waits for a decision" if not everything else "nobody has been asked anything")
    else:
        cells = [
            (
                each.id,
                age(each),
                left(each) if each.status == "pending" else each.status,
                each.agent,
                call_text(each, 80),
                one_line(each.reason, 120) if each.status == "pending" else decided_words(each),
            )
            for each in records
        ]
        out(columns(cells, ("ID", "AGE", "LEFT", "AGENT", "WHAT", "WHY")))
        pending = [each for each in records if each.status == "pending"]
        if pending:
            out(["", *pending_lines(pending[:1], place)])
            out(f"    all of it:  wakeful approvals show {pending[0].id}{place.flag}")


def show(
    approval: Annotated[str, typer.Argument(metavar="ID")], json: JsonOption = False, store: StoreOption = None
) -> None:
    """Show one approval or question: the tool, its arguments, its directory, why, and what may be done."""
    place = store_to_read(store)
    record = ask(SHOW_APPROVAL, ApprovalName(approval), place)
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
    else:
        out(details(record, place))


def rules(
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Of one agent alone.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also those that were taken back.")] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List the standing answers that people gave with wakeful approvals always."""
    place = store_to_read(store)
    rows = [row for row in ask(LIST_RULES, AgentName(agent), place) if everything or row.revoked_at is None]
    if json:
        out(json_text([_as_json(row) for row in rows], indent=2))
    elif not rows:
        out("no standing answer holds")
    else:
        cells = [(row.rule_id, moment(row.added_at), row.added_by, _state(row), rule_line(row)) for row in rows]
        out(columns(cells, ("RULE", "SINCE", "BY", "STATE", "WHAT")))
        out(["", f"take one back: wakeful approvals revoke {rows[0].rule_id}{place.flag}"])


def revoke(
    rule: Annotated[str, typer.Argument(metavar="RULE")],
    by: Annotated[str, typer.Option("--as", metavar="NAME", help="Who takes it back.")] = OPERATOR,
    store: StoreOption = None,
) -> None:
    """Take a standing answer back: from the next turn on, and in turns that are taken up again, somebody is asked."""
    place = store_to_read(store)
    row = ask(REVOKE_RULE, RuleName(rule, by), place)
    assert row.revoked_at is not None
    out(f"{row.rule_id} holds no more (taken back by {plain(row.revoked_by or '-')} at {moment(row.revoked_at)})")
    out(rule_line(row))


def _state(row: RuleRow) -> str:
    return "holds" if row.revoked_at is None else f"taken back by {row.revoked_by}"


def _as_json(row: RuleRow) -> dict[str, object]:
    return {
        **row._asdict(),
        "added_at": iso(row.added_at),
        "revoked_at": iso(row.revoked_at) if row.revoked_at is not None else None,
        "words": rule_words(Rule.model_validate(row.rule)),
    }
