"""What an agent is woken with: its owner's words for a schedule, the runtime's for waits, hints and missed times."""

from collections.abc import Sequence
from typing import Final

from wakeful.contracts.envelope import iso
from wakeful.contracts.waking import WaitWake

_CAME: Final[dict[WaitWake, str]] = {
    "operator_input": "the operator to say something",
    "task_result": "the end of a task",
    "external": "something to change outside",
    "timer": "this time to come",
}


def timer_words(say: str, name: str, due_at: int, folded: int) -> str:
    """The words of a due time, and how many others it stands for."""
    words = say.strip() or f"The time has come that was set{f' ({name})' if name else ''}: {iso(due_at)}."
    if not folded:
        return words
    times = "once" if folded == 1 else f"{folded:,} times"
    return f"{words}\n\nThis was due {times} before, while nothing could run. This message stands for all of them."


def slept_words(reason: str, since: int) -> str:
    return f"You have been resting since {iso(since)}, and the time is over. You said: {reason}"


def expired_words(reason: str, wake: WaitWake, resource: str | None, since: int) -> str:
    """A wait in vain, told to whoever waited."""
    about = f" ({resource})" if resource else ""
    return (
        f"You have been waiting since {iso(since)} for {_CAME[wake]}{about}, and the deadline has come first. You "
        f"said: {reason}\n\nLook whether it happened all the same, wait once more, or tell the operator."
    )


def hint_words(bodies: Sequence[str], hints: int) -> str:
    """What hints say, newest last; of hints that say nothing, nothing."""
    if not bodies:
        return ""
    more = f"\n\n({hints} hints in all; these are the newest that say something.)" if hints > len(bodies) else ""
    return "\n\n".join(bodies) + more
