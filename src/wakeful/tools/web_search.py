"""`web_search()`: the search of the model's own provider, as a tool. The provider runs it while it answers.

No code runs here and no search comes to the gate, so the policy is heard before a request is sent: a search that it
would deny is not offered to the provider. Where a person has to be asked, the model calls this tool to ask; with a yes
the provider is offered the search until the turn ends. What was found is untrusted input.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.tools import ServerTool, ToolDeclaration
from wakeful.decisions.prompt_words import SEARCH_GRANTED
from wakeful.tools.call_runner import CallHandle
from wakeful.tools.context import RunContext
from wakeful.tools.decorator import tool
from wakeful.tools.schema import ArgumentsRefused
from wakeful.tools.tool import Tool

NAME = "web_search"


def _web_search(query: str) -> str:
    """Search the web."""
    raise AssertionError("a search is run by a provider, never by code")


class WebSearch(Tool[object]):
    """The tool that `web_search` makes."""

    def __init__(self, server: ServerTool) -> None:
        self._called = tool(_web_search, effect="pure", name=NAME, leaves_machine=True, untrusted=True)
        self.__signature__ = self._called.__signature__
        self._server = server
        self._declaration: ToolDeclaration | None = None

    @property
    def declaration(self) -> ToolDeclaration:
        if self._declaration is None:
            self._declaration = self._called.declaration.model_copy(update={"server": self._server})
        return self._declaration

    @property
    def name(self) -> str:
        return NAME

    @property
    def needs_deps(self) -> bool:
        return False

    def start(self, ctx: RunContext[object], arguments: dict[str, Any]) -> CallHandle:
        if ctx.approval is not None:
            granted = asyncio.get_running_loop().create_future()
            granted.set_result(SEARCH_GRANTED)
            return CallHandle(granted, is_thread=False)
        raise ArgumentsRefused([("", "it is run by the provider of a model that has it; this model cannot call it")])


def web_search(
    *, max_uses: int | None = None, allowed_domains: Sequence[str] = (), blocked_domains: Sequence[str] = ()
) -> WebSearch:
    """The web search of the model's provider (Anthropic, OpenAI, Gemini), for `Agent(tools=[web_search()])`.

    `max_uses`: how often it may search in one reply. `allowed_domains` or `blocked_domains`: where it may look. An
    option that a provider does not take is left out, and the run warns of it. Sources stand in `RunResult.citations`.

    Where the policy asks, the model has to ask first and says what it would search for. After an approval the provider
    searches by itself until the turn ends.
    """
    if allowed_domains and blocked_domains:
        raise InvalidConfig("web_search has allowed_domains and blocked_domains", "Give one of them.")
    if max_uses is not None and max_uses < 1:
        raise InvalidConfig(f"web_search(max_uses={max_uses!r})", "Give a whole number, at least 1.")
    for each in (allowed_domains, blocked_domains):
        if isinstance(each, str):
            raise InvalidConfig(f"web_search has the domains {each!r}", "Give a list: ['example.com'].")
    return WebSearch(
        ServerTool(max_uses=max_uses, allowed_domains=tuple(allowed_domains), blocked_domains=tuple(blocked_domains))
    )
