"""Where a host's tools come from: sources by name, gathered into one catalogue for `tool_declarations`.

Every declaration is read like one of a request. One that is not fit, that takes a name which is taken, or whose source
raises, is left out and named; the others stay.
"""

from collections.abc import Callable, Mapping
from typing import Any

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import RejectedDeclaration
from wakeful.hosts.host_calls import awaited
from wakeful.hosts.loop.event_reports import describe
from wakeful.hosts.loop.options import Declarations, read_declarations


class ToolSourceRegistry:
    """The sources of one host."""

    def __init__(self) -> None:
        self._sources: dict[str, Callable[[dict[str, Any]], Any]] = {}

    def register(self, source: str, provide: Callable[[dict[str, Any]], Any]) -> None:
        """`provide(context)` gives declarations, a list or an object by name; plain or async. `source` is who provides
        those that do not say it themselves.
        """
        if source in self._sources:
            raise InvalidConfig(f"the tool source {source!r} is registered already", "give it another name")
        self._sources[source] = provide

    async def gather(self, context: Mapping[str, Any] | None = None) -> Declarations:
        """What all of them offer now, in the order in which they were registered."""
        found: dict[str, Any] = {}
        rejected: list[RejectedDeclaration] = []
        for source, provide in self._sources.items():
            try:
                offered = await awaited(provide(dict(context or {})))
                entries = list(offered.values() if isinstance(offered, Mapping) else offered)
            except Exception as error:  # the tools of the others are there all the same
                rejected.append(RejectedDeclaration(name=source, reason=f"the source raised {describe(error)}"))
                continue
            for place, raw in enumerate(entries):
                named = {"source": source, **raw} if isinstance(raw, Mapping) else raw
                found[f"{source}[{place}]"] = named
        read = read_declarations(found, aliased=False)
        return Declarations(read.accepted, (*rejected, *read.rejected))
