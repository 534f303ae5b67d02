"""A thread's conversation in pages: each holds what came since the page before it, and names that one by its hash.

Nothing is summarised: the pages of a thread hold every item of its conversation, word for word, and what the next turn
has to know beside them. A page is never written again; the newest one says what holds for the whole. When a summary
takes the place of the conversation's beginning, a new row of pages begins.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from wakeful.contracts.conversation import Item
from wakeful.contracts.skills import ActiveSkill
from wakeful.contracts.values import Value
from wakeful.decisions.level_conversation import LevelConversation, MessagePlace, PreservedRefs, TurnBeginning
from wakeful.decisions.policy.owner_text import OwnerText
from wakeful.decisions.policy.provenance import Exposure
from wakeful.decisions.state import TurnState


class ConservedItems(Value):
    """What summaries hold on to, in an order of its own."""

    actions: tuple[str, ...] = ()
    incidents: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    messages: tuple[tuple[str, str], ...] = ()


class ConversationPage(Value):
    """A part of a conversation, and what holds for it up to here."""

    before: str | None = None
    """The digest of the page before."""
    items: tuple[Item, ...] = ()
    heard: tuple[MessagePlace, ...] = ()
    begins: tuple[TurnBeginning, ...] = ()
    advised: tuple[tuple[int, int], ...] = ()
    references: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = ()
    owner_said: tuple[tuple[str, str], ...] = ()
    owner_files: tuple[tuple[str, str], ...] = ()
    call_ids: tuple[str, ...] = ()
    untrusted: str = ""
    private: str = ""
    skills: tuple[ActiveSkill, ...] = ()
    conserved: ConservedItems = ConservedItems()
    compactions: int = 0
    compaction_id: str | None = None


class PageMark(NamedTuple):
    """How far a conversation stands in pages."""

    page: str
    """The digest of the newest."""
    compactions: int
    items: int = 0
    heard: int = 0
    begins: int = 0
    advised: int = 0
    references: int = 0
    owner_said: int = 0
    owner_files: int = 0
    call_ids: int = 0


class CallIds(set[str]):
    """The call ids that a conversation has seen, in the order in which they came."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        super().__init__()
        self.order: list[str] = []
        self.update(ids)

    def add(self, call_id: str) -> None:
        if call_id not in self:
            super().add(call_id)
            self.order.append(call_id)

    def cut(self, length: int) -> None:
        """Forget what came after so many."""
        self.difference_update(self.order[length:])
        del self.order[length:]

    def update(self, *several: Iterable[str]) -> None:
        for ids in several:
            for call_id in ids:
                self.add(call_id)


def next_page(state: TurnState, call_ids: CallIds, sealed: PageMark | None) -> ConversationPage:
    """The page that follows: of a state that a turn begins with, before anything of that turn."""
    known = (
        sealed
        if sealed is not None and sealed.compactions == state.conversation.compactions
        else PageMark("", state.conversation.compactions)
    )
    kept = state.conversation.conserved
    return ConversationPage(
        before=known.page or None,
        items=tuple(state.conversation.items[known.items :]),
        heard=tuple(state.conversation.heard[known.heard :]),
        begins=tuple(state.begins[known.begins :]),
        advised=tuple(islice(state.conversation.advised.items(), known.advised, None)),
        references=tuple(
            (call, *both) for call, both in islice(state.conversation.references.items(), known.references, None)
        ),
        owner_said=state.owner_said.since(known.owner_said),
        owner_files=state.owner_files.since(known.owner_files),
        call_ids=tuple(call_ids.order[known.call_ids :]),
        untrusted=state.exposure.untrusted,
        private=state.exposure.private,
        skills=tuple(state.skills.values()),
        conserved=ConservedItems(
            actions=tuple(sorted(kept.actions)),
            incidents=tuple(sorted(kept.incidents)),
            evidence=tuple(sorted(kept.evidence)),
            artifacts=tuple(sorted(kept.artifacts)),
            messages=tuple(kept.messages),
        ),
        compactions=state.conversation.compactions,
        compaction_id=state.compaction_id,
    )


def sealed_with(page: str, state: TurnState, call_ids: CallIds) -> PageMark:
    """How far the conversation stands in pages with this one."""
    return PageMark(
        page,
        state.conversation.compactions,
        len(state.conversation.items),
        len(state.conversation.heard),
        len(state.begins),
        len(state.conversation.advised),
        len(state.conversation.references),
        state.owner_said.added,
        state.owner_files.added,
        len(call_ids.order),
    )


def restored(pages: Sequence[ConversationPage]) -> tuple[TurnState, CallIds]:
    """The conversation that stands in these pages, oldest first."""
    newest = pages[-1]
    said, files = OwnerText(), OwnerText()
    for page in pages:
        for turn_id, text in page.owner_said:
            said.add(text, turn_id)
        for turn_id, text in page.owner_files:
            files.add(text, turn_id)
    kept = newest.conserved
    conversation = LevelConversation(
        [item for page in pages for item in page.items],
        compactions=newest.compactions,
        heard=[heard for page in pages for heard in page.heard],
        advised={place: used for page in pages for place, used in page.advised},
        references={call: (refs, links) for page in pages for call, refs, links in page.references},
        conserved=PreservedRefs(
            actions=set(kept.actions),
            incidents=set(kept.incidents),
            evidence=set(kept.evidence),
            artifacts=set(kept.artifacts),
            messages=list(kept.messages),
        ),
    )
    state = TurnState(
        conversation=conversation,
        begins=[begun for page in pages for begun in page.begins],
        owner_said=said,
        owner_files=files,
        exposure=Exposure(untrusted=newest.untrusted, private=newest.private),
        skills={skill.entrypoint_path: skill for skill in newest.skills},
        compaction_id=newest.compaction_id,
    )
    return state, CallIds(call_id for page in pages for call_id in page.call_ids)
