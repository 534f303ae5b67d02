"""Items of a compaction, and whether what is left still holds what there was: conservation.

An item is a piece of whatever is compacted: a message, a section of a document. Bytes are counted over what an item
says. What is summarised, retained and archived together has to be as much as the policy asks for; a compaction that
loses more than that is none.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.jsonable import JsonAny, JsonDict
from wakeful.contracts.transcript import Message
from wakeful.contracts.validation import validated
from wakeful.contracts.values import Value
from wakeful.decisions.redaction import stable_hash

SCHEMA = "wakeful.compaction-item"
INVALID = "invalid_compaction_item"


class CompactionItem(Value):
    """One piece of what is compacted: `wakeful.compaction-item` version 1."""

    model_config = ConfigDict(serialize_by_alias=True)

    schema_id: Literal["wakeful.compaction-item"] = Field("wakeful.compaction-item", alias="schema")
    version: Literal[1] = 1
    id: str = Field(min_length=1)
    type: str
    content: JsonAny
    metadata: JsonDict = {}
    group: str | None = None
    """The group of items that stay together."""
    boundary: str | None = None
    """Which boundary it stands at, for whoever cuts."""

    @field_validator("type")
    @classmethod
    def _has_a_type(cls, kind: str) -> str:
        if not kind.strip():
            raise ValueError("is empty; say what the item is")
        return kind

    @property
    def byte_count(self) -> int:
        """How much it says, in bytes."""
        message = self.metadata.get("message")
        return _bytes(self.content) + (_bytes(message) if message else 0)

    def to_wire(self) -> dict[str, Any]:
        """As JSON data; what was never set is absent."""
        return self.model_dump(mode="json", exclude_none=True)


def normalise_item(raw: "CompactionItem | Mapping[str, Any]", position: int = 0, *, at: str = "") -> CompactionItem:
    """An item from outside. Without an id it gets one that follows from what it says and where it stands."""
    if isinstance(raw, CompactionItem):
        return raw
    if not isinstance(raw, Mapping):
        raise InvalidValue(INVALID, at, f"an item is an object, not a {type(raw).__name__}")
    fields = dict(raw)
    if fields.get("id") in (None, ""):
        # Checked with a stand-in first: the id is made of what is fit, and what is not is named by its own field.
        checked = validated(CompactionItem, {**fields, "id": "item"}, INVALID, at)
        fields["id"] = item_id(checked, position)
    return validated(CompactionItem, fields, INVALID, at)


def normalise_items(raws: Any, *, at: str = "items") -> tuple[CompactionItem, ...]:
    """Items from outside, in order; an error names the place, `items[2].type`."""
    if isinstance(raws, str | bytes | Mapping) or not isinstance(raws, Iterable):
        raise InvalidValue(INVALID, at, f"expected a list of items, not a {type(raws).__name__}")
    return tuple(normalise_item(raw, place, at=f"{at}[{place}]") for place, raw in enumerate(raws))


def item_id(item: CompactionItem, position: int) -> str:
    """The id of an item that was given none."""
    named = [item.content, item.type, item.metadata, item.group, item.boundary, position]
    return "item-" + stable_hash(named).removeprefix("sha256:")[:16]


def made(kind: str, content: Any, position: int, **more: Any) -> CompactionItem:
    """An item with the id that follows from it."""
    return normalise_item({"type": kind, "content": content, **more}, position)


def item_of(message: Message, position: int) -> CompactionItem:
    """A message as an item."""
    said: dict[str, Any] = {"role": message.role, "payload": message.payload}
    return made(f"message:{message.type}", message.content, position, metadata={"message": said})


def items_of(messages: Iterable[Message]) -> tuple[CompactionItem, ...]:
    """A transcript as items."""
    return tuple(item_of(message, position) for position, message in enumerate(messages))


def byte_count(items: Iterable[CompactionItem]) -> int:
    """What these items say together, in bytes."""
    return sum(item.byte_count for item in items)


def _bytes(value: Any) -> int:
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(value.encode("utf-8", "surrogatepass"))


# --- conservation ---------------------------------------------------------------------------------------------------


class ItemCount(Value):
    """How many items, and how much they say."""

    item_count: int
    byte_count: int

    @classmethod
    def of(cls, items: Iterable[CompactionItem]) -> "ItemCount":
        listed = tuple(items)
        return cls(item_count=len(listed), byte_count=byte_count(listed))


class Provenance(Value):
    """What there was, and what became of it."""

    original: ItemCount
    compacted: ItemCount
    """What stands in the place of what was folded."""
    retained: ItemCount
    archived: ItemCount


class Conservation(Value):
    """Whether enough of it is still there."""

    enabled: bool
    minimum_conserved_byte_ratio: float
    required_byte_count: int
    conserved_byte_count: int
    conserved_byte_ratio: float
    passed: bool
    failed_closed: bool
    """It did not pass, and so nothing was changed."""


def provenance(
    original: Iterable[CompactionItem],
    compacted: Iterable[CompactionItem] = (),
    retained: Iterable[CompactionItem] = (),
    archived: Iterable[CompactionItem] = (),
) -> Provenance:
    """Everything that took part, counted."""
    return Provenance(
        original=ItemCount.of(original),
        compacted=ItemCount.of(compacted),
        retained=ItemCount.of(retained),
        archived=ItemCount.of(archived),
    )


def conservation(counted: Provenance, *, enabled: bool, ratio: float, fails: bool) -> Conservation:
    """Hold what is left against what there was. `fails`: a compaction that does not pass is not carried out."""
    before = counted.original.byte_count
    conserved = counted.compacted.byte_count + counted.retained.byte_count + counted.archived.byte_count
    required = math.ceil(before * ratio)
    passed = not enabled or conserved >= required
    return Conservation(
        enabled=enabled,
        minimum_conserved_byte_ratio=ratio,
        required_byte_count=required,
        conserved_byte_count=conserved,
        conserved_byte_ratio=round(conserved / before, 6) if before else 1.0,
        passed=passed,
        failed_closed=enabled and fails and not passed,
    )
