"""An event this version does not know: kept as it is, passed on, never fatal."""

from typing import Any, ClassVar

from pydantic import ConfigDict

from wakeful.contracts.events.base import Event, Need


class Unrecognised(Event):
    """A kind from a newer version or another writer."""

    model_config = ConfigDict(extra="allow", frozen=True)
    kind: ClassVar[str] = "wakeful.unrecognised"
    needs: ClassVar[tuple[Need, ...]] = ()

    original_kind: str
    original_version: int
    body: dict[str, Any]
