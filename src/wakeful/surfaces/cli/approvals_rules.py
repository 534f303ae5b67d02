"""`wakeful approvals rules` and `revoke`: standing answers, and taking one back."""

import asyncio
from typing import Annotated

import typer

from wakeful.bootstrap import opened_store, runtime
from wakeful.contracts.envelope import iso
from wakeful.contracts.policies import Rule
from wakeful.decisions.explaining import rule_words
from wakeful.ports import RuleRow
from wakeful.service.approvals import OPERATOR, revoke_rule, rules
from wakeful.surfaces.cli.approval_words import rule_line
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.shown import columns, json_text, moment, out, plain


def listed(
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Of one agent alone.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also those that were taken back.")] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List the standing answers that people gave with wakeful approvals always."""
    place = store_to_read(store)
    rows = [row for row in asyncio.run(_rules(place, agent)) if everything or row.revoked_at is None]
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
    row = asyncio.run(_revoke(place, rule, by))
    assert row.revoked_at is not None
    out(f"{row.rule_id} holds no more (taken back by {plain(row.revoked_by or '-')} at {moment(row.revoked_at)})")
    out(rule_line(row))


async def _rules(place: Place, agent: str | None) -> list[RuleRow]:
    async with opened_store(place.path) as opened:
        return await rules(runtime(opened), agent)


async def _revoke(place: Place, rule: str, by: str) -> RuleRow:
    async with opened_store(place.path) as opened:
        return await revoke_rule(runtime(opened), rule, by=by)


def _state(row: RuleRow) -> str:
    return "holds" if row.revoked_at is None else f"taken back by {row.revoked_by}"


def _as_json(row: RuleRow) -> dict[str, object]:
    return {
        **row._asdict(),
        "added_at": iso(row.added_at),
        "revoked_at": iso(row.revoked_at) if row.revoked_at is not None else None,
        "words": rule_words(Rule.model_validate(row.rule)),
    }
