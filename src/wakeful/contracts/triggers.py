"""External triggers as values: an address through which a program outside reaches one agent, and how it is guarded.

An address is the id of a trigger and a code over that id and its generation. The code is made with the secret of the
runtime and a salt whenever somebody may see the address: no address is stored, and another generation is another one.
"""

from collections.abc import Mapping
from typing import Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from wakeful.contracts.described_values import DescribedValue

TriggerState: TypeAlias = Literal["active", "revoked"]
Signature: TypeAlias = Literal["hub_sha256", "standard_webhooks"]
"""How deliveries are signed. hub_sha256: `X-Hub-Signature-256`, over the body. standard_webhooks: `webhook-id`,
`webhook-timestamp` and `webhook-signature`, over all three parts."""
DeliveryOutcome: TypeAlias = Literal["accepted", "duplicate", "refused"]
Refusal: TypeAlias = Literal[
    "unknown_trigger",
    "revoked",
    "agent_stopped",
    "too_large",
    "too_deep",
    "invalid_body",
    "invalid_header",
    "signature_missing",
    "signature_invalid",
    "secret_missing",
    "late",
    "key_reused",
]
"""Why nothing was stored. late: its timestamp is too far from now."""

DEFAULT_NAME: Final = ""
"""The name of the trigger that every agent has."""
NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
VARIABLE_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"
MAX_SAY: Final = 4_000
MODE_PATHS: Final[Mapping[str, str]] = {"wake_hint": "wake", "enqueue_message": "enqueue"}
"""The last folder of an address, by what a delivery does. It says so to people; the trigger's row decides."""


class TriggerEntry(DescribedValue):
    """A line of an agent's `wake` with a trigger: a program outside wakes the agent, at an address of its own."""

    trigger: str = Field(pattern=NAME_PATTERN)
    """The trigger's name."""
    say: str = Field("", max_length=MAX_SAY)
    """What the agent is told, as its owner's word. A body that comes with a delivery is shown beneath it."""
    thread: str = Field("main", min_length=1)
    """Where it is told: a thread by name, or `fresh` for a new one each time."""
    signature: Signature | None = None
    """How its sender signs: `hub_sha256` or `standard_webhooks`. Unsigned deliveries are then refused."""
    signing_env: str | None = Field(None, pattern=VARIABLE_PATTERN)
    """The environment variable with the secret that signatures are checked against. The secret is never stored."""

    @model_validator(mode="after")
    def _secret_goes_with_signature(self) -> Self:
        if (self.signature is None) != (self.signing_env is None):
            given, missing = ("signing_env", "signature") if self.signature is None else ("signature", "signing_env")
            raise ValueError(f"{given} without {missing}: a signature is checked against a secret")
        return self
