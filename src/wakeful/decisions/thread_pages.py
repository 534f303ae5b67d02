"""A thread's conversation in pages: each holds what came since the page before it, and names that one by its hash.

Nothing is summarised: the pages of a thread hold every item of its conversation, word for word, and what the next turn
has to know beside them. The newest page says what holds for the whole. When a summary takes the place of the
conversation's beginning, a new row of pages begins.

What a turn needs at once stands in a page's head. The items and the rest are packed, and decoded when somebody looks at
them. So that a long conversation has few pages, the next one takes the place of `JOINED` small ones of the same rank.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from wakeful.contracts.conversation import AssistantItem, Item, ToolItem, UserItem
from wakeful.contracts.skills import ActiveSkill
from wakeful.decisions.level_conversation import LevelConversation, MessagePlace, PreservedRefs, TurnBeginning
from wakeful.decisions.paged_list import PagedList, PagedPart
from wakeful.decisions.policy.owner_text import OwnerText, UnreadTexts
from wakeful.decisions.policy.provenance import Exposure
from wakeful.decisions.prompt_size import Measure
from wakeful.decisions.state import ThreadMemory, ThreadSoFar, TurnState

JOINED = 8
MOST_JOINS = 2
"""A page of that rank stays as it is, so that no turn writes a whole conversation again."""
JOINED_CHARACTERS = 200_000
"""Of the items of a joined page, as the model is shown them."""
_MARK = b"wakeful-page 2"
_ITEMS: TypeAdapter[list[UserItem | AssistantItem | ToolItem]] = TypeAdapter(list[Item], config={"defer_build": True})


class PageMark(NamedTuple):
    """How far a conversation stands in pages, up to one of them."""

    page: str = ""
    """Its digest."""
    rank: int = 0
    """How often pages were joined to make it."""
    compactions: int = 0
    items: int = 0
    characters: int = 0
    referring: int = 0
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
        self.order: list[str] = list(dict.fromkeys(ids))
        super().__init__(self.order)

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


class LimitNote(NamedTuple):
    """What a provider said about a limit of its own, or that it answered since."""

    at: int
    kind: str
    version: int
    event: dict[str, Any]


class NextTurn(NamedTuple):
    """What the next turn has to know beside the conversation."""

    config: str | None = None
    """The digest of the newest configuration."""
    limits: tuple[LimitNote, ...] = ()


class NextPage(NamedTuple):
    """A page that is to be kept, and the row of pages that it joins."""

    data: bytes
    row: tuple[PageMark, ...]
    """The pages before it."""
    mark: PageMark
    """How far the conversation stands in pages with it; its digest is known when it is kept."""

    def kept_as(self, digest: str) -> tuple[PageMark, ...]:
        return (*self.row, self.mark._replace(page=digest))


# --- writing ----------------------------------------------------------------------------------------------------------


def next_page(state: TurnState, call_ids: Sequence[str], sealed: tuple[PageMark, ...], told: NextTurn) -> NextPage:
    """The page that follows: of a state that a turn begins with, before anything of that turn."""
    said = state.conversation
    measure = said.measure.of(said.items)
    row, rank = _row(sealed, said.compactions, measure.characters)
    known = row[-1] if row else PageMark()
    mark = PageMark(
        "",
        rank,
        said.compactions,
        len(said.items),
        measure.characters,
        len(measure.referring),
        len(said.heard),
        len(state.thread.begins),
        len(said.advised),
        len(said.references),
        state.thread.owner_said.added,
        state.thread.owner_files.added,
        len(call_ids),
    )
    words, files = state.thread.owner_said.since(known.owner_said), state.thread.owner_files.since(known.owner_files)
    kept = said.conserved
    head = {
        "before": known.page or None,
        "rank": rank,
        "items": mark.items - known.items,
        "characters": mark.characters - known.characters,
        "referring": [place - known.items for place in measure.referring[known.referring :]],
        "heard": mark.heard - known.heard,
        "begins": mark.begins - known.begins,
        "advised": mark.advised - known.advised,
        "references": mark.references - known.references,
        "owner_said": (len(words), sum(len(text) for _, text in words)),
        "owner_files": (len(files), sum(len(text) for _, text in files)),
        "call_ids": call_ids[known.call_ids :],
        "untrusted": state.thread.exposure.untrusted,
        "private": state.thread.exposure.private,
        "skills": tuple(state.thread.skills.values()),
        "conserved": {
            "actions": sorted(kept.actions),
            "incidents": sorted(kept.incidents),
            "evidence": sorted(kept.evidence),
            "artifacts": sorted(kept.artifacts),
            "messages": kept.messages,
        },
        "compactions": said.compactions,
        "compaction_id": state.thread.compaction_id,
        "config": told.config,
        "limits": told.limits,
    }
    beside = {
        "heard": said.heard[known.heard :],
        "begins": state.thread.begins[known.begins :],
        "advised": tuple(islice(said.advised.items(), known.advised, None)),
        "references": [(call, *both) for call, both in islice(said.references.items(), known.references, None)],
        "owner_said": words,
        "owner_files": files,
    }
    items = _ITEMS.dump_json(list(said.items[known.items :]), exclude_none=True)
    return NextPage(_packed(to_json(head), items, to_json(beside)), row, mark)


def _row(sealed: tuple[PageMark, ...], compactions: int, characters: int) -> tuple[tuple[PageMark, ...], int]:
    """The pages that stay, and the rank of the one that follows them."""
    row = sealed if sealed and sealed[-1].compactions == compactions else ()
    rank, others = 0, JOINED - 1
    while rank < MOST_JOINS and len(row) >= others and {mark.rank for mark in row[-others:]} == {rank}:
        before = row[-others - 1].characters if len(row) > others else 0
        if characters - before > JOINED_CHARACTERS:
            break
        row, rank = row[:-others], rank + 1
    return row, rank


def _packed(*contents: bytes) -> bytes:
    parts = [zlib.compress(content) for content in contents]
    return b"\n".join((b" ".join((_MARK, *(str(len(part)).encode() for part in parts))), b"".join(parts)))


# --- reading ----------------------------------------------------------------------------------------------------------


class StoredPage:
    """A part of a conversation, and what holds for it up to here. Its items are decoded when they are asked for."""

    def __init__(self, head: dict[str, Any], items: bytes, beside: bytes) -> None:
        self.head = head
        self._items = items
        self._beside = beside

    @property
    def before(self) -> str | None:
        """The digest of the page before."""
        before: str | None = self.head.get("before")
        return before

    def items(self) -> list[UserItem | AssistantItem | ToolItem]:
        return self._decoded

    @cached_property
    def _decoded(self) -> list[UserItem | AssistantItem | ToolItem]:
        found = _ITEMS.validate_json(zlib.decompress(self._items))
        self._items = b""
        return found

    @cached_property
    def _rest(self) -> dict[str, Any]:
        found: dict[str, Any] = from_json(zlib.decompress(self._beside))
        self._beside = b""
        return found

    def heard(self) -> list[MessagePlace]:
        return [MessagePlace(*each) for each in self._rest["heard"]]

    def begins(self) -> list[TurnBeginning]:
        return [TurnBeginning(*each) for each in self._rest["begins"]]

    def advised(self) -> dict[int, int]:
        return dict(self._rest["advised"]) if self.head["advised"] else {}

    def references(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        if not self.head["references"]:
            return {}
        return {call: (tuple(refs), tuple(links)) for call, refs, links in self._rest["references"]}

    def owner_said(self) -> list[tuple[str, str]]:
        return [(turn_id, text) for turn_id, text in self._rest["owner_said"]]

    def owner_files(self) -> list[tuple[str, str]]:
        return [(turn_id, text) for turn_id, text in self._rest["owner_files"]]

    def unread(self, name: str, read: Callable[[], list[tuple[str, str]]]) -> UnreadTexts:
        texts, chars = self.head[name]
        return UnreadTexts(texts, chars, read)


def _parts(data: bytes) -> list[bytes]:
    first, _, rest = data.partition(b"\n")
    if not first.startswith(_MARK):
        raise ValueError("these bytes are no page of a conversation")
    lengths = list(map(int, first[len(_MARK) :].split()))
    ends = [sum(lengths[: place + 1]) for place in range(len(lengths))]
    if len(lengths) != 3 or ends[-1] != len(rest):
        raise ValueError("a part of the page is missing")
    return [rest[end - length : end] for length, end in zip(lengths, ends, strict=True)]


def _inflated(part: bytes) -> bytes:
    try:
        return zlib.decompress(part)
    except zlib.error as error:
        raise ValueError(f"a part of the page cannot be unpacked: {error}") from error


def unpacked(data: bytes) -> bytes:
    """What a stored content says: of a page all of its parts, of any other content the bytes as they are. Raises
    ValueError for a page that cannot be read."""
    if not data.startswith(_MARK):
        return data
    return b"\n".join(map(_inflated, _parts(data)))


def read_page(data: bytes) -> StoredPage:
    """A page that was kept, of this version or of the one before. Raises ValueError."""
    if data.startswith(b"{"):
        return _first_version(from_json(data))
    head, items, beside = _parts(data)
    return StoredPage(from_json(_inflated(head)), items, beside)


def _first_version(whole: dict[str, Any]) -> StoredPage:
    """A page whose items were not packed, and not measured."""
    lists = ("items", "heard", "begins", "advised", "references", "owner_said", "owner_files")
    found = {name: whole.get(name, []) for name in lists}
    page = StoredPage(
        {**whole, "rank": 0}, zlib.compress(to_json(found.pop("items")), 1), zlib.compress(to_json(found), 1)
    )
    measure = Measure().of(page.items())
    page.head.update(items=measure.items, characters=measure.characters, referring=measure.referring)
    page.head.update({name: len(found[name]) for name in ("heard", "begins", "advised", "references")})
    for name in ("owner_said", "owner_files"):
        page.head[name] = len(found[name]), sum(len(text) for _, text in found[name])
    return page


def differences(page: ThreadSoFar, folded: TurnState) -> list[str]:
    """In what a conversation from pages differs from the same one, folded."""
    of_said = ("items", "heard", "advised", "references", "conserved", "compactions")
    of_thread = ("begins", "owner_said", "owner_files", "exposure", "skills", "compaction_id")
    found = [name for name in of_said if getattr(page.conversation, name) != getattr(folded.conversation, name)]
    return found + [name for name in of_thread if getattr(page.thread, name) != getattr(folded.thread, name)]


def told_by(page: StoredPage) -> NextTurn:
    return NextTurn(page.head.get("config"), tuple(LimitNote(*each) for each in page.head.get("limits", ())))


def marks_of(pages: Sequence[tuple[str, StoredPage]]) -> tuple[PageMark, ...]:
    """How far the conversation stands in these pages, oldest first, each under its digest."""
    marks: list[PageMark] = []
    known = PageMark()
    for digest, page in pages:
        head = page.head
        known = PageMark(
            digest,
            head["rank"],
            head.get("compactions", 0),
            known.items + head["items"],
            known.characters + head["characters"],
            known.referring + len(head["referring"]),
            known.heard + head["heard"],
            known.begins + head["begins"],
            known.advised + head["advised"],
            known.references + head["references"],
            known.owner_said + head["owner_said"][0],
            known.owner_files + head["owner_files"][0],
            known.call_ids + len(head.get("call_ids", ())),
        )
        marks.append(known)
    return tuple(marks)


def restored(pages: Sequence[StoredPage]) -> tuple[ThreadSoFar, CallIds]:
    """The conversation that stands in these pages, oldest first."""
    newest = pages[-1].head
    kept = newest.get("conserved", {})
    measure = Measure()
    for page in pages:
        head = page.head
        measure.referring += [measure.items + place for place in head["referring"]]
        measure.items += head["items"]
        measure.characters += head["characters"]
    said = LevelConversation(
        PagedList(PagedPart(page.head["items"], page.items) for page in pages),
        measure=measure,
        compactions=newest.get("compactions", 0),
        heard=PagedList(PagedPart(page.head["heard"], page.heard) for page in pages),
        advised={place: used for page in pages for place, used in page.advised().items()},
        references={call: both for page in pages for call, both in page.references().items()},
        conserved=PreservedRefs(
            actions=set(kept.get("actions", ())),
            incidents=set(kept.get("incidents", ())),
            evidence=set(kept.get("evidence", ())),
            artifacts=set(kept.get("artifacts", ())),
            messages=[(message_id, authority) for message_id, authority in kept.get("messages", ())],
        ),
    )
    thread = ThreadMemory(
        begins=PagedList(PagedPart(page.head["begins"], page.begins) for page in pages),
        owner_said=OwnerText([page.unread("owner_said", page.owner_said) for page in pages]),
        owner_files=OwnerText([page.unread("owner_files", page.owner_files) for page in pages]),
        exposure=Exposure(untrusted=newest.get("untrusted", ""), private=newest.get("private", "")),
        skills={skill.entrypoint_path: skill for skill in map(ActiveSkill.model_validate, newest.get("skills", ()))},
        compaction_id=newest.get("compaction_id"),
    )
    call_ids = CallIds(chain.from_iterable(page.head.get("call_ids", ()) for page in pages))
    return ThreadSoFar(said, thread), call_ids
