"""One tiny live call to a model: does it answer, how fast, at what cost, and if not, what is to be done.

Sent once, as a run would send it, and stored nowhere. What goes wrong is part of the answer, not an error.
"""

import asyncio
import time

from wakeful.contracts.catalogue import ModelProbe, ProviderState
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import History, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import Reply
from wakeful.ports import Model, ModelRequest, Pricing

PROMPT = "Reply with the single word: hello"
MAX_TOKENS = 64
"""Enough for a word. A model that thinks may spend them all on thoughts, and has answered all the same."""
TIMEOUT = 30.0
MAX_SAID = 200


async def probe(
    model: Model, provider: ProviderState, *, pricing: Pricing | None = None, timeout: float = TIMEOUT
) -> ModelProbe:
    """Ask the model for one word. Cancelling it closes the connection."""
    began = time.perf_counter()
    try:
        async with asyncio.timeout(timeout):
            reply = await ask_for_a_word(model)
    except TimeoutError:
        late = ModelFailure(f"no answer within {timeout:g} s", kind="timeout", stage="body")
        return _lost(model, provider, late, began)
    except ModelFailure as failure:
        return _lost(model, provider, failure, began)
    except Exception as bug:  # as in a run: a provider that breaks is a lost attempt
        broken = ModelFailure(f"{type(bug).__name__}: {bug}", kind="unknown", stage="decode")
        return _lost(model, provider, broken, began)
    cost = None
    if pricing is not None and reply.usage is not None:
        tier = reply.request_metadata.get("service_tier")
        asked_at = time.time_ns() // 1000
        cost = pricing.spent(model, reply.usage, tier=tier if isinstance(tier, str) else None, at=asked_at)
    request_id = reply.request_metadata.get("request_id")
    return ModelProbe(
        model_ref=model.ref,
        ok=True,
        duration_ms=_since(began),
        said=reply.item.text[:MAX_SAID],
        stop_reason=reply.stop_reason,
        usage=reply.usage,
        cost=cost.amount if cost is not None else None,
        currency=cost.currency if cost is not None else None,
        price_list=cost.price_list if cost is not None else None,
        price_date=cost.price_date if cost is not None else None,
        request_id=request_id if isinstance(request_id, str) else None,
    )


def advice(failure: ModelFailure, provider: ProviderState) -> str:
    """What a person can do about a lost call."""
    name, variable = provider.name, provider.key_variable
    match failure.kind:
        case "auth_error" if variable is None:
            return f'Name the variable that holds its key: [providers.{name}] key_env = "..." in wakeful.toml.'
        case "auth_error":
            return f"Look at the key in {variable}: is it whole, of this provider, and allowed to use this model?"
        case "quota_exhausted":
            return "Add credit or raise the limit at the provider, or use another model: wakeful models list"
        case "rate_limited" | "overloaded":
            wait = f"{failure.retry_after:g} s" if failure.retry_after is not None else "a little"
            return f"Wait {wait} and try again. A run does that by itself, up to {provider.retry.max_attempts} times."
        case "connection" | "timeout" | "stream_interrupted":
            return f"The address {provider.endpoint} comes from: {provider.endpoint_source or 'code'}. Is it right?"
        case "contract_error" if failure.status == 404 or "knows no model" in failure.message:
            return f"Which models are described here: wakeful models list --provider {name}"
        case "context_length_exceeded":
            return "Even a few words are too many for this model as it is served: raise its context window there."
        case "invalid_response" | "contract_error" | "unsupported_transport":
            return f"Does {provider.endpoint} speak {provider.transport}? Say otherwise: [providers.{name}] transport"
        case _:
            return ""


async def ask_for_a_word(model: Model) -> Reply:
    """Ask once. Raises ModelFailure."""
    request = ModelRequest(
        instructions="",
        history=History([UserItem(parts=(Text(PROMPT),))]),
        tools=(),
        turn_id="probe",
        step=1,
        attempt=1,
        answered=0,
        settings=ModelSettings(max_tokens=MAX_TOKENS),
    )
    reply: Reply | None = None
    async for piece in model.respond(request):
        if isinstance(piece, Reply):
            reply = piece
    if reply is None:
        raise ModelFailure("the stream ended without its end", kind="stream_interrupted", stage="body")
    return reply


def _lost(model: Model, provider: ProviderState, failure: ModelFailure, began: float) -> ModelProbe:
    return ModelProbe(
        model_ref=model.ref,
        ok=False,
        duration_ms=_since(began),
        usage=failure.usage,
        failure_kind=failure.kind,
        stage=failure.stage,
        http_status=failure.status,
        retry_after=failure.retry_after,
        message=failure.message,
        advice=advice(failure, provider),
    )


def _since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)
