"""The keys of this process: their variables, their values, and environments without them."""

import os
import sys
from collections.abc import Mapping
from functools import lru_cache

from wakeful.contracts.sensitive_names import is_sensitive


def key_variables() -> frozenset[str]:
    from wakeful.providers.catalogue import key_variables

    return key_variables()


def own_keys() -> frozenset[str]:
    """The keys this process holds in its environment: what nothing that is shown or stored may repeat.

    By the names of the variables, and by what providers say: their tables are not loaded for the sake of it.
    """
    named = {name for name in os.environ if is_sensitive(name)}
    if "wakeful.providers.endpoints" in sys.modules:
        named |= _key_variables_once()
    # A path says where a secret is, and is none.
    return frozenset(value for name in named if (value := os.environ.get(name, "")) and not value.startswith("/"))


@lru_cache(maxsize=1)
def _key_variables_once() -> frozenset[str]:
    return key_variables()


def secret_names() -> frozenset[str]:
    """Variables that hold something here: in the environment, or in `secrets.env` of the home."""
    from wakeful.service.serving.run_files import read_secrets

    return frozenset({*(name for name, value in os.environ.items() if value), *read_secrets()})


def take_keys_of_home() -> None:
    """Have this process use `secrets.env` of the home, as the daemon does; what the environment says wins. Raises
    InvalidConfig for a file that others can read."""
    from wakeful.service.serving.run_files import read_secrets

    for name, value in read_secrets().items():
        os.environ.setdefault(name, value)


def without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment for a child process: no provider's key is in it."""
    from wakeful.providers.catalogue import key_variables

    keys = key_variables(environ)
    return {name: value for name, value in environ.items() if name not in keys}
