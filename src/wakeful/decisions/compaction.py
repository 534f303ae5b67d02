"""Folding the beginning of a conversation into a summary: when, where it is cut, and what may not be lost.

The model writes the summary (`decisions/summary`); what the runtime owes somebody is not left to it. The log keeps
everything either way; only what the model is shown changes.

A cut lies before a message of the user, so that the newest turns stay as they are: as many as are to be kept, or fewer
where those would not fit. Where a single turn is too long for that, it lies between two rounds, never between a call
and its result. What the level was asked last stays whole behind the summary (`pinned_of`); of older messages the user's
words go along, the newest first.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from wakeful.contracts.controls import awareness_limit
from wakeful.contracts.conversation import AssistantItem, ToolItem, UserItem
from wakeful.contracts.events.context import CompactionTrigger
from wakeful.contracts.models import TokenUsage
from wakeful.decisions.conversation_cut import folded_part, newest_place, place_after, tail_start
from wakeful.decisions.level_conversation import MessagePlace, PreservedRefs
from wakeful.decisions.levels import Level, SummaryRole
from wakeful.decisions.prompt_size import characters, tokens
from wakeful.decisions.summary import Item, is_summary

TAIL_SHARE = 0.3
"""Of what is allowed, what stays word for word where a turn itself has to be cut; twice as much at a message."""


class CompactionNeed(NamedTuple):
    """A conversation that has to be made shorter before its model is asked again."""

    trigger: CompactionTrigger
    used: int
    window: int
    allowed: int
    """Tokens up to which it is not too long."""


def context_tokens(level: Level) -> int:
    """How long the next prompt is: what the provider reported of the last one, and a guess at what is new since."""
    return _known_tokens(level) + tokens(_new_characters(level) + characters(level.next_request.notes))


def item_tokens(level: Level) -> int:
    """The same up to the newest item: without notes that no request has taken along.

    What is worked out once may not rest on those. Whoever folds the log meets a note where it was written, and whoever
    ran the turn may have met it later.
    """
    return _known_tokens(level) + tokens(_new_characters(level))


def _new_characters(level: Level) -> int:
    """Of what came since the length was known."""
    talk, known_at = level.conversation, level.next_request.known_at
    return characters(talk.items[known_at:]) if known_at else talk.measure.of(talk.items).characters


def _known_tokens(level: Level) -> int:
    ahead = level.next_request
    if not ahead.known_at and not ahead.known_tokens and level.config is not None:
        return level.config.prompt_tokens
    return ahead.known_tokens


def measured(level: Level, usage: TokenUsage | None) -> None:
    """A reply is in the conversation: count up to it, once."""
    reported = (usage.input_tokens or 0) + (usage.output_tokens or 0) if usage is not None else 0
    level.next_request.known_tokens = reported if usage is not None and usage.input_tokens else item_tokens(level)
    level.next_request.known_at = len(level.conversation.items)


def due(level: Level, history_tokens: int | None) -> CompactionNeed | None:
    """Is the conversation too long for the next request?"""
    config = level.config
    if config is None or isinstance(level.role, SummaryRole):
        return None
    window = config.context_window
    if window is None and history_tokens is None:
        return None
    limit = awareness_limit(config.budget_awareness)
    used = context_tokens(level)
    if limit is not None and window is not None and used * 100 > limit * window:
        return CompactionNeed("context_budget", used, window, window * limit // 100)
    if history_tokens is not None and used > history_tokens:
        return CompactionNeed("token_pressure", used, history_tokens, history_tokens)
    by_share = config.compaction.enabled and limit is None  # who sets a limit says when
    if window is not None and by_share and used > config.compaction.threshold * window:
        return CompactionNeed("token_pressure", used, window, int(config.compaction.threshold * window))
    return None


def cut_of(level: Level, allowed: int) -> int:
    """How many items are folded so that the rest has room within so many tokens; 0: there is nothing that could be."""
    config, items = level.config, level.conversation.items
    assert config is not None
    spoken = [place for place, item in enumerate(items) if _is_persons(item)]
    keep = config.compaction.keep_user_turns
    room = max(allowed - config.prompt_tokens, allowed // 4)  # instructions and tools are there whatever is folded
    most = int(room * TAIL_SHARE) * 3
    for turns in range(keep, 0, -1):
        at_turn = spoken[-turns] if len(spoken) > turns else 0
        if at_turn > 1 and characters(items[at_turn:]) <= most * 2:
            return at_turn
    cut = max(_within_turn(items, most), spoken[-1] if spoken and spoken[-1] > 1 else 0)
    return 0 if all(map(is_summary, folded_items(level, cut))) else cut  # a summary alone is not folded again


def _within_turn(items: Sequence[Item], most: int) -> int:
    """The beginning of the oldest round that still fits into the tail."""
    begins = tail_start(
        len(items),
        lambda place: characters(items[place : place + 1]),
        most=most,
        may_begin=lambda place: isinstance(items[place], AssistantItem),
    )
    return begins if 1 < begins < len(items) else 0


def pinned_of(level: Level, cut: int) -> int | None:
    """The place of what the level was asked last, where it lies in the part that is folded: it stays as it is.

    In a conversation that is the newest message of the user; in a child, its task.
    """
    items = level.conversation.items
    asked = newest_place(len(items), lambda place: _is_persons(items[place]))
    if asked is not None:
        return asked if asked < cut else None
    return next((place for place in range(min(2, cut)) if _is_task(items[place])), None)


def _is_persons(item: Item) -> bool:
    return isinstance(item, UserItem) and item.origin == "person"


def _is_task(item: Item) -> bool:
    return isinstance(item, UserItem) and not is_summary(item)


def moved(advised: Mapping[int, int], cut: int, pinned: int | None) -> dict[int, int]:
    """Places of what the model was told, once a summary is in place."""
    places = ((place_after(place, cut, pinned), used) for place, used in advised.items())
    return {place: used for place, used in places if place is not None}


def folded_items(level: Level, cut: int) -> list[Item]:
    """What a summary stands for."""
    return folded_part(level.conversation.items, cut, pinned_of(level, cut))


def kept_by(level: Level, cut: int, actions: Iterable[str], incidents: Iterable[str]) -> PreservedRefs:
    """What the part that is folded holds and the rest of the turn still needs."""
    before = level.conversation.conserved
    kept = PreservedRefs(set(actions), set(incidents), set(before.evidence), set(before.artifacts))
    for item in folded_items(level, cut):
        if isinstance(item, ToolItem) and item.call_id in level.conversation.references:
            artifacts, evidence = level.conversation.references[item.call_id]
            kept.artifacts.update(artifacts)
            kept.evidence.update(evidence)
        for part in item.parts:
            ref = getattr(part, "ref", None)
            if ref is not None:
                kept.artifacts.add(ref.digest)
    kept.messages.extend((heard.message_id, heard.authority) for heard in heard_before(level, cut))
    return kept


def heard_before(level: Level, cut: int) -> list[MessagePlace]:
    """The messages that are folded."""
    pinned = pinned_of(level, cut)
    return [heard for heard in level.conversation.heard if heard.place < cut and heard.place != pinned]


def advisory(used: int, window: int) -> str:
    """One fixed form, for every message that is shown again."""
    return f"[context: {used} of {window} tokens, {used * 100 // window}% used]"


def stop_words(used: int, window: int, limit: int) -> str:
    """What a run that had to end for its context says."""
    return (
        f"Context budget limit reached: {used} of {window} tokens ({used * 100 // window}%), limit {limit}%. "
        "No further model call was made."
    )
