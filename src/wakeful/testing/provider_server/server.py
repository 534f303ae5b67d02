"""A provider on this machine, for tests: OpenAI's two wire formats, Anthropic's and Gemini's, with weather.

    with ProviderServer(["Hello."]) as server:
        server.weather.next("429 after=0.1", "cut")
        result = run_sync(Agent("greeter", server.model("openai:gpt-5.5")), "Say hello.")

It runs in threads of its own, so a program, a command in another process and an event loop can ask it alike.
"""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from wakeful.contracts.models import TokenUsage
from wakeful.errors import InvalidConfig
from wakeful.ports import Model
from wakeful.testing.provider_server.answers import WireAnswer, fitted, tokens_of
from wakeful.testing.provider_server.connections import Connections, RequestBytes, WireDelivery
from wakeful.testing.provider_server.responses import response_id
from wakeful.testing.provider_server.scripts import Replies, Script
from wakeful.testing.provider_server.vendor_errors import ERRORS, HTML, JSON, PAGE, error_of, refusal
from wakeful.testing.provider_server.weather import FINE, Trouble, Weather
from wakeful.testing.provider_server.wire_requests import KeptConversations, RequestRefused, WireName, WireRequest
from wakeful.testing.provider_server.wire_table import WIRES

if TYPE_CHECKING:
    from wakeful.providers.prices import Price
    from wakeful.providers.wire.http import Timeouts

SELLERS: Mapping[WireName, str] = {
    "openai_chat": "openai",
    "openai_responses": "openai",
    "anthropic": "anthropic",
    "gemini": "gemini",
}
KEY_VARIABLES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY"}
_BASES = {"openai": "/v1", "anthropic": "", "gemini": "/v1beta"}
_SECRET = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "proxy-authorization"})
EVENTS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_SHAPES: Mapping[str, Any] = {
    "float": float,
    "text": str,
    "huge": lambda _: 2**63,
    "zero": lambda _: 0,
    "null": lambda _: None,
}


@dataclass(slots=True)
class ServedRequest:
    """One request that the server took, and what became of it."""

    number: int
    at: float
    """When, in seconds since 1970."""
    path: str
    headers: Mapping[str, str]
    """In lower case, without keys."""
    body: Any
    wire: WireName | None = None
    model: str = ""
    weather: str = "ok"
    status: int | None = None
    """None: it got no answer."""
    said: WireAnswer | None = None
    """The answer that was begun."""
    usage: TokenUsage | None = None
    cost: Decimal | None = Decimal(0)
    """Dollars at list price, also where the answer was cut. None: no list has the model."""
    delivered: bool = False
    """Everything that was to be sent was taken by the client's side of the connection."""


