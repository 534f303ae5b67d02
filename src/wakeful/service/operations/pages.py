"""How each list of the HTTP interface is cut into pages: by a place in it that stays where it is when lines come or go.

A page says where the next one begins. Numbers of lines would not do: with every line that comes or goes, somebody who
reads page after page would miss one, or see one twice.
"""

from collections.abc import Mapping, Sequence
from functools import cmp_to_key
from typing import Any, NamedTuple, TypeAlias

READ_MOST = 10_000
"""Lines of a list that is read as a whole."""
AGAIN = "Begin again without a cursor."


class ByPlace(NamedTuple):
    """The operation cuts the list: a field of its request says behind which line it goes on."""

    field: str
    of: str | tuple[str, ...]
    """Which part of a line that field names; several: all of them together."""
    first: bool = False
    """It names the first line of a page: pages go back in time, and each is in order."""


class ByKey(NamedTuple):
    """The whole list is read, put in the order of these parts of its lines, and cut behind the last line's."""

    parts: tuple[str, ...]
    """No two lines agree in all of them. `-` before a name: the greatest comes first."""


Pages: TypeAlias = ByPlace | ByKey

PAGES: Mapping[str, Pages] = {
    "/agents": ByPlace("after", "agent"),
    "/agents/list": ByPlace("after", "identity.agent_id"),
    "/agents/usage": ByPlace("after", "agent"),
    "/agents/{agent_id}/briefs": ByPlace("after", "id"),
    "/notices": ByPlace("after", "notice_id"),
    "/turns": ByPlace("before", "turn_id"),
    "/threads/{thread_id}/messages": ByPlace("before", "event_seq", first=True),
    "/control/runtime/files": ByKey(("place", "line", "field", "message")),
    "/agents/{agent_id}/waits": ByKey(("created_at", "wait_id")),
    "/agents/{agent_id}/revisions": ByKey(("-at", "revision")),
    "/agents/{agent_id}/work-items": ByPlace("after", "id"),
    "/agents/{agent_id}/skills": ByKey(("name", "entrypoint_path")),
    "/agents/{agent_id}/memory": ByPlace("after", "source_ref"),
    "/timers": ByKey(("agent", "name", "timer_id")),
    "/tasks": ByPlace("after", "task_id"),
    "/triggers": ByKey(("target_agent_id", "name", "external_trigger_id")),
    "/approvals": ByKey(("requested_at", "approval_id")),
    "/approvals/rules": ByKey(("added_at", "rule_id")),
    "/unknown": ByKey(("since", "turn_id", "call_id")),
    "/requests": ByKey(("timeout_at", "request_id")),
    "/turns/{turn_id}/artifacts": ByKey(("call_id", "artifact_id")),
    "/threads": ByPlace("before", ("active_at", "agent_id", "thread")),
    "/budgets": ByKey(("scope", "window")),
    "/dispatches": ByKey(("-created_at", "run_id")),
    "/workflow-runs": ByPlace("before", "run_id"),
    "/packages": ByKey(("slug",)),
    "/channels": ByKey(("channel",)),
    "/templates": ByKey(("template",)),
    "/why": ByKey(("agent",)),
    "/workflows": ByKey(("name", "workflow_id")),
}
"""By path. Events have places of their own: their numbers in the log, and the cursors of the feed."""


def cut(lines: Sequence[Any], how: ByKey, after: Any, limit: int) -> list[Any]:
    """A page of a whole list, from behind a place."""
    signs = [-1 if part.startswith("-") else 1 for part in how.parts]

    def compare(one: Sequence[Any], other: Sequence[Any]) -> int:
        for sign, left, right in zip(signs, one, other, strict=True):
            if left != right:  # nothing comes before something
                return sign * (-1 if left is None or (right is not None and left < right) else 1)
        return 0

    def compare_lines(one: Any, other: Any) -> int:
        return compare(place_of(one, how), place_of(other, how))

    ordered = sorted(lines, key=cmp_to_key(compare_lines))
    return [line for line in ordered if after is None or compare(place_of(line, how), after) > 0][:limit]


def place_of(line: Any, how: Pages) -> Any:
    """Where the next page goes on when this is the line at its edge."""
    if isinstance(how, ByKey):
        return [part_of(line, part.removeprefix("-")) for part in how.parts]
    return part_of(line, how.of) if isinstance(how.of, str) else [part_of(line, part) for part in how.of]


def part_of(line: Any, part: str) -> Any:
    for name in part.split("."):
        line = getattr(line, name)
    return line
