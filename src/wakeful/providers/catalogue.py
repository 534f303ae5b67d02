"""The tables of this package as one answer: which providers there are, what is missing to use them, which models.

Rule: of a key nothing is said but the variable that holds it, and of an address nothing that may be secret.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from wakeful.contracts.catalogue import (
    Capabilities,
    Catalogue,
    KeyState,
    ListPrice,
    ModelPage,
    ModelState,
    ProviderState,
    RetryPolicy,
)
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.models import RETRYABLE
from wakeful.decisions import retries
from wakeful.providers.endpoint_settings import provider_settings
from wakeful.providers.endpoints import BUILT_IN, TRANSPORTS, Endpoint, endpoints, resolve, split
from wakeful.providers.price_list import context_window, list_date, list_name, model_names, price_of
from wakeful.providers.prices import ListedPrice
from wakeful.providers.profiles import UNKNOWN, ModelProfile, known_models, named_profile, profile_of
from wakeful.providers.wire.redaction import public_url
from wakeful.settings.owner_file import settings_path
from wakeful.views.cost import LOCAL_LIST

SCRIPTED = "scripted"
RETRY = RetryPolicy(
    max_attempts=retries.MAX_ATTEMPTS,
    first_backoff_ms=retries.FIRST_BACKOFF_MS,
    longest_backoff_ms=retries.LONGEST_WAIT_MS,
    longest_retry_after_ms=retries.LONGEST_ASKED_MS,
    retried=tuple(sorted(RETRYABLE)),
)
_SCRIPTED_STATE = ProviderState(name=SCRIPTED, status="available", note="needs no key and no network", retry=RETRY)


def catalogue(environ: Mapping[str, str] | None = None) -> Catalogue:
    """Everything there is. Raises InvalidConfig when the settings file cannot be read."""
    environ = os.environ if environ is None else environ
    known = endpoints(environ=environ)
    return Catalogue(
        settings_file=str(settings_path(environ)),
        price_list=list_name(),
        prices_as_of=_day(list_date()),
        providers=provider_states(environ),
        models=tuple(_model(ref, *split(ref), known.get(split(ref)[0])) for ref in _references(known)),
    )


def provider_states(environ: Mapping[str, str] | None = None) -> tuple[ProviderState, ...]:
    """Every provider, built in or configured. Raises InvalidConfig when the settings file cannot be read."""
    environ = os.environ if environ is None else environ
    _, configured = provider_settings(environ)
    found = [_SCRIPTED_STATE]
    for name, there in endpoints(environ=environ).items():
        if isinstance(there, InvalidConfig):
            found.append(_broken(name, there, touched=name in configured))
        else:
            found.append(_state(there, environ))
    return tuple(found)


def model_page(reference: str, environ: Mapping[str, str] | None = None) -> ModelPage:
    """One model. Raises UnknownProvider or InvalidConfig, as asking it would."""
    environ = os.environ if environ is None else environ
    if split(reference)[0] == SCRIPTED:
        state = ModelState(ref=":".join(split(reference)), provider=SCRIPTED, declared=True)
        return ModelPage(model=state, provider=_SCRIPTED_STATE)
    there, name = resolve(reference, environ=environ)
    page = ModelPage(model=_model(f"{there.name}:{name}", there.name, name, there), provider=_state(there, environ))
    known = (*there.prices, *model_names(there.name))
    priced = page.model.price is not None and page.model.price.price_list != LOCAL_LIST
    if name in known or priced:
        return page
    near = get_close_matches(name, known, n=3, cutoff=0.6)
    return page.model_copy(update={"near": tuple(f"{there.name}:{each}" for each in near)})


def key_variables(environ: Mapping[str, str] | None = None) -> frozenset[str]:
    """Every variable that may hold a key: what no child process needs to see."""
    found = {variable for one in BUILT_IN.values() for variable in one.key_env}
    try:
        for there in endpoints(environ=environ).values():
            found.update(() if isinstance(there, InvalidConfig) else there.key_env)
    except InvalidConfig:
        pass  # a file that nobody can read names no variables
    return frozenset(found)


# --- providers --------------------------------------------------------------------------------------------------------


def _state(there: Endpoint, environ: Mapping[str, str]) -> ProviderState:
    facts: dict[str, Any] = {
        "name": there.name,
        "transport": there.transport,
        "endpoint": public_url(there.base_url),
        "endpoint_source": there.source,
        "api_version": there.api_version,
        "retry": RETRY,
    }
    try:
        UNKNOWN.with_settings(there.profile, f"[providers.{there.name}.profile]")
    except InvalidConfig as problem:
        return ProviderState(status="misconfigured", note=_words(problem), **facts)
    if there.wire is None:
        said = f"transport {there.transport!r} is not supported; supported are: {', '.join(TRANSPORTS)}"
        return ProviderState(status="misconfigured", note=said, **facts)
    try:
        secret, variable = there.key(environ)
    except InvalidConfig as problem:
        first = next(iter(there.key_env), None)
        return ProviderState(status="unavailable", note=_words(problem), key="missing", key_variable=first, **facts)
    key: KeyState = "found" if secret is not None else "not_needed"
    return ProviderState(status="available", key=key, key_variable=variable, **facts)


def _broken(name: str, problem: InvalidConfig, *, touched: bool) -> ProviderState:
    """One without a usable address. Where none is built in and nobody has configured one, nothing is wrong."""
    known = BUILT_IN.get(name)
    waits = known is not None and not known.base_url and not touched
    return ProviderState(
        name=name,
        status="unavailable" if waits else "misconfigured",
        note=_words(problem),
        transport=known.transport if known else "",
        retry=RETRY,
    )


def _words(problem: InvalidConfig) -> str:
    return f"{problem.message}. {problem.hint}" if problem.hint else problem.message


# --- models -----------------------------------------------------------------------------------------------------------


def _references(known: Mapping[str, Endpoint | InvalidConfig]) -> list[str]:
    """Models that a table knows together with who offers them. Other providers have whatever their server has."""
    found: dict[str, None] = {}
    for there in known.values():
        if isinstance(there, Endpoint):
            found.update(dict.fromkeys(f"{there.name}:{name}" for name in there.prices))
    for provider, wire in (("openai", "openai_responses"), ("anthropic", "anthropic"), ("gemini", "gemini")):
        found.update(dict.fromkeys(f"{provider}:{name}" for name in known_models(wire)))
    for provider in BUILT_IN:
        own = [name for name in known_models("openai_chat") if name.startswith(f"{provider}-")]
        found.update(dict.fromkeys(f"{provider}:{name}" for name in own))
    return sorted(found)


def _profile_settings(there: Endpoint | InvalidConfig | None) -> Mapping[str, Any]:
    """What the owner's file says about a provider's models; nothing when it says it wrongly."""
    if not isinstance(there, Endpoint):
        return {}
    try:
        UNKNOWN.with_settings(there.profile)
    except InvalidConfig:
        return {}
    return there.profile


def _model(ref: str, provider: str, name: str, there: Endpoint | InvalidConfig | None) -> ModelState:
    settings = _profile_settings(there)
    own = there.price(name) if isinstance(there, Endpoint) else None
    price = price_of(ref, own)
    if price is not None and own is None and isinstance(there, Endpoint) and there.asked_at:
        price = price.at(there.asked_at)
    profile = profile_of(name, settings, where=f"[providers.{provider}.profile]")
    if profile.context_window is None:
        profile = replace(profile, context_window=context_window(provider, name))
    return ModelState(
        ref=ref,
        provider=provider,
        declared=named_profile(name) is not None,
        capabilities=_capabilities(profile),
        price=_listed(price) if price is not None else None,
    )


def _capabilities(profile: ModelProfile) -> Capabilities:
    return Capabilities(
        tools=profile.tools,
        parallel_tool_calls=profile.parallel_tool_calls,
        forced_tool_choice=profile.forced_tool_choice,
        images=profile.images,
        files=profile.files,
        audio=profile.audio,
        video=profile.video,
        structured_output=profile.structured_output,
        schema_beside_tools=profile.schema_beside_tools,
        reasoning=bool(profile.reasoning),
        think_tags=profile.think_tags,
        effort=profile.effort,
        efforts=tuple(sorted(profile.efforts)),
        thinking_off=profile.thinking_off,
        sampling=tuple(sorted(profile.sampling)),
        context_window=profile.context_window,
        max_output=profile.max_output,
        prompt=tuple(sorted(profile.prompt)),
    )


def _listed(listed: ListedPrice) -> ListPrice:
    price = listed.price
    start, long = price.beyond[0] if price.beyond else (None, None)
    return ListPrice(
        input=f"{price.input:f}",
        output=f"{price.output:f}",
        cached_input=_amount(price.cached_input),
        cache_write=_amount(price.cache_write),
        long_from=start,
        long_input=_amount(long.input) if long is not None else None,
        long_output=_amount(long.output) if long is not None else None,
        price_list=listed.list_name,
        as_of=_day(listed.as_of),
    )


def _amount(value: Decimal | None) -> str | None:
    return None if value is None else f"{value:f}"


def _day(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
