"""An approval or a question as a person reads it, with the exact commands that decide it.

Text of models and tools goes through `plain` or `one_line`: nothing of it can draw a prompt of its own.
"""

import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from wakeful.contracts.approvals import Approval
from wakeful.contracts.policies import Rule
from wakeful.surfaces.cli.people import named_people
from wakeful.surfaces.cli.places import StoreAddress
from wakeful.surfaces.cli.screen import fold, painted, short, width
from wakeful.surfaces.cli.shown_values import arguments_text, counted, json_text, moment, one_line, plain, span
from wakeful.views.approval_details import DECIDED, ApprovalDetails, ApprovalNotice
from wakeful.views.presentation.call_lines import (
    MOST_LINES,
    CallExcerpt,
    call_lines,
    excerpt_of,
    is_recorded_whole,
    prompt_lines,
    text_lines,
)
from wakeful.views.store_records import ApprovalRule

TOO_LONG = "the arguments are too long for the record, and their text is not in the log any more: reject the call"


def call_text(approval: Approval, most: int | None = 160, *, arguments: dict[str, Any] | None = None) -> str:
    """`refund(order="A17", cents=4200)`, or the question; with other arguments where they are given."""
    if approval.kind == "question":
        return one_line(approval.prompt, len(approval.prompt) if most is None else most)
    shown = approval.arguments if arguments is None else arguments
    if most is None:
        return call_lines(approval.tool, shown, sys.maxsize, on_one_line=True)[0].text
    return f"{one_line(approval.tool)}({arguments_text(shown, most)})"


def call_excerpt(approval: Approval, *, indent: int = 2, most: int | None = MOST_LINES) -> CallExcerpt:
    """The lines of a call, or of a question, at the width of the screen. `most` lines; None: all of it."""
    room = width() - indent
    if approval.kind == "question":
        lines = text_lines(approval.prompt, room) if "\n" in approval.prompt else prompt_lines(approval.prompt, room)
    else:
        lines = call_lines(approval.tool, approval.arguments, room)
    return excerpt_of(lines, approval.arguments, most)


def how_to_see(approval: Approval, excerpt: CallExcerpt, place: StoreAddress) -> str:
    """`... 12 more lines: wakeful approvals show ID`."""
    more = f"{counted(excerpt.left_out, 'more line')}" if excerpt.left_out else "its arguments are not shown here"
    return f"... {more}: wakeful approvals show {short(approval.id)}{place.flag}"


def pending_lines(
    approvals: Sequence[Approval],
    place: StoreAddress,
    *,
    rows: Mapping[str, int] | None = None,
    most: int | None = MOST_LINES,
    stream: TextIO | None = None,
) -> list[str]:
    """Pending approvals, each whole with the commands that decide it, or cut with the command that shows it.

    `rows` are the numbers that stand before them. With a `stream`, a terminal is shown changes in colours.
    """
    lines: list[str] = []
    for each in approvals:
        excerpt = call_excerpt(each, most=most)
        first, *others = [painted(line.text, line.tone, stream) for line in excerpt.lines]
        lines += [f"{rows[each.id] if rows else '':<2}{first}", *(f"  {line}" for line in others)]
        if not excerpt.is_whole:
            lines.append(f"    {how_to_see(each, excerpt, place)}")
        lines += fold(f"{one_line(each.reason, 300)}; {left(each)}", first="    ", rest="    ")
        if each.choices:
            lines.append(f"    choices: {one_line(', '.join(each.choices), 200)}")
        if each.approvers:
            lines.append(f"    approvers: {one_line(', '.join(each.approvers))}")
        offered = [line for line in commands(each, place) if excerpt.is_whole or line[0] != "approve:"]
        if rows and excerpt.is_whole:
            offered.append(("show:", f"wakeful approvals show {short(each.id)}{place.flag}"))
        lines += [f"    {words:<10}{command}" for words, command in offered]
    return lines


def commands(approval: Approval, place: StoreAddress) -> list[tuple[str, str]]:
    """The commands that decide it."""
    end = place.flag
    if approval.kind == "question":
        answer = shlex.quote(plain(approval.choices[0])) if approval.choices else '"your answer"'
        first = ("answer:", f"wakeful approvals answer {short(approval.id)} {answer}{end}")
    else:
        first = ("approve:", f"wakeful approvals approve {short(approval.id)}{end}")
    return [first, ("reject:", f'wakeful approvals reject {short(approval.id)} "the reason"{end}')]


