"""The tools by which a model ends its turn and waits: `wait_for`, `sleep`, and `cancel_wait`.

What wakes is a message, and begins a new turn. So no turn's budget spans days, and a wait costs nothing. There is no
tool that makes a tick: when an agent is looked at again is the runtime's business.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.waking import WaitWake

WAIT_FOR: Final = "wait_for"
SLEEP: Final = "sleep"
CANCEL_WAIT: Final = "cancel_wait"
WAIT_TOOLS: Final = frozenset({WAIT_FOR, SLEEP, CANCEL_WAIT})

DEFAULT_DEADLINE_MS: Final = 24 * 3_600_000
LONGEST_WAIT_MS: Final = 30 * 24 * 3_600_000
LONGEST_SLEEP_MS: Final = 3_600_000
MOST_WORDS: Final = 2_000

_REASON = {"type": "string", "minLength": 1, "maxLength": MOST_WORDS}


def _declared(name: str, description: str, properties: dict[str, Any], required: list[str]) -> ToolDeclaration:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return ToolDeclaration(
        name=name,
        description=description,
        input_schema=schema,
        effect="pure",
        permission_class="knowledge",
        interrupt_behavior="cancel",
        child_safe=False,
        content=("reason",),
    )


DECLARATIONS: Final = (
    _declared(
        WAIT_FOR,
        "End this turn and wait. You are woken with a message when it comes, or at the deadline.",
        {
            "reason": {**_REASON, "description": "What you wait for and why. You are told this when you wake."},
            "wake": {
                "type": "string",
                "enum": ["operator_input", "task_result", "external", "timer"],
                "description": "What ends the wait: a message of the operator, the end of a task, something that comes "
                "from outside, or the time that deadline_ms gives.",
            },
            "resource": {
                "type": "string",
                "maxLength": 500,
                "description": "What exactly: the id of a task, a build, an address. Leave it out for anything.",
            },
            "work_item_id": {"type": "string", "maxLength": 200, "description": "The work item that waits."},
            "deadline_ms": {
                "type": "integer",
                "minimum": 1,
                "maximum": LONGEST_WAIT_MS,
                "description": "Wake me after so many milliseconds in any case. Leave it out for 24 hours; a timer "
                "needs it.",
            },
        },
        ["reason", "wake"],
    ),
    _declared(
        SLEEP,
        "End this turn and rest. You wake after duration_ms, or when a message comes.",
        {
            "reason": {**_REASON, "description": "Why you rest. You are told this when you wake."},
            "duration_ms": {
                "type": "integer",
                "minimum": 0,
                "maximum": LONGEST_SLEEP_MS,
                "description": "Wake me after so many milliseconds, at most an hour. Leave it out, or give 0, to rest "
                "until a message comes.",
            },
        },
        ["reason"],
    ),
    _declared(
        CANCEL_WAIT,
        "End one of your open waits: you are not woken by it any more.",
        {
            "wait_id": {"type": "string", "minLength": 1, "maxLength": 200},
            "reason": {"type": "string", "maxLength": MOST_WORDS},
        },
        ["wait_id"],
    ),
)


_WORDS: Final = {each.name: each.description for each in DECLARATIONS}


def is_wait_tool(declaration: ToolDeclaration) -> bool:
    """Is it one of these, and not a program's own tool of the same name?"""
    return _WORDS.get(declaration.name) == declaration.description


class WaitTerms(NamedTuple):
    """A wait that may be made."""

    reason: str
    wake: WaitWake
    resource: str | None
    work_item_id: str | None
    due_at: int | None
    """Unix microseconds; None: until a message comes."""
    is_sleep: bool


class WaitRefusal(NamedTuple):
    """What is wrong with a call, in words its model can act on."""

    error: str
    message: str
    field: str


def wait_of(name: str, arguments: Mapping[str, Any], now: int) -> WaitTerms | WaitRefusal:
    """What a call of `wait_for` or `sleep` asks for, or what is wrong with it, in words its model can act on."""
    reason = arguments["reason"].strip()
    if not reason:
        return _wrong("reason", "say what you wait for: you are told it when you wake")
    if name == SLEEP:
        after = arguments.get("duration_ms") or None
        return WaitTerms(reason, "timer", None, None, _later(now, after), True)
    wake, after = arguments["wake"], arguments.get("deadline_ms")
    if wake == "timer" and after is None:
        return _wrong("deadline_ms", "a wait for a timer needs the time: deadline_ms, in milliseconds from now")
    due_at = _later(now, DEFAULT_DEADLINE_MS if after is None else after)
    return WaitTerms(reason, wake, arguments.get("resource"), arguments.get("work_item_id"), due_at, False)


def no_such_wait(wait_id: str, waits: Iterable[str]) -> WaitRefusal:
    listed = ", ".join(sorted(waits)) or "none"
    return WaitRefusal("not_found", f"{wait_id!r} is not one of your open waits; open are: {listed}", "wait_id")


def no_such_task(resource: str | None, running: Iterable[str]) -> WaitRefusal:
    """`resource` is None where any task would do, and none runs."""
    listed = ", ".join(sorted(running)) or "none"
    what = "no task of yours is running" if resource is None else f"{resource!r} is not one of your running tasks"
    words = what if resource is None else f"{what}; running are: {listed}"
    words += ". A task that has ended tells you so in a message: if you have not seen it, end your turn and it comes"
    return WaitRefusal("not_found", words, "wake" if resource is None else "resource")


def _later(now: int, milliseconds: int | None) -> int | None:
    return None if milliseconds is None else now + milliseconds * 1_000


def _wrong(field: str, words: str) -> WaitRefusal:
    return WaitRefusal("invalid_input", words, field)
