"""What waits for somebody: one approval or question at a time, with everything that is needed to answer it.

A key decides about the one that is shown, by its id. One that somebody else decided first stays decided. Which one is
shown changes by a key alone: when it is decided or expires, the next one waits for Enter or an arrow, so that no letter
that was meant for one falls on another.
"""

import json
import os
from collections.abc import Mapping
from typing import Any, ClassVar

from wakeful.surfaces.tui.conversation import Line, Tone
from wakeful.surfaces.tui.home_client import HomeClient, Record
from wakeful.surfaces.tui.overlays import Overlay
from wakeful.surfaces.tui.screen_text import folded, harmless
from wakeful.surfaces.tui.shown_times import ShownTimes
from wakeful.surfaces.tui.wishes import DecisionWish, QuestionWish, Wish
from wakeful.views.approval_details import DECIDED
from wakeful.views.presentation.call_lines import CallExcerpt, argument_lines, excerpt_of, is_recorded_whole
from wakeful.views.presentation.call_lines import Tone as CallTone
from wakeful.views.presentation.plain_text import counted, json_text

SCOPES = ("call", "tool")
LETS_RUN = frozenset({"approve", "edit", "always"})
"""Decisions that let a call run: offered once the call was shown whole."""
TONES: Mapping[CallTone, Tone] = {"plain": "agent", "added": "added", "removed": "removed"}
LEAST, AROUND = 4, 5
"""Lines that a call is given at least, and lines of the pane that stand round it."""
BEHIND = 3
"""Messages that are named of those that wait."""


