"""What may go, and what stays: the rules of retention, on values.

An event may expire when nothing follows from it any more: no row of a table, no state of a later turn, no answer that
somebody may ask for again. So the kinds are named here, and a test holds every one of them against the rules of the
tables and against `evolve`. Everything else stays, whatever its age.
"""

from collections.abc import Collection

FOR_READERS = frozenset(
    {
        "routing.single_candidate",
        "tool.catalog.resolved",
        "tool.progress",
        "tool.args",
        "hook.started",
        "hook.completed",
        "hook.failed",
        "sandbox.applied",
        "sandbox.violation",
        "output.truncated",
        "output.redacted",
        "runtime.warning",
    }
)
"""Nothing is ever decided from these: they tell readers how a turn was run."""
FOLLOWED = frozenset({"context.resolved", "routing.decided", "routing.fallback.applied"})
"""The same events of a later turn take the place of these."""
OF_ITS_TURN = FOLLOWED | {"thread.checkpointed"}
"""A later turn of the thread may still begin with these, as long as its window reaches them."""


def expiring_kinds(
    *, last_seq: int, keep_from: int, is_followed: bool = False, is_tainted: bool = True
) -> frozenset[str]:
    """The kinds of events of a closed turn that may expire at its age, given its last event and the first one that the
    next turn of its thread, or one that may still be replayed, begins to read with.

    `is_followed`: a later turn of the thread has begun. `is_tainted`: the turn was shown files that the owner has not
    accepted, which its context says, and which every later turn has to know.
    """
    if last_seq < keep_from:
        return FOR_READERS | OF_ITS_TURN
    return FOR_READERS | FOLLOWED if is_followed and not is_tainted else FOR_READERS


def why_log_stays(*, is_temporary: bool, open_turns: int, keys: int, other_tables: Collection[str]) -> str | None:
    """Why the whole log of an agent may not go, however old it is; None: it may."""
    if not is_temporary:
        return "it belongs to an agent, or to threads that nobody deleted"
    if open_turns:
        return f"{open_turns} of its turns have not ended"
    if keys:
        return f"{keys} of its turns have a key, by which their result may be asked for again"
    if other_tables:
        return f"it has rows in {', '.join(sorted(other_tables))}"
    return None


def is_noticed(size_bytes: int, notice_bytes: int, *, was_noticed: bool) -> bool:
    """Is the owner to be told of the size now? Once, until it has been smaller again."""
    return bool(notice_bytes) and size_bytes > notice_bytes and not was_noticed
