"""The addresses of triggers: made when somebody may see one, checked when somebody uses one, stored nowhere."""

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from typing import Final, NamedTuple

from wakeful.contracts.triggers import DEFAULT_NAME, MODE_PATHS
from wakeful.decisions.salted_secrets import SaltedSecret

PREFIX: Final = "wkt_"
"""So that readers of logs recognise an address, and hide it."""
_TOKEN: Final = re.compile(r"wkt_(?P<number>[0-9a-f]{24})\.(?P<code>[A-Za-z0-9_-]{43})")
_PURPOSE: Final = b"wakeful trigger address"


class PresentedAddress(NamedTuple):
    """What somebody who delivers has shown."""

    trigger_id: str
    code: str


def trigger_id_of(agent_id: str, name: str = DEFAULT_NAME) -> str:
    """One id for one name of one agent, for ever. It tells nobody outside what the agent is called."""
    named = f"{agent_id}\0{name}".encode("utf-8", "surrogatepass")
    return "trg_" + hashlib.sha256(named).hexdigest()[:24]


def token_of(secret: SaltedSecret, trigger_id: str, generation: int) -> str:
    """The part of an address that is secret."""
    key = hmac.digest(secret, _PURPOSE, "sha256")
    code = hmac.digest(key, f"{trigger_id}\0{generation}".encode(), "sha256")
    return f"{PREFIX}{trigger_id.removeprefix('trg_')}.{urlsafe_b64encode(code).rstrip(b'=').decode()}"


def path_of(secret: SaltedSecret, trigger_id: str, generation: int, mode: str) -> str:
    return f"/callbacks/{MODE_PATHS[mode]}/{token_of(secret, trigger_id, generation)}"


def presented(address: str) -> PresentedAddress | None:
    """What is in a token, a path or a whole address; None: nothing that could be one of ours."""
    found = _TOKEN.fullmatch(address[-256:].partition("?")[0].rpartition("/")[2])
    return None if found is None else PresentedAddress(f"trg_{found['number']}", found["code"])


def is_genuine(secret: SaltedSecret, shown: PresentedAddress, generation: int) -> bool:
    """Is it the address of this generation? In constant time."""
    return hmac.compare_digest(token_of(secret, shown.trigger_id, generation).rpartition(".")[2], shown.code)
