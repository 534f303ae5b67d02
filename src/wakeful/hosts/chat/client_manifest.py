"""What a client says it can do: its manifest, as tools of the turn.

Each entry becomes a proxy, `client/ui_...`, of a class that only an editor's policy has on; its calls are requests like
those of every other client tool. The manifest comes from outside: an entry that is not fit, or that would take the name
of a tool there is, is left out and named, and the others stay.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.jsonable import NotJson, plain
from wakeful.contracts.tools import ToolDeclaration
from wakeful.gate.argument_validation import compile as compile_schema
from wakeful.tools.client import ClientTool
from wakeful.tools.source import Offer, ToolSource, WithheldTool

NAME = re.compile(r"ui_[a-z0-9_]+")
FIELDS = frozenset({"name", "description", "parameters"})
TIMEOUT_SECONDS = 30.0
"""How long a client may take."""


class ClientManifest(ToolSource):
    """The tools of one client. `server_tools` are the names that are taken already."""

    def __init__(
        self,
        entries: Sequence[object],
        *,
        server_tools: Collection[str] = (),
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        taken = {name.rpartition("/")[2] for name in server_tools}
        self._tools: list[ClientTool] = []
        self._withheld: list[WithheldTool] = []
        for place, entry in enumerate(entries if isinstance(entries, list | tuple) else ()):
            problem = _problem(entry, taken)
            if problem is None:
                taken.add(entry["name"])
                self._tools.append(_proxy(entry, timeout))
            else:
                self._withheld.append(
                    WithheldTool(_named(entry, place), f"left out of the client's manifest: {problem}")
                )

    @property
    def name(self) -> str:
        return "client"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out, by name, and why."""
        return tuple(f"{each.name}: {each.reason}" for each in self._withheld)

    async def offer(self) -> Offer:
        return Offer(tuple(self._tools), tuple(self._withheld))


def _problem(entry: Any, taken: Collection[str]) -> str | None:
    """What is wrong with an entry; None when it is fit."""
    if not isinstance(entry, Mapping):
        return f"an entry is an object, not a {type(entry).__name__}"
    unknown = sorted(str(field) for field in entry.keys() - FIELDS)
    if unknown:
        return f"it has a field {unknown[0]!r}, which no entry has"
    name, words, schema = (entry.get(field) for field in ("name", "description", "parameters"))
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return f"its name is {name!r}, and has to be ui_ and small letters, digits or _"
    if name in taken:
        return f"there is a tool {name!r} already"
    if not isinstance(words, str) or not words.strip():
        return "its description is not a text"
    if not isinstance(schema, Mapping):
        return "its parameters are not a JSON Schema"
    try:
        compile_schema(plain(dict(schema)))
    except (NotJson, InvalidConfig) as error:
        return f"its parameters are not a JSON Schema: {error}"
    return None


def _proxy(entry: Mapping[str, Any], timeout: float) -> ClientTool:
    return ClientTool(
        ToolDeclaration(
            name=f"client/{entry['name']}",
            description=entry["description"].strip(),
            input_schema={"type": "object", **entry["parameters"]},
            permission_class="editor_mutate",
            timeout=timeout,
        )
    )


def _named(entry: Any, place: int) -> str:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    return f"client/{name[:100]}" if isinstance(name, str) and name else f"client/[{place}]"
