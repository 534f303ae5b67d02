"""Somebody at the terminal, asked about a call while the run waits: what would run, where, why; then a word.

Only a clear yes runs anything. What is typed in full is a no with words for the model; nothing typed leaves the record
as it is, and the run rests on it. Words of models and tools are shown and never obeyed, and every line of them stands
behind a mark, so that none of them looks like the question.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager

from wakeful.contracts.approvals import Always, Answer, Approval, Approve, Decided, Edit, Reject, is_approver
from wakeful.service import any_named
from wakeful.surfaces.cli.approval_words import call_excerpt, left
from wakeful.surfaces.cli.live_view import SilentView
from wakeful.surfaces.cli.places import local_name
from wakeful.surfaces.cli.screen import painted, short
from wakeful.surfaces.cli.shown_values import counted, json_text, one_line, plain
from wakeful.views.presentation.call_lines import CallExcerpt, is_recorded_whole

Approver = Callable[[Approval], Awaitable[Decided | None]]
ReadLine = Callable[[], Awaitable[str | None]]
"""A line without its end; None when there will be none."""
REFUSED = "-"
"""The word that refuses a question."""


def is_attended() -> bool:
    """Is somebody there who can be asked?"""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def approver_for(progress: SilentView, approved: Sequence[str] | None, *, no_input: bool) -> "TerminalApprover | None":
    """The approver of a run; None without a terminal and without `--approve`."""
    attended = not no_input and is_attended()
    if not attended and not approved:
        return None
    return TerminalApprover(progress.paused, approved=tuple(approved or ()), attended=attended)


class TerminalApprover:
    """Asks one thing at a time."""

    def __init__(
        self,
        pause: Callable[[], AbstractContextManager[object]],
        *,
        read: ReadLine | None = None,
        approved: Sequence[str] = (),
        attended: bool = True,
    ) -> None:
        self._pause = pause
        self._read = read if read is not None else _line_of_stdin
        self._approved = tuple(approved)
        """Tools the person allowed for this run when they typed the command."""
        self._attended = attended
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, approval: Approval) -> Decided | None:
        if approval.kind == "approval" and any_named(self._approved, approval.tool):
            return Approve("allowed with --approve")
        if not self._attended:
            return None
        async with self._one_at_a_time:
            with self._pause():
                return await (self._question(approval) if approval.kind == "question" else self._approval(approval))

    async def _approval(self, approval: Approval) -> Decided | None:
        excerpt = call_excerpt(approval)
        _show(excerpt, first="? ")
        _say(f"  why: {one_line(approval.reason, 400)}")
        if approval.working_directory is not None:
            _say(f"  in:  {one_line(approval.working_directory, 400)}")
        if approval.confinement is not None:
            _say(f"  sandbox: {one_line(approval.confinement, 100)}")
        if not is_approver(local_name(), approval.approvers):
            _say(f"  only {one_line(', '.join(approval.approvers), 400)} may decide; the call stays pending")
            return None
        is_shown = excerpt.is_whole
        if excerpt.left_out:
            _say(f"  ... {counted(excerpt.left_out, 'more line')}: s shows all of it")
        if not is_recorded_whole(approval.arguments):
            _say(f"  too long to decide here: Enter, then wakeful approvals show {short(approval.id)}")
        words = "y yes, n no, e edit, a always, s show all" if is_shown else "n no, s show all"
        _say(f"  {words}, Enter later ({left(approval)})\n  other text rejects the call, and the model reads it")
        while True:
            typed = await self._asked("> ")
            match typed.strip().lower() if typed is not None else "":
                case "":
                    return None
                case "y" | "yes" | "e" | "edit" | "a" | "always" if not is_shown:
                    _say("  the call was not shown whole: s shows it, n rejects it")
                case "y" | "yes":
                    return Approve()
                case "n" | "no":
                    return Reject()
                case "s" | "show":
                    if excerpt.left_out and not is_shown:
                        _show(call_excerpt(approval, most=None), first="  ")
                        is_shown = is_recorded_whole(approval.arguments)
                    else:
                        _say(_marked(json_text(approval.arguments, indent=2)))
                case "e" | "edit":
                    edited = await self._edited(approval)
                    if edited is not None:
                        return edited
                case "a" | "always":
                    kept = await self._always()
                    if kept is not None:
                        return kept
                case _:
                    assert typed is not None
                    return Reject(typed.strip())

    async def _edited(self, approval: Approval) -> Edit | None:
        """All arguments, as JSON. Where something is redacted, only the command can keep it."""
        if "[redacted]" in json.dumps(approval.arguments):
            _say(f"  some values are redacted; edit it with: wakeful approvals edit {approval.id} NAME=VALUE")
            return None
        _say(f"  now: {json_text(approval.arguments)}")
        typed = await self._asked("  new arguments, as JSON> ")
        if typed is None or not typed.strip():
            return None
        try:
            arguments = json.loads(typed)
        except ValueError as error:
            _say(f"  this is not JSON: {error}")
            return None
        if not isinstance(arguments, dict):
            _say("  this is not a JSON object")
            return None
        return Edit(arguments)

    async def _always(self) -> Always | None:
        typed = await self._asked("  c always this call, t always this tool, Enter go back> ")
        match (typed or "").strip().lower():
            case "c" | "call":
                return Always("call")
            case "t" | "tool":
                return Always("tool")
        return None

    async def _question(self, approval: Approval) -> Decided | None:
        _say(f"? the agent asks ({left(approval)}):")
        _say(_marked(approval.prompt))
        for number, choice in enumerate(approval.choices, start=1):
            _say(f"  {number}  {one_line(choice, 200)}")
        while True:
            typed = await self._asked("answer, - to refuse, or Enter for later> ")
            words = (typed or "").strip()
            if not words:
                return None
            if words == REFUSED:
                return Reject()
            if not approval.choices or words in approval.choices:
                return Answer(words)
            if words.isdigit() and 0 < int(words) <= len(approval.choices):
                return Answer(approval.choices[int(words) - 1])
            _say("  give one of the choices, or its number")

    async def _asked(self, prompt: str) -> str | None:
        sys.stderr.write(prompt)
        sys.stderr.flush()
        return await self._read()


def _say(words: str) -> None:
    sys.stderr.write(plain(words) + "\n")


def _show(excerpt: CallExcerpt, *, first: str) -> None:
    """A call, changes in colours."""
    for number, line in enumerate(excerpt.lines):
        sys.stderr.write(f"{'  ' if number else first}{painted(line.text, line.tone, sys.stderr)}\n")


def _marked(text: str) -> str:
    """Foreign words, each line behind a bar."""
    return "\n".join(f"  | {line}" for line in plain(text).splitlines())


async def _line_of_stdin() -> str | None:
    """A line, waited for on the loop: the run may go on or be stopped meanwhile, and no thread stays behind."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[str | None] = loop.create_future()
    descriptor = sys.stdin.fileno()

    def read() -> None:
        data = os.read(descriptor, 65_536)
        if not ready.done():
            ready.set_result(data.decode("utf-8", "replace").rstrip("\r\n") if data else None)

    loop.add_reader(descriptor, read)
    try:
        return await ready
    finally:
        loop.remove_reader(descriptor)
