"""Display modes of a conversation: which presented events are shown, and how much of each.

    info     3   results: what needs you, what is done, how turns ended
    verbose  4   activity: progress, and one line a tool call
    debug    5   the same with previews of arguments and results

The raw trace is no mode: it is looked at in the event inspector, `wakeful events`.
"""

from difflib import get_close_matches
from typing import Final, Literal, TypeAlias

from wakeful.contracts.errors import InvalidRequest
from wakeful.views.presentation.operator_events import OperatorEventPresentation
from wakeful.views.presentation.placements import RESULTS, TOOL_ENDS
from wakeful.views.presentation.plain_text import one_line

DisplayMode: TypeAlias = Literal["info", "verbose", "debug"]
DISPLAY_NUMBERS: Final[dict[str, DisplayMode]] = {"3": "info", "4": "verbose", "5": "debug"}
MOST_LINES: Final = 12
"""Of the details of one event."""
DETAIL_WIDTH: Final = 160


def display_mode(name: str) -> DisplayMode:
    """A mode by its name or number. Raises InvalidRequest."""
    modes = {each: each for each in DISPLAY_NUMBERS.values()} | DISPLAY_NUMBERS
    found = modes.get(name.strip().lower())
    if found is None:
        near = get_close_matches(name, [*modes], n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]}?" if near else "Give info (3), verbose (4) or debug (5)."
        if name.strip().lower() == "trace":
            hint = "Raw events are shown by: wakeful events TURN"
        raise InvalidRequest(f"there is no display mode {name!r}", hint)
    return found


def is_shown(presented: OperatorEventPresentation, mode: DisplayMode) -> bool:
    """Is it shown in a conversation that is displayed in this mode?"""
    if presented.visibility in RESULTS:
        return True
    return mode != "info" and (presented.visibility == "progress" or presented.source_event_kind in TOOL_ENDS)


def detail_lines(presented: OperatorEventPresentation, mode: DisplayMode) -> list[str]:
    """What is shown below the one line: in `debug`, the beginning of the details."""
    if mode != "debug" or not presented.body:
        return []
    lines = [one_line(line, DETAIL_WIDTH) for line in presented.body.splitlines() if line.strip()]
    if lines == [presented.summary]:
        return []
    return (
        lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], f"… {len(lines) - MOST_LINES + 1} lines more"]
    )