class ApprovalOverlay(Overlay):
    """Approvals and questions of all agents; Up and Down go through them."""

    heading = "Needs you"
    needs_agent = False
    keys: ClassVar[Mapping[str, str]] = {"y": "once", "n": "no, why", "e": "edit", "!": "always", "v": "all"}

    def __init__(self, client: HomeClient, times: ShownTimes) -> None:
        super().__init__(client, times)
        self.approvals: list[Record] = []
        self.chosen: str | None = None
        self._whole = False
        self._opened: set[str] = set()
        """Calls that are too long for the pane and were shown whole."""
        self._is_read = False
        self._round: Record = {}
        """What stands round the one that was shown when it was read."""

    @property
    def title(self) -> str:
        return self.heading

    @property
    def shown(self) -> Record | None:
        return next((each for each in self.approvals if each["approval_id"] == self.chosen), None)

    def hints(self) -> Mapping[str, str]:
        is_next = self.shown is None and bool(self.approvals)
        return {**({"Enter": "show the next"} if is_next else self._offered()), "Esc": "later"}

    @property
    def letters(self) -> frozenset[str]:
        return frozenset(self._offered())

    def _offered(self) -> Mapping[str, str]:
        shown = self.shown
        if shown is None:
            return {}
        if shown["kind"] != "approval":
            return {"r": "reply", "v": "all"}
        may = set(shown["decisions"]) - (set() if self._is_seen(shown) else LETS_RUN)
        needs = {"y": "approve", "n": "reject", "e": "edit", "!": "always"}
        return {key: words for key, words in self.keys.items() if key not in needs or needs[key] in may}

    async def read(self) -> list[Line]:
        self.approvals = await self.client.approvals()
        if not self._is_read and self.approvals:
            self.chosen = self.approvals[0]["approval_id"]
        self._is_read = True
        self._round = {} if self.chosen is None else await self.client.approval(self.chosen)
        return self._lines()

    @property
    def is_stale(self) -> bool:
        return self.chosen is not None and self._round.get("approval_id") != self.chosen

    def move(self, key: str) -> None:
        ids = [each["approval_id"] for each in self.approvals]
        if ids and self.chosen not in ids:
            self._show(ids[0])
        elif key in ("pageup", "pagedown") or len(ids) < 2:
            super().move(key)
        elif self.chosen is not None:
            self._show(ids[(ids.index(self.chosen) + (1 if key == "down" else -1)) % len(ids)])

    def choose(self) -> Wish | None:
        if self.shown is None:
            self.move("down")
        return None

    def _show(self, approval: str) -> None:
        self.chosen, self._whole = approval, False
        self.lines = self._lines()
        self.draw()
        self.scroll_home(animate=False)

    def press(self, key: str) -> Wish | None:
        shown = self.shown
        if shown is None or key not in self._offered():
            return None
        name = shown["approval_id"]
        match key:
            case "y":
                return DecisionWish(name, "decision", {"decision": "approved"})
            case "n":
                return _asked("no, because (Enter: no reason): ", "", name, "decision")
            case "e":
                return _asked("arguments: ", json.dumps(shown["arguments"], ensure_ascii=False), name, "edit")
            case "!":
                return _asked("always for this call, this tool or a pattern: ", "call", name, "always")
            case "r":
                return _asked("answer: ", "", name, "answer")
            case _:
                self._whole = not self._whole
                self._opened.add(name)
                self.lines = self._lines()
                self.draw()
                return None

    def _lines(self) -> list[Line]:
        shown = self.shown
        if shown is None:
            return [Line(line) for each in self._over() for line in folded(each, self.room)]
        number = self.approvals.index(shown) + 1
        around = {} if self.is_stale else self._round
        left = "" if not shown.get("expires_at") else f", {self.times.from_now(shown['expires_at'])} left"
        since = self.times.from_now(shown["requested_at"])
        told = self._told(around.get("told"))
        asked = f"{number} of {len(self.approvals)}  {shown['agent']} asked {since} ago{left}{told}"
        found = [Line(line) for line in folded(asked, self.room)]
        where = f"   in {shown['working_directory']}" if shown.get("working_directory") else ""
        sandbox = f"   {shown['confinement']}" if shown.get("confinement") else ""
        found += _block(f"{shown.get('tool') or 'question'}{where}{sandbox}", self.room, "you")
        if not shown["prompt"].startswith(f"Run {shown.get('tool')}("):  # else it says what the arguments say
            found += _block(shown["prompt"], self.room, "agent")
        found += self._call(shown)
        reasons = [f"asks because: {shown['reason']}"] if shown.get("reason") else []
        reasons += [f"it had read: {', '.join(around['had_read'])}"] if around.get("had_read") else []
        whole = "   ".join(reasons)
        for words in [whole] if len(whole) <= self.room - 2 else reasons:
            found += _block(words, self.room, "agent") if words else []
        if shown.get("choices"):
            found += _block(f"choices: {', '.join(map(str, shown['choices']))}", self.room, "agent")
        found += [Line(line) for line in folded(self._behind(around), self.room)] if around.get("waits_behind") else []
        if self._whole:
            names = ("approval_id", "turn_id", "call_id", "thread", "arguments_sha256", "injected_args", "approvers")
            found += [line for name in names for line in _block(f"{name}: {shown.get(name)}", self.room, "quiet")]
        return found

    def _arguments(self, shown: Record) -> Mapping[str, Any]:
        """Those that are too long for a list stand in what was read of this one."""
        found: Mapping[str, Any] = shown["arguments"] if self.is_stale else self._round["arguments"]
        return found

    def _excerpt(self, shown: Record) -> CallExcerpt:
        arguments = self._arguments(shown)
        lines = argument_lines(shown.get("tool") or "", arguments, self.room - 4) if arguments else []
        return excerpt_of(lines, arguments, max(self.size.height - AROUND, LEAST))

    def _is_seen(self, shown: Record) -> bool:
        """Was the call shown whole, so that it may be let through?"""
        if not is_recorded_whole(self._arguments(shown)):
            return False
        return self._excerpt(shown).is_whole or shown["approval_id"] in self._opened

    def _call(self, shown: Record) -> list[Line]:
        """Its arguments as they were written; with `v` as JSON, all of them."""
        if self._whole:
            arguments = self._arguments(shown)
            text = json_text(arguments, indent=1) if arguments else ""
            return _block(text, self.room, "agent", indent="|   ") if text else []
        excerpt = self._excerpt(shown)
        found = [Line(f"|   {harmless(each.text)}", TONES[each.tone]) for each in excerpt.lines]
        if excerpt.left_out:
            found.append(Line(f"|   ... {counted(excerpt.left_out, 'more line')}: v shows all of it", "you"))
        elif not excerpt.is_whole:
            found.append(Line("|   the whole call is too long to be shown: wakeful approvals show", "you"))
        return found

    def _over(self) -> list[str]:
        """Nothing is shown: what became of the one that was, and how many wait."""
        many = len(self.approvals)
        waits = f"{many} {'needs' if many == 1 else 'need'} you: Enter shows the next" if many else "nothing needs you"
        return [*([self._became(self._round)] if self._round and not self.is_stale else []), waits]

    def _became(self, gone: Record) -> str:
        """`refund of clerk: approved by you`."""
        decision, who = gone.get("decision") or "", gone.get("decided_by") or ""
        named = "you" if who == f"local:{os.getuid()}" else who
        how = f"{DECIDED.get(decision) or gone['status']}{f' by {named}' if decision and named else ''}"
        return f"{gone.get('tool') or 'a question'} of {gone['agent']}: {how}"

    def _told(self, notice: Record | None) -> str:
        """`; phone: delivered 07:02`."""
        if notice is None:
            return ""
        if notice["state"] == "not_sent":
            return "; nobody was told"
        at = f" {self.times.at(notice['settled_at'])}" if notice.get("settled_at") else ""
        to = f"{notice['to'].removeprefix('channel:')}: " if notice["to"] else ""
        said = {"pending": "not delivered yet", "given_up": "NOT DELIVERED"}.get(notice["state"], notice["state"])
        return f"; {to}{said}{at}"

    def _behind(self, around: Record) -> str:
        """`behind it: your message 07:03`."""
        shown = [f"{_message(each['kind'])} {self.times.at(each['queued_at'])}" for each in around["behind"][:BEHIND]]
        more = around["waits_behind"] - len(shown)
        return f"behind it: {', '.join([*shown, *([f'{more} more'] if more else [])])}"


def _message(kind: str) -> str:
    return "your message" if kind == "operator_prompt" else kind.replace("_", " ")


def _asked(label: str, initial: str, name: str, how: str) -> QuestionWish:
    return QuestionWish(label, initial, lambda words: DecisionWish(name, how, {"words": words}))


def _block(text: str, width: int, tone: Any, indent: str = "| ") -> list[Line]:
    return [Line(f"{indent}{line}", tone) for line in folded(text, width - len(indent))]


def decision_fields(how: str, fields: Record) -> Record:
    """The body of a decision. Raises ValueError with what is wrong with the words."""
    if "words" not in fields:
        return fields
    words = str(fields["words"]).strip()
    match how:
        case "decision":
            return {"decision": "rejected", **({"reason": words} if words else {})}
        case "edit":
            try:
                given = json.loads(words)
            except ValueError as error:
                raise ValueError(f"the arguments are not JSON: {error}") from None
            if not isinstance(given, dict):
                raise ValueError("arguments are a JSON object")
            return {"arguments": given}
        case "always":
            if words in SCOPES:
                return {"scope": words}
            if not words:
                raise ValueError("say call, tool, or a pattern of tool names such as git_*")
            return {"scope": "pattern", "match": words}
        case _:
            return {"answer": words}
