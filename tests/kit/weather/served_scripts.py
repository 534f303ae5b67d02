"""A scripted model under weather: its own script says what is answered, and a provider server says it over a wire.

The step is found here, where the script is, and goes to the server in a header of the request; what comes back has the
sizes, prices, limits and troubles of a vendor's. The name of the model stays, so that a program prints what it prints.
Rule: nothing is loaded before the program itself loads scripted models.
"""

import base64
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, NamedTuple

VARIABLE = "PROVIDER_SERVER"
"""Where the server is, and which of the models answers: `http://127.0.0.1:8089#2`."""
WATCHED = "wakeful.providers.scripted.model"


class ServedModel(NamedTuple):
    """A model that a script is given in the name of."""

    provider: str
    name: str
    wire: str


GPT = ServedModel("openai", "gpt-5.5", "openai_responses")
MODELS = (
    GPT,
    ServedModel("openai", "gpt-5.5", "openai_chat"),
    ServedModel("anthropic", "claude-opus-4-7", "anthropic"),
    ServedModel("anthropic", "claude-haiku-4-5", "anthropic"),
    ServedModel("gemini", "gemini-3.8-flash", "gemini"),
)


class _Watch(MetaPathFinder):
    """Finds the module as it is found anyway, and has it served once it was loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == WATCHED else None
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_serve(module: ModuleType) -> None:
                load(module)
                serve(module.ScriptedModel)

            spec.loader.exec_module = load_and_serve  # type: ignore[method-assign]
        return spec


def watch() -> None:
    """Have scripted models served as soon as there are any."""
    if WATCHED in sys.modules:
        serve(sys.modules[WATCHED].ScriptedModel)
    else:
        sys.meta_path.insert(0, _Watch())


def serve(scripted: Any) -> None:
    """Scripted models of this process are asked over a wire from now on."""
    if hasattr(scripted, "respond_here"):
        return
    scripted.respond_here = scripted.respond
    scripted.respond = _respond
    scripted.price = property(lambda self: _wire_model(self).price)
    scripted.__getattr__ = _of_the_wire


def _of_the_wire(model: Any, name: str) -> Any:
    """What a vendor's model can be asked beside its answers: its limits, its profile, and what it refuses."""
    if name in ("most_output", "profile", "untaken", "redacted"):
        return getattr(_wire_model(model), name)
    raise AttributeError(name)


async def _respond(model: Any, request: Any) -> AsyncIterator[Any]:
    step = model.step_for(request) if model._function is None else await model._asked(model._function, request)
    if not is_plain(step, request.tool_choice):
        async for each in model.respond_here(request):
            yield each
        return
    told = base64.b64encode(json.dumps(as_step(step.reply)).encode()).decode()
    headers = {**(request.settings.extra_headers or {}), "x-provider-script": told}
    settings = request.settings.model_copy(update={"extra_headers": headers})
    from dataclasses import replace

    async for each in _wire_model(model).respond(replace(request, settings=settings)):
        yield each


def is_plain(step: Any, choice: Any) -> bool:
    """Whether a vendor could have answered so: steps that fail, wait, call where nothing may be called or say what only
    a script can stay as they are."""
    reply = step.reply
    if (
        reply is None
        or (choice == "none" and reply.item.calls)
        or not step.is_plain
        or step.delta_delay
        or reply.request_metadata
        or not reply.item.parts
    ):
        return False
    kinds = {type(part).__name__ for part in reply.item.parts}
    readable = all(call.raw_arguments is None for call in reply.item.calls)
    return kinds <= {"Text", "CallPart"} and readable and reply.stop_reason in ("end", "tool_calls")


def as_step(reply: Any) -> dict[str, Any]:
    text = reply.item.text
    calls = [{"name": each.name, "arguments": each.arguments, "id": each.call_id} for each in reply.item.calls]
    return {**({"text": text} if text or not calls else {}), "calls": calls}


def _wire_model(scripted: Any) -> Any:
    found = scripted.__dict__.get("_served")
    if found is None:
        found = scripted.__dict__["_served"] = _made()
    return found


def _made() -> Any:
    from dataclasses import replace

    from wakeful.providers import AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses
    from wakeful.providers.endpoints import BUILT_IN
    from wakeful.providers.price_list import price_of

    url, _, number = os.environ[VARIABLE].partition("#")
    provider, name, wire = MODELS[int(number)]
    makers: dict[str, Any] = {
        "openai_chat": OpenAIChat,
        "openai_responses": OpenAIResponses,
        "anthropic": AnthropicMessages,
        "gemini": Gemini,
    }
    address = {"openai": f"{url}/v1", "anthropic": url, "gemini": f"{url}/v1beta"}[provider]
    listed = price_of(f"{provider}:{name}")
    assert listed is not None
    there = replace(BUILT_IN[provider], base_url=address, prices={name: listed}, source="weather")
    return makers[wire](name, endpoint=there, api_key="test")
