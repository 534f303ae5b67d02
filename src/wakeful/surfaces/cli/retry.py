"""`wakeful retry`: try turns again that failed. What happened in them stands."""

import asyncio
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from wakeful.contracts.errors import RetryRefused
from wakeful.service import Agent
from wakeful.service.code_loader import code_options, load
from wakeful.service.operations.retries import (
    LIST_FAILED,
    RETRY,
    SHOW_REPLACEMENT,
    FailureQuery,
    TurnRetry,
)
from wakeful.service.operations.turns import TurnName
from wakeful.surfaces.cli.cost import moment_named
from wakeful.surfaces.cli.exit_codes import INTERRUPTED
from wakeful.surfaces.cli.options import JsonOption, NoInputOption, StoreOption, ToolsOption
from wakeful.surfaces.cli.places import StoreAddress, ask, place_to_ask
from wakeful.surfaces.cli.problems import NeedsPerson, WrongRequest, complain, note
from wakeful.surfaces.cli.resume import SuppliedCode, check_code, resume_turns
from wakeful.surfaces.cli.screen import columns, prose, short
from wakeful.surfaces.cli.shown_values import age_cell, counted, json_text, moment, one_line, out, plain
from wakeful.views.store_records import FailedTurnRecord, SteeredTurn

OPTIONS_OF = {
    "usd": "--budget-usd",
    "tokens": "--budget-tokens",
    "model_calls": "--budget-calls",
    "tool_calls": "--budget-tool-calls",
    "seconds": "--budget-seconds",
    "subtasks": "--budget-subtasks",
    "max_steps": "--max-steps",
}
MOST = 1_000
"""So many failed turns are looked at at once."""


