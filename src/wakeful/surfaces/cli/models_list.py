"""`wakeful models list`: which providers and models there are, what is missing to use them, and what they cost."""

from difflib import get_close_matches
from typing import Annotated

import typer

from wakeful.bootstrap import model_catalogue
from wakeful.contracts.catalogue import Catalogue, ModelState
from wakeful.surfaces.cli.model_words import can, key_words, million, tokens
from wakeful.surfaces.cli.options import JsonOption
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.shown import columns, json_text, out, plain

UNKNOWN = "?"


def command(
    provider: Annotated[
        str | None, typer.Option("--provider", metavar="NAME", help="Only this provider and its models.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List providers, where their keys are found, and the models that are described here.

    A model that is not listed can be used all the same: it gets a safe profile, and its price is unknown.
    """
    found = model_catalogue()
    if provider is not None:
        found = _only(found, provider)
    if json:
        out(json_text(found.model_dump(mode="json"), indent=2))
    else:
        _tell(found)


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


def _tell(found: Catalogue) -> None:
    rows = [(each.name, key_words(each), each.endpoint or each.note) for each in found.providers]
    out(columns(rows, ("PROVIDER", "KEY", "ENDPOINT")))
    if found.models:
        out("")
        titles = ("MODEL", "WINDOW", "OUTPUT", "IN $/M", "OUT $/M", "CACHED $/M", "CAN")
        out(columns([_row(each) for each in found.models], titles))
        out("")
        day = f" of {found.prices_as_of}" if found.prices_as_of else ""
        out(f"prices       US dollars for a million tokens, by {found.price_list}{day}; {UNKNOWN} is unknown")
    listed = {each.provider for each in found.models}
    others = [each.name for each in found.providers if each.name not in listed and each.endpoint]
    if others:
        out(f"any model    {', '.join(others)}: whatever the server has, as in {others[0]}:NAME")
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
