"""Facts about briefs. A brief is an explicit record: it stands in the commit that ends its turn, and names the fact
that holds its words instead of copying them."""

from typing import ClassVar, Literal

from wakeful.contracts.authority import Authority
from wakeful.contracts.briefs import BriefKind, BriefVisibility
from wakeful.contracts.events.base import TURN, Event, Need


class BriefCreated(Event):
    """The agent's people have something to read."""

    kind: ClassVar[str] = "brief.created"
    needs: ClassVar[tuple[Need, ...]] = TURN

    brief_id: str
    brief_kind: BriefKind
    message_kind: Literal["brief_ack", "brief_result"] | None = None
    """Not stored, because it follows from `brief_kind`; readers get it always. A brief is never a queued message."""
    visibility: BriefVisibility = "turn_result"
    text: str = ""
    """Words that stand nowhere else: an acknowledgement's, and what the agent wanted to be known."""
    text_ref: str | None = None
    """The event that holds the words: a reply of the model, or the end of the turn that failed. None, and no `text`:
    the turn ended without any."""
    work_item_id: str | None = None
    """The work item that the turn advanced."""
    workspace_id: str = ""
    related_message_id: str | None = None
    """The message that the turn answers."""
    related_task_id: str | None = None
    principal: str = ""
    """Whom the turn worked for; blank: nobody in particular."""
    derived_from: Authority = "operator_instruction"
    """The lowest authority among the causes of what the turn says."""