def command(
    turn: Annotated[str | None, typer.Argument(metavar="TURN", help="Id, beginning of the id, or key.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="All failed turns, after a summary.")] = False,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DAY", help="Only what failed since then: 2026-11-01.")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME|FILE", help="Only this agent's turns; with a turn, its agent's file."),
    ] = None,
    cause: Annotated[
        str | None, typer.Option("--cause", metavar="CAUSE", help="Only this cause, as the summary names it.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask after the summary.")] = False,
    message: Annotated[
        bool, typer.Option("--message", help="Only print the message that can be sent in the turn's place.")
    ] = False,
    usd: Annotated[
        str | None, typer.Option("--budget-usd", metavar="AMOUNT", help="Most dollars in all, those spent included.")
    ] = None,
    calls: Annotated[int | None, typer.Option("--budget-calls", min=1, help="Most model calls in all.")] = None,
    tool_calls: Annotated[
        int | None, typer.Option("--budget-tool-calls", min=1, help="Most tool calls in all.")
    ] = None,
    seconds: Annotated[float | None, typer.Option("--budget-seconds", help="Most seconds of work in all.")] = None,
    tokens: Annotated[int | None, typer.Option("--budget-tokens", min=1, help="Most tokens in all.")] = None,
    subtasks: Annotated[int | None, typer.Option("--budget-subtasks", min=0, help="Most subtasks in all.")] = None,
    max_steps: Annotated[int | None, typer.Option("--max-steps", min=1, help="Most rounds in all.")] = None,
    tools: ToolsOption = None,
    no_input: NoInputOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Try a failed turn again, or all of them. The same turn goes on where it failed.

    Calls that have finished stay finished, and are not paid again. After a limit, say what the turn may use in all.
    A turn that its thread has gone on from stays as it is: --message prints what can be sent in its place.
    Turns of the daemon's agents go on in the daemon; others go on here, with code from --tools.
    """
    where = "" if store is None else f" --store {shlex.quote(str(store))}"
    if failed == (turn is not None):
        given = "TURN and --failed were both given" if failed else "neither a turn nor --failed was given"
        raise WrongRequest(given, f"wakeful retry TURN{where}, or wakeful retry --failed{where}")
    if turn is not None and (since or cause):
        raise WrongRequest("--since and --cause go with --failed", f"wakeful retry {turn}{where}")
    if turn is None and message:
        raise WrongRequest("--message goes with a turn", f"wakeful retry TURN --message{where}")
    which = FailureQuery(agent, moment_named(since) if since is not None else None, cause, MOST)
    place = place_to_ask(store)
    if turn is not None and message:
        out(ask(SHOW_REPLACEMENT, TurnName(turn), place).text)
        return
    asked = TurnRetry("", "", usd, tokens, calls, tool_calls, seconds, subtasks, max_steps)
    raised = [option for name, option in OPTIONS_OF.items() if getattr(asked, name) is not None]
    wanted = [turn] if turn is not None else _chosen(place, which, raised, yes=yes, json=json)
    file = Path(agent) if turn is not None and agent is not None else None
    supplied = _supplied(tools, file, no_input=no_input)
    given = "".join(f" {option} {value}" for name, option in OPTIONS_OF.items() if (value := getattr(asked, name)))
    opened: list[SteeredTurn] = []
    codes = []
    for each in wanted:
        request = replace(asked, turn=each)
        try:
            asyncio.run(check_code(request, place, supplied, given))
            opened.append(ask(RETRY, request, place))
        except (RetryRefused, NeedsPerson) as refusal:
            if turn is not None:
                raise
            complain(refusal.message, refusal.hint)  # the others go on
            codes += [refusal.exit_code] if isinstance(refusal, NeedsPerson) else []
    here = [each.turn_id for each in opened if each.ahead is not None]
    away = [each for each in opened if each.ahead is None]
    if away and json and not here:
        documents = [each.model_dump(mode="json") for each in away]
        out(json_text(documents[0] if turn is not None else documents, indent=2))
    elif away:
        _tell_opened(away, place)
    if here:
        codes += _go_on(here, place, supplied, single=turn is not None, json=json, quiet=quiet)
    if codes:
        raise typer.Exit(max(codes))


def _supplied(tools: list[str] | None, file: Path | None, *, no_input: bool) -> SuppliedCode:
    """Code for the turns that go on here."""
    loaded = load(tools or [])
    for words in loaded.notes:
        note(words)
    agents = [*loaded.agents, *([Agent.from_file(file, loaded.tools)] if file is not None else [])]
    code = code_options(tools, file)
    return SuppliedCode(None, None, None, no_input, code, loaded, agents, None, lift_pause=True)


def _chosen(place: StoreAddress, which: FailureQuery, raised: list[str], *, yes: bool, json: bool) -> list[str]:
    """The turns to try again, after the person has seen which they are. `raised` are the limits that are."""
    found = ask(LIST_FAILED, which, place)
    ready = [each for each in found if each.retryable and (not each.raises or each.raises in raised)]
    if not found:
        out("[]" if json else _none(which))
        raise typer.Exit(0)
    if not json:
        _summarise(found, ready, place)
    if not ready:
        out("[]" if json else ())
        raise typer.Exit(0)
    number = counted(len(ready), "turn")
    if not yes and (json or not _is_wanted(number)):
        raise NeedsPerson(f"{number} would be tried again", "add --yes")
    return [each.turn_id for each in reversed(ready)]


def _none(which: FailureQuery) -> str:
    """Nothing was found: for what was looked."""
    agent = f" of agent {which.agent}" if which.agent is not None else ""
    cause = f" with the cause {which.cause}" if which.cause is not None else ""
    since = f" since {moment(which.since)}" if which.since is not None else ""
    return f"no turn{plain(agent)} has failed{plain(cause)}{since}"


def _is_wanted(number: str) -> bool:
    """Where nobody answers, it is not."""
    try:
        return typer.confirm(f"Try {number} again?", err=True)
    except typer.Abort:
        return False


def _summarise(found: list[FailedTurnRecord], ready: list[FailedTurnRecord], place: StoreAddress) -> None:
    can = {each.turn_id for each in ready}
    groups: dict[tuple[str, str], list[FailedTurnRecord]] = {}
    for each in found:
        groups.setdefault((each.agent, each.cause), []).append(each)
    rows = [
        (
            str(sum(each.turn_id in can for each in group)),
            str(sum(each.turn_id not in can for each in group)),
            agent,
            cause,
            age_cell(round((group[0].ended_at or group[0].created_at) * 1_000_000)),
            one_line(group[0].message, 200),
        )
        for (agent, cause), group in sorted(groups.items(), key=lambda each: -len(each[1]))
    ]
    out(columns(rows, ("RETRY", "NOT", "AGENT", "CAUSE", "LAST", "WHY")))
    if len(found) == MOST:
        out(f"only the newest {MOST:,} are looked at")
    if raised := sorted({each.raises for each in found if each.retryable and each.turn_id not in can}):
        prose(f"Some reached a limit. To try them again, give more: {' or '.join(raised)}")
    if any(not each.retryable for each in found):
        prose(
            "Some cannot be tried again: their threads have gone on, or the same would follow. Print a message to send "
            f"in the place of one: wakeful retry TURN --message{place.flag}"
        )


def _tell_opened(away: list[SteeredTurn], place: StoreAddress) -> None:
    if len(away) == 1:
        turn = short(away[0].turn_id)
        out([f"turn {turn} is tried again", f"watch it: wakeful events {turn} --follow{place.flag}"])
    else:
        out(f"{counted(len(away), 'turn')} are tried again")
    if place.is_unattended:
        prose("No daemon runs here: they go on with the next wakeful daemon start.")


def _go_on(
    turns: list[str], place: StoreAddress, supplied: SuppliedCode, *, single: bool, json: bool, quiet: bool
) -> list[int]:
    """Turns that no runtime goes on with: here and now, one after the other. The exit code of each."""
    try:
        return asyncio.run(
            resume_turns(turns, place._replace(daemon=None), supplied, single=single, json=json, quiet=quiet)
        )
    except KeyboardInterrupt:
        note(f"\nInterrupted. To continue: wakeful resume {short(turns[0]) if single else ''}{place.flag}")
        raise typer.Exit(INTERRUPTED) from None
