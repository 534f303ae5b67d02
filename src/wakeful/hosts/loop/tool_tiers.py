"""Tools in two tiers: a few listed in full, the rest found by searching. A way to list many, not a check."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from wakeful.decisions.policy.actions import categories_of
from wakeful.decisions.policy.patterns import in_full
from wakeful.hosts.loop.visibility import Declared, fields_of

FIRST_TIER = 15


@dataclass(frozen=True, slots=True)
class Tiers:
    """What a model is told outright, and what it can search for."""

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
