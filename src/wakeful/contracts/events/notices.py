"""Facts about notices: each try to deliver one, and what was asked for by hand. Notices follow from facts."""

from typing import ClassVar

from wakeful.contracts.events.base import THREAD, Need, RuntimeFact
from wakeful.contracts.notices import AttemptOutcome


class NoticeAttempted(RuntimeFact):
    """A notice was sent, or could not be, or nobody wants it."""

    kind: ClassVar[str] = "notice.attempted"

    notice_id: str
    attempt: int
    """From 1; 0: nothing was sent."""
    outcome: AttemptOutcome
    to: str = ""
    """Where it went: a host or a command, without what may be secret."""
    error: str = ""
    next_at: int | None = None
    """Unix microseconds of the next try; None: there is none."""
    channel: str = ""
    """The channel that it went to; blank: it went elsewhere."""
    message_ref: str | None = None
    """What the service of the channel calls the message."""
    action_id: str | None = None
    """The approval or the question that it shows."""


class NoticeRequested(RuntimeFact):
    """Somebody wants to see whether notices arrive."""

    kind: ClassVar[str] = "notice.requested"

    requested_by: str
    words: str = ""


class ResultChanged(RuntimeFact):
    """What an agent came to is something else than the last time. Written for agents whose `notify` has `change`."""

    kind: ClassVar[str] = "result.changed"

    source: str = ""
    """The timer that woke it; blank: something else did."""
    digest: str
    text: str
    """Its beginning."""


class ActionReminded(RuntimeFact):
    """Half of the time for an approval or a question is over, and nobody has decided. Told once."""

    kind: ClassVar[str] = "action.reminded"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    action_id: str
    tool_name: str
    expires_at: int