def details(approval: ApprovalDetails, place: StoreAddress) -> list[str]:
    """Everything a person needs to decide, and the decision once there is one."""
    lines = [
        f"{approval.id}  {approval.kind}, {approval.status}",
        f"  agent      {plain(approval.agent)}",
        f"  turn       {short(approval.turn_id)}, call {plain(approval.call_id or '-')}",
        *fold(one_line(approval.reason, 400), first="  reason     ", rest=" " * 13),
        f"  asked      {moment(int(approval.requested_at * 1e6))}",
    ]
    if approval.kind == "question":
        lines += [f"  question   {_indented(approval.prompt)}"]
        lines += [f"  choices    {one_line(', '.join(approval.choices), 400)}"] if approval.choices else []
    else:
        first, *others = call_excerpt(approval, indent=13, most=None).lines
        lines += [f"  call       {painted(first.text, first.tone, sys.stdout)}"]
        lines += [painted(f"  {line.text}", line.tone, sys.stdout) for line in others]
        if not is_recorded_whole(approval.arguments):
            lines.append(f"  not shown  {TOO_LONG}")
        for name, value in approval.injected_args.items():
            lines.append(f"    {one_line(name)} (recorded, not passed to the tool) = {one_line(json_text(value))}")
        if approval.working_directory is not None:
            lines.append(f"  folder     {one_line(approval.working_directory, 400)}")
        if approval.confinement is not None:
            lines.append(f"  sandbox    {one_line(approval.confinement, 100)}")
    if approval.approvers:
        lines.append(f"  approvers  {one_line(', '.join(approval.approvers), 400)}")
    if approval.had_read:
        lines += fold(one_line(", ".join(approval.had_read), 400), first="  had read   ", rest=" " * 13)
    if approval.told is not None:
        lines += fold(_told(approval.told), first="  told       ", rest=" " * 13)
    if approval.status != "pending":
        return [*lines, f"  decided    {decided_words(approval)}"]
    return [
        *lines,
        f"  expires    {left(approval)}",
        *_behind(approval),
        *(f"  {words:<11}{line}" for words, line in _all(approval, place)),
    ]


def _told(notice: ApprovalNotice) -> str:
    """`channel:phone, delivered at 2030-01-02 10:00:00`."""
    to = f"{plain(notice.to)}, " if notice.to else ""
    at = f" at {moment(int(notice.settled_at * 1e6))}" if notice.settled_at is not None else ""
    if notice.state == "not_sent":
        return "not sent; to get notices on a phone: wakeful channel add ntfy"
    why = f": {one_line(notice.error, 200)}" if notice.error and notice.state != "delivered" else ""
    return f"{to}{notice.state.replace('_', ' ')}{at}{why}"


def _behind(approval: ApprovalDetails) -> list[str]:
    """The messages that queue in its thread."""
    shown = [f"{each.kind} of {moment(int(each.queued_at * 1e6))}" for each in approval.behind]
    more = approval.waits_behind - len(shown)
    words = ", ".join([*shown, *([f"{more} more"] if more > 0 else [])])
    return fold(words, first="  behind it  ", rest=" " * 13) if words else []


def decided_words(approval: Approval) -> str:
    """`approved by ana at 2030-01-02 10:00:00: go ahead`."""
    at = f" at {moment(int(approval.decided_at * 1e6))}" if approval.decided_at is not None else ""
    words = f": {one_line(approval.note, 200)}" if approval.note else ""
    return f"{outcome_words(approval)}{at}{words}"


def outcome_words(approval: Approval) -> str:
    """`approved by ana`, or what became of one that nobody decided: `expired`."""
    how = DECIDED.get(approval.decision or "") or approval.decision or approval.status
    return f"{how} by {plain(named_people(approval.decided_by))}" if approval.decided_by else how


def left(approval: Approval) -> str:
    """How long until it expires."""
    seconds = approval.expires_at - time.time()
    return f"{span(seconds)} left" if seconds > 0 else "expired"


def rule_line(row: ApprovalRule) -> str:
    """A rule on one line."""
    rule = Rule.model_validate(row.rule)
    until = f", until {moment(int(rule.expires * 1e6))}" if rule.expires is not None else ""
    return f"{plain(row.agent)}: {one_line(named_people(row.words), 300)}{until}"


def _all(approval: Approval, place: StoreAddress) -> list[tuple[str, str]]:
    typed = commands(approval, place)
    if approval.kind == "question":
        return typed
    return [
        *typed,
        ("edit:", f"wakeful approvals edit {short(approval.id)} NAME=VALUE{place.flag}"),
        ("answer:", f'wakeful approvals answer {short(approval.id)} "the result"{place.flag}'),
        ("always:", f"wakeful approvals always {short(approval.id)} --for 7d{place.flag}"),
    ]


def _indented(text: str) -> str:
    return plain(text).replace("\n", "\n      ")
