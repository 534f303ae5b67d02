"""Signatures of deliveries, checked over the raw bytes before anything of them is read.

What makes a delivery the same as another one has to be signed, or somebody who saw one could send it again under
another name. So the identity is the signed id where there is one, and else the body itself.
"""

import binascii
import hashlib
import hmac
import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Final, NamedTuple

from wakeful.contracts.triggers import Refusal, Signature

TOLERANCE_SECONDS: Final = 300
"""How far the timestamp of a delivery may be from now, either way."""
HUB_HEADER: Final = "x-hub-signature-256"
ID_HEADER, TIME_HEADER, SIGNATURE_HEADER = "webhook-id", "webhook-timestamp", "webhook-signature"
KEY_HEADERS: Final = ("idempotency-key", ID_HEADER)
"""Where an unsigned delivery may say which one it is."""
MAX_HEADER_CHARS: Final = 256
_SECONDS: Final = re.compile(r"[0-9]{1,12}")
_MAX_SIGNATURES: Final = 10
"""In one header: a sender whose secret changes signs with both."""


class DeliveryIdentity(NamedTuple):
    """Which delivery it is, and whether its sender was checked."""

    delivery_id: str | None
    """None: nothing says whether it came before."""
    is_verified: bool
    is_late: bool = False
    """Its timestamp is too far from now."""


class SignatureProblem(NamedTuple):
    """Why a delivery is not believed."""

    reason: Refusal
    message: str


def digest_of(raw: bytes) -> str:
    return "sha256:" + hashlib.sha256(raw).hexdigest()


def check_signature(
    scheme: Signature | None, secret: str | None, raw: bytes, headers: Mapping[str, str], now: int
) -> DeliveryIdentity | SignatureProblem:
    """Who sent it, and which one it is. `headers` have lower-case names; `now` is in Unix microseconds."""
    for name in (*KEY_HEADERS, TIME_HEADER):
        if len(headers.get(name, "")) > MAX_HEADER_CHARS:
            return SignatureProblem("invalid_header", f"{name} has more than {MAX_HEADER_CHARS} characters")
    if scheme is None:
        named = (headers.get(name, "").strip() for name in KEY_HEADERS)
        return DeliveryIdentity(next((f"key:{each}" for each in named if each), None), False)
    if not secret:
        return SignatureProblem("secret_missing", "the secret that signatures are checked against is not set here")
    if scheme == "hub_sha256":
        return _hub(secret, raw, headers)
    return _standard(secret, raw, headers, now)


def _hub(secret: str, raw: bytes, headers: Mapping[str, str]) -> DeliveryIdentity | SignatureProblem:
    given = headers.get(HUB_HEADER, "").strip()
    if not given:
        return SignatureProblem("signature_missing", f"there is no {HUB_HEADER}")
    wanted = "sha256=" + hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(wanted.encode(), given.encode("utf-8", "replace")):
        return SignatureProblem("signature_invalid", f"{HUB_HEADER} does not fit the body and the secret")
    return DeliveryIdentity(digest_of(raw), True)


def _standard(secret: str, raw: bytes, headers: Mapping[str, str], now: int) -> DeliveryIdentity | SignatureProblem:
    named, moment = headers.get(ID_HEADER, "").strip(), headers.get(TIME_HEADER, "").strip()
    given = headers.get(SIGNATURE_HEADER, "").strip()
    for name, value in ((ID_HEADER, named), (TIME_HEADER, moment), (SIGNATURE_HEADER, given)):
        if not value:
            return SignatureProblem("signature_missing", f"there is no {name}")
    if _SECONDS.fullmatch(moment) is None:
        return SignatureProblem("invalid_header", f"{TIME_HEADER} is not a number of seconds")
    key = _key(secret)
    if key is None:
        return SignatureProblem("secret_missing", "the secret begins with whsec_ and what follows is not base64")
    wanted = hmac.new(key, f"{named}.{moment}.".encode("utf-8", "replace") + raw, hashlib.sha256).digest()
    if not any(hmac.compare_digest(wanted, each) for each in _signatures(given)):
        return SignatureProblem("signature_invalid", f"{SIGNATURE_HEADER} does not fit the delivery and the secret")
    return DeliveryIdentity(f"id:{named}", True, abs(int(moment) - now / 1_000_000) > TOLERANCE_SECONDS)


def _key(secret: str) -> bytes | None:
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        return None


def _signatures(header: str) -> list[bytes]:
    """Those of version 1, one of which has to fit."""
    found: list[bytes] = []
    for each in header.split()[:_MAX_SIGNATURES]:
        version, _, value = each.partition(",")
        if version == "v1":
            try:
                found.append(b64decode(value, validate=True))
            except (binascii.Error, ValueError):
                continue
    return found
