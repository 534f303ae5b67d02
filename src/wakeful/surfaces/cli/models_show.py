"""`wakeful models show`: one model, its provider, what it can do and what it costs."""

from wakeful.bootstrap import model_page
from wakeful.contracts.catalogue import ListPrice, ModelPage
from wakeful.surfaces.cli.model_words import can, key_words, million, retry_words, tokens
from wakeful.surfaces.cli.options import JsonOption, ModelArgument
from wakeful.surfaces.cli.shown import json_text, out, plain


def command(model: ModelArgument, json: JsonOption = False) -> None:
    """Show where a model is asked, with which key, what it can do and what it costs. Nothing is sent anywhere."""
    page = model_page(model)
    if json:
        out(json_text(page.model_dump(mode="json"), indent=2))
    else:
        _tell(page)


def _tell(page: ModelPage) -> None:
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
        undeclared = "" if model.declared else " (not described here, so this is a safe guess)"
        out(f"can          {can(able)}{undeclared}")
        out(f"window       {tokens(able.context_window)} tokens, answers of {tokens(able.max_output)} at most")
        out(f"sampling     {plain(', '.join(able.sampling)) or 'takes no sampling parameters'}")
        out(f"prompt       {plain(', '.join(able.prompt))}")
    out(f"price        {_price(model.price)}")
    if page.near:
        out(f"near         {', '.join(plain(ref) for ref in page.near)}")
    out(f"next         wakeful models test {plain(model.ref)}")


def _price(price: ListPrice | None) -> str:
    if price is None:
        return "unknown"
    parts = [f"{million(price.input)} in", f"{million(price.output)} out"]
    parts += [f"{million(price.cached_input)} cached"] if price.cached_input is not None else []
    parts += [f"{million(price.cache_write)} to write the cache"] if price.cache_write is not None else []
    long = ""
    if price.long_from is not None and price.long_input is not None and price.long_output is not None:
        higher = f"{million(price.long_input)} in, {million(price.long_output)} out"
        long = f"; above {tokens(price.long_from)} tokens in: {higher}"
    day = f" of {price.as_of}" if price.as_of else ""
    return f"{', '.join(parts)}: {price.currency} for a million tokens, by {plain(price.price_list)}{day}{long}"
