"""What a provider found on the web for a reply: its sources, as citations of the reply.

Citations have the shape of `contracts.citations`: `source` is the tool, `source_url` and `source_title` the page,
`excerpt` the words of the page, `supports` the words of the answer.
"""

from collections.abc import Iterable
from typing import Any

from wakeful.contracts.citations import normalise_citation
from wakeful.contracts.conversation import AssistantItem

WEB_SEARCH = "web_search"
SEARCHES = "searches"
"""Where a reply's `request_metadata` says how often the provider searched for it."""
MAX_CITATIONS = 100
"""So many are kept of one reply."""
MAX_WORDS = 500
"""So many characters of an excerpt or a supported text are kept."""


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
