"""What the next turn of a thread takes from its queue: one rule, for whoever opens a turn.

Messages are taken by band, and first in first out within one. Those at the head are taken together as long as nothing
tells them apart: band, authority and whatever decides for whom and within which limits a turn works. A message whose
caller waits is answered alone. What was deferred is shown with the next turn, whatever starts that, and starts one
itself at its deadline.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wakeful.contracts.events import MessageAdmitted

MOST_TAKEN = 16
"""Messages that one turn takes from the queue; and as many deferred ones."""
DEFER_DEADLINE = 15 * 60 * 1_000_000
"""Microseconds after which a deferred message starts a turn by itself."""
SHORTEST_PAUSE, LONGEST_PAUSE = 30 * 1_000_000, 3600 * 1_000_000
"""Microseconds between two attempts to begin a turn with a message."""


class DeferredMessage(NamedTuple):
    """A message that starts no turn before its deadline."""

    message: MessageAdmitted
    deadline: int
    """Unix microseconds."""


def choose_intake(
    queue: Sequence[MessageAdmitted], deferred: Sequence[DeferredMessage], now: int
) -> tuple[MessageAdmitted, ...]:
    """The messages of the thread's next turn, in the order in which the model is shown them; empty: none is due.

    `queue` is in the order of bands, and none of it has a turn. The first message says for whom the turn works.
    """
    due = [each for each in deferred if each.deadline <= now]
    if queue:
        lead = queue[0]
    elif due:
        lead = min(due, key=lambda each: each.deadline).message
    else:
        return ()
    taken = [lead]
    if not is_awaited(lead):
        for message in queue[1:MOST_TAKEN]:
            if is_awaited(message) or not _are_alike(lead, message):
                break
            taken.append(message)
    return (*taken, *shown_along(lead, deferred))


def shown_along(lead: MessageAdmitted, deferred: Iterable[DeferredMessage]) -> list[MessageAdmitted]:
    """The deferred messages that a turn shows with the one it begins with: those for the same principal."""
    if lead.workflow_ref is not None:
        return []  # it runs a graph, and shows no model what was said
    found = [each.message for each in deferred if each.message.principal == lead.principal]
    found = [message for message in found if not is_awaited(message)]
    return [message for message in found if message.message_id != lead.message_id][:MOST_TAKEN]


def id_of_key(agent_name: str, key: str) -> str:
    """The id of the message with a key: the same whether it is queued or its caller waits, whoever comes first."""
    return "msg_" + hashlib.sha256(f"{agent_name}\0{key}".encode()).hexdigest()[:32]


def pause_before_retry(admitted_at: int, now: int) -> int:
    """How long a message waits whose turn could not be begun: as long as it has waited so far, within bounds.

    So the waits double, without a count that somebody has to keep.
    """
    return min(max(now - admitted_at, SHORTEST_PAUSE), LONGEST_PAUSE)


def is_awaited(message: MessageAdmitted) -> bool:
    """Does somebody wait for the answer to this message alone?"""
    return message.key is not None


def is_over(message: MessageAdmitted, now: int) -> bool:
    """Is the time over that its sender gave it?"""
    return message.expires_at is not None and message.expires_at <= now


def _are_alike(one: MessageAdmitted, other: MessageAdmitted) -> bool:
    return _terms(one) == _terms(other) and one.workflow_ref is None and other.workflow_ref is None


def _terms(message: MessageAdmitted) -> tuple[object, ...]:
    """What a turn that takes several messages has once."""
    return (
        message.priority,
        message.authority_class,
        message.derived_from,
        message.principal,
        message.policy_context,
        message.context,
        message.limits,
        message.collections,
        message.editing,
        message.notes,
        message.depth,
    )
