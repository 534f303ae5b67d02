"""The end of a run: the answer on stdout, everything else with the exact next command on stderr."""

import shlex
import sys
from collections.abc import Sequence
from typing import Any

from wakeful.contracts.events import LimitChanged, SandboxApplied, Terminal
from wakeful.contracts.spending import WindowPassed
from wakeful.service.commands.turn_retries import OPTIONS
from wakeful.service.run_result import RunResult
from wakeful.surfaces.cli.approval_words import pending_lines
from wakeful.surfaces.cli.exit_codes import COMPLETED, FAILED, NEEDS_PERSON
from wakeful.surfaces.cli.people import named_people
from wakeful.surfaces.cli.places import StoreAddress
from wakeful.surfaces.cli.problems import note
from wakeful.surfaces.cli.request_words import how_to_end, line
from wakeful.surfaces.cli.screen import short
from wakeful.surfaces.cli.shown_values import arguments_text, duration, json_text, one_line, plain
from wakeful.views.store_records import TurnContinuation, UnknownCall


def exit_code(result: RunResult[Any]) -> int:
    """The exit code of the process."""
    if result.completed:
        return COMPLETED
    return NEEDS_PERSON if result.status in ("waiting", "approval_required", "runtime_tool_pending") else FAILED


def tell(
    result: RunResult[Any], unknown: Sequence[UnknownCall], place: StoreAddress, *, quiet: bool, code: str = ""
) -> None:
    """The answer and, for people, how it went. `code` are the options that bring the same code again."""
    turn = short(result.turn_id)
    if result.completed:
        answer = result.output
        text = answer if isinstance(answer, str) else result.final_content
        sys.stdout.write(plain(text).rstrip("\n") + "\n")
    else:
        if result.is_cut and result.final_content:
            sys.stdout.write(plain(result.final_content).rstrip("\n") + "\n")
        note(headline(result))
    sys.stdout.flush()
    mine = [row for row in unknown if row.turn_id == result.turn_id]
    if mine:
        note(f"{len(mine)} call{'s have' if len(mine) > 1 else ' has'} an unknown outcome. Find out, then record it:")
        note("\n".join(unknown_lines(mine, place)))
    for reason in _unconfined(result):
        note(f"commands ran without a sandbox: not_enforced{f' ({reason})' if reason else ''}")
    for warning in result.warnings:
        note(f"warning: {one_line(warning, 300)}")
    waiting = [*result.approvals, *result.questions]
    if waiting:
        note("\n".join(pending_lines(waiting, place)))
        if place.daemon is None:
            note(f"then continue: wakeful resume {turn}{place.flag}{code}")
    if result.runtime_tools:
        note("\n".join(["a client has to run:", *(f"  {line(request)}" for request in result.runtime_tools)]))
        note("\n".join(how_to_end(result.runtime_tools[0], place)))
    if (window := _waits_for_money(result)) is not None:
        note(f"then, or after a grant: wakeful resume {turn}{place.flag}{code}")
        note(grant_line(window, place))
    if result.waiting_for == "provider" and result.mends_by_itself and result.next_try is not None:
        note(f"the next try is due at {result.next_try}; earlier, or then: wakeful resume {turn}{place.flag}{code}")
    elif result.waiting_for in ("pause", "provider"):
        note(f"to continue: wakeful resume {turn}{place.flag}{code}")
    if result.retryable and not result.completed:
        more = f" {OPTIONS[result.stop_reason]} NUMBER" if result.stop_reason in OPTIONS else ""
        note(f"to try it again: wakeful retry {turn}{more}{place.flag}{code}")
    if not result.completed:
        note(f"log: wakeful events {turn}{place.flag}")
    elif sys.stderr.isatty() and not quiet:
        rounds, calls = _count(result.turn_count, "round"), _count(result.tool_calls, "call")
        note(f"{rounds}, {calls}, {duration(result.duration_ms)}; wakeful events {turn}{place.flag}")


def tell_json(result: RunResult[Any]) -> None:
    """The documented JSON: one document."""
    sys.stdout.write(json_text(result.to_dict(), indent=2) + "\n")


def unknown_lines(rows: Sequence[UnknownCall], place: StoreAddress) -> list[str]:
    """Each call with the two commands that close it."""
    lines = []
    for row in rows:
        turn, _, call = row.reference.rpartition("/")
        name = f"{short(turn)}/{call}" if turn else call
        lines += [
            f"  {plain(row.tool)}({arguments_text(row.arguments)})",
            f"    {one_line(row.reason, 300)}",
            f'    it happened:  wakeful resolve {name} --happened "its result"{place.flag}',
            f"    it did not:   wakeful resolve {name} --did-not-happen{place.flag}",
        ]
    return lines


def resume_line(turn: TurnContinuation, place: StoreAddress) -> str:
    """`wakeful resume TURN --tools MODULE:refund   (or run your program again)`."""
    code = "".join(f" --tools MODULE:{one_line(name.rpartition('/')[2])}" for name in turn.code_needed)
    also = "   (or run your program again)" if turn.code_needed else ""
    return f"wakeful resume {short(turn.turn_id)}{place.flag}{code}{also}"


def grant_line(window: WindowPassed, place: StoreAddress) -> str:
    """The command that lets a turn go on before its window turns."""
    kind, _, name = window.scope.partition(":")
    who = f" --{kind} {shlex.quote(name)}" if name else ""
    return f"more for this {window.period}: wakeful budget grant{who} --usd AMOUNT --window {window.period}{place.flag}"


def headline(result: RunResult[Any]) -> str:
    """`failed (provider_error): the key is wrong`; ids as short as people type them."""
    why = f" ({result.stop_reason})" if result.stop_reason != result.status else ""
    words = " ".join(_short_in_list(word) for word in named_people(result.message).split(" "))
    return f"{result.status}{why}{': ' + words if words else ''}"


def _short_in_list(word: str) -> str:
    return short(word.removesuffix(",")) + ("," if word.endswith(",") else "")


def _waits_for_money(result: RunResult[Any]) -> WindowPassed | None:
    """The spend window that a turn rests on."""
    if result.waiting_for != "money":
        return None
    for entry in reversed(result.facts()):
        event = entry.fact.event
        if isinstance(event, Terminal):
            return None
        if isinstance(event, LimitChanged):
            return event.window
    return None


def _unconfined(result: RunResult[Any]) -> list[str]:
    """Why commands of the run were held by nothing."""
    held = [entry.fact.event for entry in result.facts()]
    return list(
        dict.fromkeys(
            one_line(event.reason, 200)
            for event in held
            if isinstance(event, SandboxApplied) and event.mode == "not_enforced"
        )
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