class ProviderServer:
    """Where it listens, what it was asked, what that costs, and its weather."""

    def __init__(
        self,
        script: Script = None,
        *,
        port: int = 0,
        key: str | None = None,
        weather: str | None = None,
        prices: "Mapping[str, Price] | None" = None,
    ) -> None:
        """`script` is what it answers; without one it says "All right." to a prompt that does not direct it.

        `key`: a request with another one is refused. `prices`: a `Price` by model, where the list has none or another.
        """
        self.weather = Weather()
        if weather:
            self.weather.schedule(weather)
        self.requests: list[ServedRequest] = []
        self.key = key
        self._wanted_port = port
        self._prices = dict(prices or {})
        self._replies = Replies(script)
        self._kept = KeptConversations()
        self._lock = threading.Lock()
        self._connections: Connections | None = None

    # --- its life -------------------------------------------------------------------------------------------------

    def __enter__(self) -> "ProviderServer":
        self._connections = Connections(self._wanted_port, self._answer, self.weather.nobody_listens)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connections is not None:
            self._connections.close()

    async def __aenter__(self) -> "ProviderServer":
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.__exit__, kind, error, trace)

    # --- how to reach it --------------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        if self._connections is None:
            raise InvalidConfig(
                "the provider server does not run", "Use it in a with block: with ProviderServer() as server"
            )
        return self._connections.port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def base_url(self, provider: str) -> str:
        """The address to give for `openai`, `anthropic` or `gemini`."""
        if provider not in _BASES:
            raise InvalidConfig(
                f"the provider server does not speak for {provider!r}", f"It does for: {', '.join(_BASES)}."
            )
        return f"{self.url}{_BASES[provider]}"

    def environment(self) -> dict[str, str]:
        """Variables with which a program or a command asks this server instead of the vendors."""
        addresses = {f"{provider.upper()}_BASE_URL": self.base_url(provider) for provider in _BASES}
        return {**addresses, **dict.fromkeys(KEY_VARIABLES.values(), self.key or "test")}

    def settings(self, *models: str) -> str:
        """Lines for wakeful.toml that give these models (`openai:gpt-5.5`) their list price.

        Without them a server on this machine costs nothing.
        """
        lines: list[str] = []
        for ref in models:
            provider, _, name = ref.partition(":")
            price = self._listed(provider, name)
            lines.append(f'[providers.{provider}.prices."{name}"]')
            amounts = {name: getattr(price, name) for name in ("input", "output", "cached_input", "cache_write")}
            lines += [f'{name} = "{amount}"' for name, amount in amounts.items() if amount is not None]
        return "\n".join([*lines, ""])

    def model(
        self, ref: str, *, wire: Literal["openai_chat"] | None = None, timeouts: "Timeouts | None" = None
    ) -> Model:
        """`openai:gpt-5.5` and the like as a model that asks this server, at its list price.

        `openai` speaks Responses, or Chat Completions with `wire="openai_chat"`.
        """
        from wakeful.providers import AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses
        from wakeful.providers.endpoints import BUILT_IN
        from wakeful.providers.prices import ListedPrice

        provider, _, name = ref.partition(":")
        address = self.base_url(provider)
        listed = ListedPrice(self._listed(provider, name), "list price")
        there = replace(BUILT_IN[provider], base_url=address, prices={name: listed}, source="provider_server")
        makers = {"openai": OpenAIResponses, "anthropic": AnthropicMessages, "gemini": Gemini}
        make: Any = OpenAIChat if wire == "openai_chat" else makers[provider]
        made: Model = make(name, endpoint=there, api_key=self.key or "test", timeouts=timeouts)
        return made

    def _listed(self, provider: str, name: str) -> "Price":
        price = self._price(provider, name)
        if price is None:
            raise InvalidConfig(
                f"no list has a price for {provider}:{name}",
                f"Give it one: ProviderServer(prices={{{name!r}: Price(Decimal(1), Decimal(5))}}).",
            )
        return price

    def _price(self, provider: str, name: str) -> "Price | None":
        from wakeful.providers.price_list import price_of

        if name in self._prices:
            return self._prices[name]
        listed = price_of(f"{provider}:{name}")
        return None if listed is None else listed.price

    # --- what it was asked ------------------------------------------------------------------------------------------

    @property
    def spent(self) -> Decimal:
        """Dollars that the vendors bill at list price for every request so far, those whose answer was cut too."""
        with self._lock:
            return sum((request.cost or Decimal(0) for request in self.requests), Decimal(0))

    # --- one request ------------------------------------------------------------------------------------------------

    def _answer(self, incoming: RequestBytes) -> WireDelivery:
        headers = {name.lower(): value for name, value in incoming.headers.items()}
        shown = {name: "[secret]" if name in _SECRET else value for name, value in headers.items()}
        with self._lock:
            number = len(self.requests) + 1
            record = ServedRequest(number, time.time(), _without_key(incoming.path), shown, None)
            self.requests.append(record)
        try:
            delivery = self._delivery(record, incoming, headers)
        except RequestRefused as refused:
            delivery = self._refuse(record, refused)
        record.status = delivery.status
        return delivery

    def _delivery(self, record: ServedRequest, incoming: RequestBytes, headers: Mapping[str, str]) -> WireDelivery:
        path = incoming.path.partition("?")[0]
        wire = record.wire = _wire_of(path)
        if wire is None or incoming.method != "POST":
            raise RequestRefused(f"Invalid URL ({incoming.method} {path})", status=404)
        try:
            body = record.body = json.loads(incoming.body)
        except ValueError:
            raise RequestRefused("We could not parse the JSON body of your request.") from None
        if not isinstance(body, dict):
            raise RequestRefused("The body of your request is not a JSON object.")
        if self.key is not None and _key_in(headers, incoming.path) != self.key:
            return self._error(record, Trouble("401"), wire, str(body.get("model", "")), 0)
        announced = self.weather.take(record.number)
        asked = WIRES[wire].read(path, body, self._kept)
        record.model = asked.model
        said, struck = self._replies.reply(asked, headers) if announced.word not in ERRORS else (WireAnswer(), FINE)
        trouble = announced if announced != FINE else struck
        record.weather = str(trouble)
        if trouble.word in ERRORS:
            return self._error(record, trouble, wire, asked.model, tokens_of(asked.characters))
        if trouble.word in ("reset", "refused", "hang"):
            return WireDelivery(None, trouble=trouble, record=record)
        if trouble.word == "html":
            return WireDelivery(200, dict(HTML), [PAGE], record=record)
        said = fitted(_changed(said, trouble), asked)
        self._bill(record, said, SELLERS[wire], asked.model)
        return self._written(record, _reported(said, trouble), asked, trouble)

    def _written(self, record: ServedRequest, said: WireAnswer, asked: WireRequest, trouble: Trouble) -> WireDelivery:
        form, number = WIRES[asked.wire], record.number
        if asked.wire == "openai_responses" and asked.body.get("store", True):
            told = asked.turns[-1:] and (*asked.turns, asked.turns[-1]._replace(role="assistant", text=said.text))
            self._kept.keep(response_id(number), told)
        if not asked.streams or trouble.word == "half":
            whole = json.dumps(form.whole(said, asked, number), ensure_ascii=False).encode()
            parts = [whole[: len(whole) // 2]] if trouble.word == "half" else [whole]
            return WireDelivery(200, dict(JSON), parts, trouble=trouble, record=record)
        events = form.events(said, asked, number)
        if asked.wire == "gemini" and "alt=sse" not in record.path:
            whole = b"[" + b",\n".join(event[6:].strip() for event in events) + b"]"
            return WireDelivery(200, dict(JSON), [whole], trouble=trouble, record=record)
        return WireDelivery(
            200,
            dict(EVENTS),
            events,
            chunked=True,
            before_usage=form.before_usage(events),
            trouble=trouble,
            record=record,
        )

    def _error(self, record: ServedRequest, trouble: Trouble, wire: WireName, model: str, tokens: int) -> WireDelivery:
        answer = error_of(trouble, wire, model, tokens)
        record.weather = str(trouble)
        return WireDelivery(answer.status, answer.headers, [answer.body], record=record)

    def _refuse(self, record: ServedRequest, refused: RequestRefused) -> WireDelivery:
        answer = refusal(refused, record.wire or "openai_chat")
        return WireDelivery(answer.status, answer.headers, [answer.body], record=record)

    def _bill(self, record: ServedRequest, said: WireAnswer, seller: str, model: str) -> None:
        from wakeful.providers.prices import amount_of

        record.said, record.usage = said, said.used
        price = self._price(seller, model)
        record.cost = None if price is None else amount_of(price, said.used)


def _wire_of(path: str) -> WireName | None:
    if path.endswith("/chat/completions"):
        return "openai_chat"
    if path.endswith("/responses"):
        return "openai_responses"
    if path.endswith("/messages"):
        return "anthropic"
    return "gemini" if path.endswith((":generateContent", ":streamGenerateContent")) else None


def _key_in(headers: Mapping[str, str], path: str) -> str:
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    named = (headers.get(name) for name in ("x-api-key", "api-key", "x-goog-api-key"))
    in_query = path.partition("key=")[2].partition("&")[0]
    return next((key for key in (bearer, *named, in_query) if key), "")


def _without_key(path: str) -> str:
    before, sign, after = path.partition("key=")
    return f"{before}{sign}[secret]{after[len(after.partition('&')[0]) :]}" if sign else path


def _changed(said: WireAnswer, trouble: Trouble) -> WireAnswer:
    """What is said in this weather."""
    if trouble.word == "empty":
        return WireAnswer()
    if trouble.word == "filtered":
        return replace(said, calls=(), finish="filtered", text=said.text[: len(said.text) // 2])
    if trouble.word == "refusal":
        return WireAnswer(text="I can't help with that.", finish="refused")
    return said


def _reported(said: WireAnswer, trouble: Trouble) -> WireAnswer:
    """How the counts are written in this weather. Billed are the right ones."""
    shape = trouble.text("as")
    if trouble.word != "usage" or shape is None:
        return said
    return replace(said, reports_usage=False) if shape == "missing" else replace(said, report=_SHAPES[shape])
