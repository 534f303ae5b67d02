"""Lines for an event of the log, an entry of the feed, and what a transcript holds, as people read them."""

from datetime import datetime

from rich.text import Text

from wakeful.contracts.envelope import RuntimeEvent
from wakeful.surfaces.cli.people import named_people, named_stream
from wakeful.surfaces.cli.screen import fold
from wakeful.surfaces.cli.shown_values import local_times
from wakeful.views.presentation.event_details import event_detail
from wakeful.views.presentation.feed_entries import FeedEntry, TranscriptLine
from wakeful.views.presentation.plain_text import one_line, plain
from wakeful.views.transcript import (
    AssistantRound,
    RuntimeFailure,
    ToolOutcome,
    TranscriptEntry,
    UserMessage,
)

STYLES = {
    "turn": "cyan",
    "message": "cyan",
    "model": "blue",
    "assistant": "blue",
    "tool": "magenta",
    "unknown": "yellow",
    "subagent": "green",
    "planning": "green",
}
KIND_WIDTH = 29
"""As long as the names in a turn of an agent."""
SAID_BY = "message from "
SAID_BY_SOMEBODY = ("message.admitted", "turn.interjected", "brief.created", "assistant.recorded")
"""Events whose words are those of a person or a model, and stay as they are."""
AGENT_WIDTH = 12
INDENT = "  "
"""Events of a child are indented."""


def event_line(event: RuntimeEvent) -> Text:
    """Number, time, kind, step and what it is about. Times are the reader's own."""
    step = event.step_id.rpartition("/")[2] if event.step_id else ""
    when = datetime.fromisoformat(event.timestamp).astimezone()
    style = "red" if event.type.endswith("failed") else STYLES.get(event.type.partition(".")[0], "")
    return Text.assemble(
        (f"{event.sequence:>5}  {when:%H:%M:%S}.{when.microsecond // 1000:03}  ", "dim"),
        (f"{plain(event.type):<{KIND_WIDTH}}", style),
        (f" {step:>3}  ", "dim"),
        INDENT * (event.depth or 0),
        local_times(named_people(event_detail(event))),
    )


def transcript_line(entry: TranscriptEntry) -> Text:
    """The speaker, and the text."""
    match entry:
        case UserMessage():
            who = "you" if entry.data.origin == "person" else "runtime"
            return Text.assemble((f"{who:>9}  ", "cyan"), plain(entry.data.text))
        case AssistantRound():
            calls = ", ".join(call.name for call in entry.data.calls)
            said = plain(entry.data.text).rstrip()
            return Text.assemble(("assistant  ", "blue"), said, (f" → {plain(calls)}" if calls else "", "dim"))
        case ToolOutcome():
            shown = entry.data.preview or (entry.data.error.message if entry.data.error else "")
            return Text.assemble(("     tool  ", "magenta"), one_line(f"{entry.data.tool_name}: {shown}", 200))
        case RuntimeFailure():
            return Text.assemble(("  failure  ", "red"), one_line(entry.data.message, 200))


def entry_line(entry: FeedEntry, me: str = "") -> str:
    """The agent, and the one line; what needs somebody says so first. `me` is the name of whoever reads it."""
    asks = "NEEDS YOU  " if entry.presentation.visibility == "action_required" else ""
    said = entry.presentation.summary
    if me and said.startswith((f"{SAID_BY}{me}:", f"{SAID_BY}{me},")):
        said = f"{SAID_BY}you{said.removeprefix(SAID_BY + me)}"
    elif me and entry.envelope.kind not in SAID_BY_SOMEBODY:
        said = named_people(said)
    return f"{plain(named_stream(entry.envelope.agent_id)):<{AGENT_WIDTH}} {asks}{said}"


def spoken_lines(line: TranscriptLine) -> list[str]:
    """The speaker, and below it the whole text."""
    speakers = {"operator_message": "you", "provider_failure": "provider", "provider_wait": "provider"}
    who = speakers.get(line.kind, plain(line.agent_id))
    when = datetime.fromisoformat(line.ts).astimezone()
    first = f"{when:%Y-%m-%d %H:%M} {who}"
    if line.kind == "brief" and line.presentation.title not in ("Result", "Note"):
        first += f"  ({line.presentation.title.lower()})"
    elif line.turn_id is None:
        first += "  (waits)"
    texts = plain(line.text).splitlines() or [""]
    return [first, *(each for text in texts for each in fold(text, first="  ", rest="  "))]
