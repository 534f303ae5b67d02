"""Tools that a provider runs by itself, as far as the formats are alike: what is left out of one, and what was found.

Citations have the shape of `contracts.citations`: `source` is the tool, `source_url` and `source_title` the page,
`excerpt` the words of the page, `supports` the words of the answer.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from wakeful.contracts.citations import normalise_citation
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.tools import ServerTool

WEB_SEARCH = "web_search"
MAX_CITATIONS = 100
"""So many are kept of one reply."""
MAX_WORDS = 500
"""So many characters of an excerpt or a supported text are kept."""


def untaken_options(tools: Sequence[ServerTool], taken: Iterable[str]) -> list[str]:
    """The options of server tools that a format has no word for, as `left_out` names them."""
    known = {*taken}
    given = ("max_uses", "allowed_domains", "blocked_domains")
    return [f"{tool.kind}.{name}" for tool in tools for name in given if getattr(tool, name) and name not in known]


def untaken_tools(tools: Sequence[ServerTool]) -> list[str]:
    """Server tools of a request to a format, or a model, that has none."""
    return [f"tools.{tool.kind}" for tool in tools]


def citation(url: Any, title: Any, *, excerpt: Any = None, supports: Any = None) -> dict[str, Any] | None:
    """One citation of the web; None for one that leads nowhere."""
    if not isinstance(url, str) or not url.strip():
        return None
    raw = {
        "source": WEB_SEARCH,
        "source_url": url,
        "source_title": title,
        "excerpt": _short(excerpt),
        "supports": _short(supports),
    }
    return normalise_citation({name: value for name, value in raw.items() if value})


def with_findings(item: AssistantItem, found: Iterable[dict[str, Any] | None], *, searched: bool) -> AssistantItem:
    """A reply with where its words were found: each place once, in the order of the reply."""
    cited: list[dict[str, Any]] = []
    for each in found:
        if each is not None and each not in cited and len(cited) < MAX_CITATIONS:
            cited.append(each)
    if not cited and not searched:
        return item
    return item.model_copy(update={"citations": tuple(cited) or None, "server_tools": (WEB_SEARCH,)})


def _short(words: Any) -> str | None:
    return words[:MAX_WORDS] if isinstance(words, str) else None
