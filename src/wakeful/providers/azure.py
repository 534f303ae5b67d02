"""OpenAI's models on Azure: the address of one's own resource, and the two ways in which Azure has them.

Without a version the newer API is asked (`/openai/v1`, the model is the deployment). With one, the older: the
deployment stands in the path, the version in the query. Rule: nothing is guessed of a resource but what its owner says.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from wakeful.contracts.errors import InvalidConfig
from wakeful.providers.endpoint_settings import address
from wakeful.providers.wire.addresses import joined

NAME = "azure"
RESOURCE = "AZURE_OPENAI_ENDPOINT"
VERSION = "OPENAI_API_VERSION"
DEPLOYMENT = "{deployment}"
"""Stands in an address for the deployment, which is the model's name in a reference."""


class AzureAddress(NamedTuple):
    """Where a resource is asked, and in which version of the API."""

    base_url: str
    api_version: str | None


def azure_address(environ: Mapping[str, str], api_version: str | None) -> AzureAddress:
    """The address of the resource that the environment names. Raises InvalidConfig when it names none."""
    resource = environ.get(RESOURCE, "").strip()
    if not resource:
        raise InvalidConfig(
            f"azure needs the address of your resource, and {RESOURCE} is not set",
            f"export {RESOURCE}=https://NAME.openai.azure.com (and {VERSION}=... for the older API with deployments in "
            "its path), or set [providers.azure] base_url in wakeful.toml.",
        )
    # Foundry shows the same resource at `https://NAME.services.ai.azure.com/models`, the address of another API.
    where = address(resource, RESOURCE).removesuffix("/openai/v1").removesuffix("/openai").removesuffix("/models")
    version = environ.get(VERSION, "").strip() or api_version
    if not version or version in ("v1", "latest"):
        return AzureAddress(joined(where, "/openai/v1"), None)
    return AzureAddress(joined(where, f"/openai/deployments/{DEPLOYMENT}"), version)


def at_deployment(base_url: str, model: str) -> str:
    """The address of one deployment; any other address as it is."""
    return base_url.replace(DEPLOYMENT, quote(model, safe=""))
