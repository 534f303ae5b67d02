"""What a model is told about how full its context is, beside the messages it is shown again.

Only in the copy that is sent: what is stored and what a user sees are as they were. Worked out once for each message
and never rewritten, so that a request begins like the one before it. A reply goes back to its provider as it came; what
is said about it stands with the result that follows it.
"""

from collections.abc import Mapping, Sequence

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, ToolItem, UserItem
from wakeful.decisions.compaction import advisory


def advised(
    items: Sequence[UserItem | AssistantItem | ToolItem], first: int, used: Mapping[int, int], window: int
) -> list[UserItem | AssistantItem | ToolItem]:
    """The items from place `first` on, as the model is shown them."""
    shown: list[UserItem | AssistantItem | ToolItem] = []
    for place, item in enumerate(items, first):
        words = [Text(advisory(used[place], window))] if place in used else []
        if isinstance(item, AssistantItem):
            shown.append(item)
            if words and not item.calls:
                shown.append(UserItem(parts=tuple(words), origin="runtime"))
        elif isinstance(item, ToolItem) and words:
            before = place - 1
            if before in used and (place == first or isinstance(items[before - first], AssistantItem)):
                words.insert(0, Text(advisory(used[before], window)))
            shown.append(item.model_copy(update={"parts": (*item.parts, *words)}))
        else:
            shown.append(item)
    return shown
