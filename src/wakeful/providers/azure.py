"""OpenAI's models on Azure: the address of one's own resource, and the two ways in which Azure has them.

Without a version the newer API is asked (`/openai/v1`, the model is the deployment). With one, the older: the
deployment stands in the path, the version in the query. Rule: nothing is guessed of a resource but what its owner says.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from wakeful.contracts.errors import InvalidConfig
from wakeful.providers.endpoint_settings import address
from wakeful.providers.wire.addresses import joined

if TYPE_CHECKING:
    from wakeful.providers.endpoints import Endpoint

NAME = "azure"
RESOURCE = "AZURE_OPENAI_ENDPOINT"
VERSION = "OPENAI_API_VERSION"
DEPLOYMENT = "{deployment}"
"""Stands in an address for the deployment, which is the model's name in a reference."""


def azure_endpoint(known: "Endpoint", environ: Mapping[str, str]) -> "Endpoint":
    """The endpoint of the resource that the environment names. Raises InvalidConfig when it names none."""
    resource = environ.get(RESOURCE, "").strip()
    if not resource:
        raise InvalidConfig(
            f"azure needs the address of your resource, and {RESOURCE} is not set",
            f"export {RESOURCE}=https://NAME.openai.azure.com (and {VERSION}=... for the older API with deployments in "
            "its path), or set [providers.azure] base_url in wakeful.toml.",
        )
    where = address(resource, RESOURCE).removesuffix("/openai/v1").removesuffix("/openai")
    version = environ.get(VERSION, "").strip() or known.api_version
    if not version or version in ("v1", "latest"):
        return replace(known, base_url=joined(where, "/openai/v1"), api_version=None, source=RESOURCE)
    return replace(
        known,
        base_url=joined(where, f"/openai/deployments/{DEPLOYMENT}"),
        api_version=version,
        source=RESOURCE,
    )


def at_deployment(found: "Endpoint", model: str) -> "Endpoint":
    """The endpoint of one deployment; any other endpoint as it is."""
    if DEPLOYMENT not in found.base_url:
        return found
    return replace(found, base_url=found.base_url.replace(DEPLOYMENT, quote(model, safe="")))
