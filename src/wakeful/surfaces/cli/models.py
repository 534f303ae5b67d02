"""`wakeful models list`, `show`, `test`: providers and models, their keys, abilities and prices."""

import asyncio
from difflib import get_close_matches
from typing import Annotated

import typer

from wakeful.bootstrap.models import model_catalogue, model_page, try_model
from wakeful.contracts.catalogue import Catalogue, ListPrice, ModelPage, ModelState
from wakeful.surfaces.cli.exit_codes import FAILED
from wakeful.surfaces.cli.model_words import can, key_words, million, probe_lines, retry_words, tokens
from wakeful.surfaces.cli.options import JsonOption, ModelArgument, TimeoutOption, WideOption
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.screen import columns, prose
from wakeful.surfaces.cli.shown_values import json_text, out, plain

UNKNOWN = "?"


def listed(
    provider: Annotated[
        str | None, typer.Option("--provider", metavar="NAME", help="Only this provider and its models.")
    ] = None,
    json: JsonOption = False,
    wide: WideOption = False,
) -> None:
    """List providers with the place of their key, and the models that wakeful knows.

    Other models of a provider work, too: wakeful assumes few abilities, and their price is unknown.
    """
    found = model_catalogue()
    if provider is not None:
        found = _only(found, provider)
    if json:
        out(json_text(found.model_dump(mode="json"), indent=2))
    else:
        _tell_catalogue(found, wide=wide)


def _only(found: Catalogue, provider: str) -> Catalogue:
    names = [each.name for each in found.providers]
    if provider not in names:
        near = get_close_matches(provider.partition(":")[0], names, n=2, cutoff=0.5)
        meant = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names)}"
        raise WrongRequest(f"there is no provider {provider!r}", meant)
    return found.model_copy(
        update={
            "providers": tuple(each for each in found.providers if each.name == provider),
            "models": tuple(each for each in found.models if each.provider == provider),
        }
    )


def _tell_catalogue(found: Catalogue, *, wide: bool) -> None:
    rows = [(each.name, key_words(each), each.endpoint or each.note) for each in found.providers]
    out(columns(rows, ("PROVIDER", "KEY", "ENDPOINT"), wide=wide))
    if found.models:
        out("")
        titles = ("MODEL", "WINDOW", "OUTPUT", "IN $/M", "OUT $/M", "CACHED", "ABILITIES")
        out(columns([_row(each) for each in found.models], titles, wide=wide))
        out("")
        day = f" of {found.prices_as_of}" if found.prices_as_of else ""
        prose(f"prices       US dollars per million tokens, {found.price_list}{day}; {UNKNOWN}: unknown")
    listed = {each.provider for each in found.models}
    others = [each.name for each in found.providers if each.name not in listed and each.endpoint]
    if others:
        prose(f"any model    {', '.join(others)}")
        out(f"             (write {others[0]}:NAME)")
    out(f"settings     {plain(found.settings_file)}, [providers.NAME]")


def _row(model: ModelState) -> tuple[str, ...]:
    price, able = model.price, model.capabilities
    return (
        model.ref,
        tokens(able.context_window) if able else UNKNOWN,
        tokens(able.max_output) if able else UNKNOWN,
        million(price.input) if price else UNKNOWN,
        million(price.output) if price else UNKNOWN,
        million(price.cached_input or price.input) if price else UNKNOWN,
        can(able) if able else "",
    )


def show(model: ModelArgument, json: JsonOption = False) -> None:
    """Show a model: its endpoint, key, abilities and prices. Nothing is sent."""
    page = model_page(model)
    if json:
        out(json_text(page.model_dump(mode="json"), indent=2))
    else:
        _tell_model(page)


def _tell_model(page: ModelPage) -> None:
    model, provider = page.model, page.provider
    out(f"model        {plain(model.ref)}")
    note = f" ({plain(provider.note)})" if provider.note and provider.key != "missing" else ""
    out(f"provider     {provider.name}: {provider.status}{note}")
    if provider.endpoint:
        version = f", version {plain(provider.api_version)}" if provider.api_version else ""
        out(f"endpoint     {plain(provider.endpoint)} ({plain(provider.endpoint_source)})")
        out(f"transport    {plain(provider.transport)}{version}")
    out(f"key          {key_words(provider)}")
    out(f"retry        {retry_words(provider.retry)}")
    able = model.capabilities
    if able is not None:
        undeclared = "" if model.declared else " (unknown model: a safe guess)"
        prose(f"abilities    {can(able)}{undeclared}")
        out(f"window       {tokens(able.context_window)} tokens, answers of {tokens(able.max_output)} at most")
        out(f"sampling     {plain(', '.join(able.sampling)) or 'takes no sampling parameters'}")
        out(f"prompt       {plain(', '.join(able.prompt))}")
    first, *more = _price(model.price)
    out([f"price        {first}", *(f"{'':<13}{line}" for line in more)])
    if page.near:
        prose(f"near         {', '.join(plain(ref) for ref in page.near)}")
    out(f"next         wakeful models test {plain(model.ref)}")


def _price(price: ListPrice | None) -> list[str]:
    if price is None:
        return ["unknown"]
    parts = [f"{million(price.input)} in", f"{million(price.output)} out"]
    parts += [f"{million(price.cached_input)} cached"] if price.cached_input is not None else []
    parts += [f"{million(price.cache_write)} to write the cache"] if price.cache_write is not None else []
    long = []
    if price.long_from is not None and price.long_input is not None and price.long_output is not None:
        higher = f"{million(price.long_input)} in, {million(price.long_output)} out"
        long = [f"above {tokens(price.long_from)} tokens in: {higher}"]
    day = f" of {price.as_of}" if price.as_of else ""
    source = f"{price.currency} per million tokens, by {plain(price.price_list)}{day}"
    return [", ".join(parts), *long, source]


def test(model: ModelArgument, timeout: TimeoutOption = None, json: JsonOption = False) -> None:
    """Ask a model for one word, and show the answer, the time and the cost.

    Ends with exit code 0 if it answered, 1 if it did not, 2 if it could not be asked (no key, no such provider).
    """
    probe = asyncio.run(try_model(model, timeout=timeout))
    if json:
        out(json_text(probe.model_dump(mode="json"), indent=2))
    else:
        prose(probe_lines(probe))
    if not probe.ok:
        raise typer.Exit(FAILED)
