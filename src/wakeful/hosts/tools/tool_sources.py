"""The tools of a host as a list: gathered from their sources for `tool_declarations`, and listed in two tiers.

Every declaration is read like one of a request. One that is not fit, that takes a name which is taken, or whose source
raises, is left out and named; the others stay. Tiers are a way to list many tools, not a check.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from wakeful.contracts.errors import InvalidConfig, InvalidValue
from wakeful.contracts.events import RejectedDeclaration
from wakeful.decisions.policy.actions import categories_of
from wakeful.decisions.policy.patterns import in_full
from wakeful.gate.argument_validation import compile as compile_schema
from wakeful.hosts.host_calls import awaited
from wakeful.hosts.loop.loop_events import describe
from wakeful.hosts.policies.tool_visibility import Declared, fields_of
from wakeful.hosts.tools.declaration_reader import normalize_for_conversation_request
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration

FIRST_TIER = 15
INVALID = "invalid_loop_options"


@dataclass(slots=True, frozen=True)
class Declarations:
    """The tools of a run: those that are fit to be offered, and those that are not."""

    accepted: tuple[RuntimeToolDeclaration, ...] = ()
    rejected: tuple[RejectedDeclaration, ...] = ()


def read_declarations(given: Any, *, aliased: bool = True) -> Declarations:
    """Every declaration checked by itself: one that is not fit is left out and named.

    `aliased`: a model may call a tool by the key it stands under.
    """
    if not isinstance(given, Mapping):
        raise InvalidValue(INVALID, "tool_declarations", f"is an object by name, not a {type(given).__name__}")
    accepted: dict[str, RuntimeToolDeclaration] = {}
    rejected: list[RejectedDeclaration] = []
    for key, raw in given.items():
        try:
            tool = normalize_for_conversation_request(raw)
            if tool.name in accepted:
                raise InvalidValue("", "name", f"name {tool.name!r} is declared twice")
            compile_schema(tool.input_schema)
        except InvalidValue as error:
            rejected.append(RejectedDeclaration(name=_name_of(key, raw), reason=error.reason))
        except InvalidConfig as error:
            rejected.append(RejectedDeclaration(name=_name_of(key, raw), reason=f"parameters are {error.message}"))
        else:
            if aliased and key not in tool.names:
                tool = tool.model_copy(update={"provider_aliases": (*tool.provider_aliases, str(key))})
            accepted[tool.name] = tool
    return Declarations(tuple(accepted.values()), tuple(rejected))


def _name_of(key: Any, raw: Any) -> str:
    name = raw.get("name") if isinstance(raw, Mapping) else None
    return name if isinstance(name, str) and name else str(key)


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
        """The tools of all sources now, in the order of registration."""
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


@dataclass(frozen=True, slots=True)
class Tiers:
    """Tools that a model is shown at once, and tools that it can search for."""

    first: dict[str, Declared]
    rest: dict[str, Declared]

    def search(self, query: str, limit: int = FIRST_TIER) -> list[str]:
        """Names of the rest that share words with the query, the best first; by name where that is equal."""
        wanted = set(_words(query))
        scored = [(len(wanted & set(_described(name, fields_of(tool)))), name) for name, tool in self.rest.items()]
        return [name for score, name in sorted(scored, key=lambda one: (-one[0], one[1])) if score][:limit]


def tiered(tools: Mapping[str, Declared], preferred: Collection[str] = (), limit: int = FIRST_TIER) -> Tiers:
    """At most `limit` (never more than 15) in the first tier: preferred ones first, then in the order given."""
    ranked = sorted(tools, key=lambda name: not in_full(preferred, name))
    first = frozenset(ranked[: max(0, min(limit, FIRST_TIER))])
    return Tiers(
        {name: tools[name] for name in ranked if name in first},
        {name: tool for name, tool in tools.items() if name not in first},
    )


def _described(name: str, fields: Mapping[str, Any]) -> list[str]:
    return _words(" ".join([name, str(fields.get("description") or ""), *categories_of(fields)]))


def _words(text: str) -> list[str]:
    return "".join(letter.lower() if letter.isalnum() else " " for letter in text).split()
