"""Models and providers that are described here, and one tiny call of one."""

from typing import TYPE_CHECKING, Any

from wakeful.bootstrap.engines import resolve_model

if TYPE_CHECKING:
    from wakeful.contracts.catalogue import Catalogue, ModelPage, ModelProbe


async def try_model(reference: str, *, timeout: float | None = None) -> "ModelProbe":
    """One tiny live call. Raises UnknownProvider, InvalidConfig or MalformedScript before anything is sent."""
    from wakeful.providers.catalogue import model_page
    from wakeful.providers.pricing import ListPricing
    from wakeful.service.queries.model_probe import TIMEOUT, probe

    model = resolve_model(reference)
    provider = model_page(reference).provider
    return await probe(model, provider, pricing=ListPricing(), timeout=TIMEOUT if timeout is None else timeout)


def model_catalogue() -> "Catalogue":
    """Every provider and every model that is described here. Raises InvalidConfig for a file that cannot be read."""
    from wakeful.providers.catalogue import catalogue

    return catalogue()


def model_page(reference: str) -> "ModelPage":
    """One model: its provider, what it can do, what it costs. Raises UnknownProvider or InvalidConfig."""
    from wakeful.providers.catalogue import model_page

    return model_page(reference)


def script_schema() -> dict[str, Any]:
    """The JSON Schema of a scripted model's file."""
    from wakeful.providers.scripted.schema import ScriptFile

    return ScriptFile.model_json_schema()
