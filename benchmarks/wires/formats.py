"""The three wire formats: how wakeful encodes and decodes each, and how the vendor's SDK decodes the same bytes.

The SDK's stream classes are given a response directly: what its client does around a request is not in the figures.
Nothing of a library is imported before its function is called, so that a process loads only what it measures.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from wires import samples

MODEL = "bench-1"
PATH = "http://127.0.0.1/v1"


@dataclass(frozen=True)
class Format:
    """One format. `events` reads a response event by event, `message` puts the whole answer together as well."""

    name: str
    vendor: str
    folders: tuple[str, ...]
    stream: Callable[[int], bytes]
    encoder: Callable[[Any], Any]
    """Our encoder for a set of tools."""
    decoder: Callable[[], Callable[[Any], Any]]
    events: Callable[[], Callable[[Any], Any]]
    message: Callable[[], Callable[[Any], Any]]
    live: Callable[[str], Any]
    """Our model at an address."""
    sdk_live: Callable[[str], Callable[[], Any]]
    """A function that asks the server at an address through the SDK and returns the text it streamed."""


# ---- wakeful


def _reading(make: Callable[[], Any]) -> Callable[[Any], Any]:
    from wakeful.providers.wire.sse import SseParser

    def decode(response: Any) -> Any:
        parser, decoder = SseParser(), make()
        for piece in response.iter_raw():  # as the transport reads an answer that is not compressed
            for event in parser.feed(piece):
                decoder.feed(event)
        return decoder.finish()

    return decode


def _chat_decoder() -> Callable[[Any], Any]:
    from wakeful.providers.openai_chat.decode import ChatDecoder
    from wakeful.providers.wire.names import WireNames

    names = WireNames(())  # one for a set of tools, as the encoder has it
    return _reading(lambda: ChatDecoder(names))


def _responses_decoder() -> Callable[[Any], Any]:
    from wakeful.providers.openai_responses.decode import ResponsesDecoder
    from wakeful.providers.wire.names import WireNames

    names = WireNames(())  # one for a set of tools, as the encoder has it
    return _reading(lambda: ResponsesDecoder(names))


def _anthropic_decoder() -> Callable[[Any], Any]:
    from wakeful.providers.anthropic.decode import AnthropicDecoder
    from wakeful.providers.wire.names import WireNames

    names = WireNames(())  # one for a set of tools, as the encoder has it
    return _reading(lambda: AnthropicDecoder(names))


def _chat_encoder(tools: Any) -> Any:
    from wakeful.providers.openai_chat.encode import ChatEncoder
    from wakeful.providers.profiles import profile_of
    from wakeful.providers.wire.names import WireNames

    return ChatEncoder("gpt-5.5", profile_of("gpt-5.5"), WireNames(tools))


def _responses_encoder(tools: Any) -> Any:
    from wakeful.providers.openai_responses.encode import ResponsesEncoder
    from wakeful.providers.profiles import profile_of
    from wakeful.providers.wire.names import WireNames

    return ResponsesEncoder("gpt-5.5", profile_of("gpt-5.5"), WireNames(tools))


def _anthropic_encoder(tools: Any) -> Any:
    from wakeful.providers.anthropic.encode import AnthropicEncoder
    from wakeful.providers.profiles import profile_of

    return AnthropicEncoder("claude-opus-4-7", profile_of("claude-opus-4-7"), tools)


def _chat_live(address: str) -> Any:
    from wakeful.providers.openai_chat import OpenAIChat

    return OpenAIChat(MODEL, base_url=f"{address}/v1", api_key="none")


def _responses_live(address: str) -> Any:
    from wakeful.providers.openai_responses import OpenAIResponses

    return OpenAIResponses(MODEL, base_url=f"{address}/v1", api_key="none")


def _anthropic_live(address: str) -> Any:
    from wakeful.providers.anthropic import AnthropicMessages

    return AnthropicMessages(MODEL, base_url=address, api_key="none")


# ---- the SDKs


def _openai_events(kind: Any) -> Callable[[Any], Any]:
    from openai import OpenAI, Stream

    client = OpenAI(api_key="none", base_url=PATH)
    return lambda response: Stream(cast_to=kind, response=response, client=client)


def _chat_events() -> Callable[[Any], Any]:
    from openai.types.chat import ChatCompletionChunk

    stream = _openai_events(ChatCompletionChunk)
    return lambda response: _drained(stream(response))


def _chat_message() -> Callable[[Any], Any]:
    from openai.lib.streaming.chat import ChatCompletionStreamState
    from openai.types.chat import ChatCompletionChunk

    stream = _openai_events(ChatCompletionChunk)

    def read(response: Any) -> Any:
        state = ChatCompletionStreamState()
        for chunk in stream(response):
            state.handle_chunk(chunk)
        return state.get_final_completion()

    return read


def _responses_events() -> Callable[[Any], Any]:
    from openai.types.responses import ResponseStreamEvent

    stream = _openai_events(ResponseStreamEvent)
    return lambda response: _drained(stream(response))


def _responses_message() -> Callable[[Any], Any]:
    from openai import omit
    from openai.lib.streaming.responses import ResponseStream
    from openai.types.responses import ResponseStreamEvent

    stream = _openai_events(ResponseStreamEvent)

    def read(response: Any) -> Any:
        raw = stream(response)
        whole = ResponseStream(raw_stream=raw, text_format=omit, input_tools=omit, starting_after=None)
        return whole.get_final_response()

    return read


def _anthropic_stream() -> Callable[[Any], Any]:
    from anthropic import Anthropic, Stream
    from anthropic.types import RawMessageStreamEvent

    client = Anthropic(api_key="none", base_url=PATH)
    return lambda response: Stream(cast_to=RawMessageStreamEvent, response=response, client=client)


def _anthropic_events() -> Callable[[Any], Any]:
    stream = _anthropic_stream()
    return lambda response: _drained(stream(response))


def _anthropic_message() -> Callable[[Any], Any]:
    from anthropic import NOT_GIVEN, MessageStream

    stream = _anthropic_stream()
    return lambda response: MessageStream(stream(response), NOT_GIVEN).get_final_message()


def _drained(stream: Iterable[Any]) -> None:
    for _ in stream:
        pass


def _chat_sdk(address: str) -> Callable[[], Any]:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="none", base_url=f"{address}/v1", max_retries=0)

    async def ask() -> str:
        words: list[str] = []
        asked = [{"role": "user", "content": "go"}]
        usage = {"include_usage": True}
        async for chunk in await client.chat.completions.create(
            model=MODEL, messages=asked, stream=True, stream_options=usage
        ):
            words += [choice.delta.content for choice in chunk.choices if choice.delta.content]
        return "".join(words)

    return ask


def _responses_sdk(address: str) -> Callable[[], Any]:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="none", base_url=f"{address}/v1", max_retries=0)

    async def ask() -> str:
        said = ""
        async for event in await client.responses.create(model=MODEL, input="go", stream=True):
            if event.type == "response.completed":
                said = event.response.output_text
        return said

    return ask


def _anthropic_sdk(address: str) -> Callable[[], Any]:
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(api_key="none", base_url=address, max_retries=0)

    async def ask() -> str:
        asked = [{"role": "user", "content": "go"}]
        events = await client.messages.create(model=MODEL, messages=asked, max_tokens=4096, stream=True)
        return "".join([event.delta.text async for event in events if event.type == "content_block_delta"])

    return ask


FORMATS = {
    made.name: made
    for made in (
        Format(
            "responses",
            "openai",
            ("openai-responses", "openai-responses-cache"),
            samples.responses,
            _responses_encoder,
            _responses_decoder,
            _responses_events,
            _responses_message,
            _responses_live,
            _responses_sdk,
        ),
        Format(
            "chat",
            "openai",
            ("openai-chat",),
            samples.chat,
            _chat_encoder,
            _chat_decoder,
            _chat_events,
            _chat_message,
            _chat_live,
            _chat_sdk,
        ),
        Format(
            "anthropic",
            "anthropic",
            ("anthropic-messages", "anthropic-messages-cache"),
            samples.anthropic,
            _anthropic_encoder,
            _anthropic_decoder,
            _anthropic_events,
            _anthropic_message,
            _anthropic_live,
            _anthropic_sdk,
        ),
    )
}
