"""What a lost attempt means: from a status and its body, from an error object in a stream, or from an exception.

Pure: the same answer is always the same failure. A message says what happened in one line and what a person can do;
what the transport knew beyond that goes into the diagnostics. Keys are taken out of everything, by value.
"""

import math
import socket
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import FailureKind, HttpClientDiagnostics, Stage, TransportDiagnostics
from wakeful.providers.wire.error_words import (
    ProviderWords,
    is_about_the_model,
    kind_of_status,
    kind_of_words,
    said_by,
    said_in,
)
from wakeful.providers.wire.limits import limits_of
from wakeful.providers.wire.redaction import public_url, redact

MAX_SAID = 400
"""How much of a provider's own words stands in a message."""
UNKNOWN_HOST = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
"""Of a lookup that said so; one that found no server to ask may be a network that is away."""
MAX_CHAIN = 8
MAX_LINK = 300


class Peer(NamedTuple):
    """Whom a request was for, as far as a message needs it."""

    provider: str
    model_ref: str | None = None
    url: str | None = None
    key_variable: str | None = None
    """The variable the key came from, or would come from."""
    known_models: Callable[[], Sequence[str]] = tuple
    """Names of models that it has, as far as they are known; asked for only when it does not know the one it got."""
    secrets: Sequence[str] = ()
    """Values that must not be repeated."""
    server: str = ""
    """The host, where it is another than the provider's own."""

    @property
    def who(self) -> str:
        """The provider, and the server that answers in its name."""
        return f"{self.provider} at {self.server}" if self.server else self.provider

    @property
    def host(self) -> str:
        return public_url(self.url).partition("//")[2].partition("/")[0] if self.url else self.provider

    def __repr__(self) -> str:
        return f"Peer({self.provider!r}, {self.model_ref!r} at {self.host})"  # a traceback with locals shows no key


def from_status(
    provider: str,
    model_ref: str | None,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    peer: Peer | None = None,
    now: float | None = None,
) -> ModelFailure:
    """What an answer other than 2xx means."""
    peer = peer or Peer(provider, model_ref)
    if 300 <= status < 400:
        return _redirected(peer, status, headers)
    said = said_by(body)
    kind = kind_of_status(status, said)
    failure = _failure(
        peer,
        _words(peer, kind, said, f"answered {status}"),
        kind=kind,
        stage="headers",
        status=status,
        retry_after=_first_known(retry_after(headers, now), said.retry_after),
        client=HttpClientDiagnostics(status=status),
        refused_call=said.refused_call,
        unknown_model=kind == "contract_error" and is_about_the_model(said),
    )
    if kind in ("rate_limited", "quota_exhausted"):
        failure.limits = limits_of(headers, server_time(headers, now))
    if kind == "content_filtered":
        failure.retryable = False  # the request itself was, and it would be the same again
    return failure


def from_error_object(
    provider: str,
    model_ref: str | None,
    error: Mapping[str, Any],
    *,
    stage: Stage = "body",
    status: int | None = None,
    peer: Peer | None = None,
) -> ModelFailure:
    """What an error in a stream or a failed response means: `{type, code, message}` in whatever spelling."""
    peer = peer or Peer(provider, model_ref)
    said = said_in(error)
    number = error.get("code")
    if status is None and isinstance(number, int) and 400 <= number < 600:
        status = number
    kind = kind_of_words(said)
    if kind is None:
        kind = kind_of_status(status, said) if status is not None else "unknown"
    words = _words(peer, kind, said, "reported an error")
    return _failure(
        peer,
        words,
        kind=kind,
        stage=stage,
        status=status,
        retry_after=said.retry_after,
        refused_call=said.refused_call,
        unknown_model=kind == "contract_error" and is_about_the_model(said),
    )


def from_exception(
    provider: str,
    model_ref: str | None,
    error: BaseException,
    *,
    stage: Stage,
    peer: Peer | None = None,
) -> ModelFailure:
    """What an HTTP client's exception means, by the names of its classes: no client has to be loaded to ask."""
    peer = peer or Peer(provider, model_ref)
    names = {base.__name__ for base in type(error).__mro__}
    stage = _at_least(stage, names)
    chain = _chain(error, peer.secrets)
    inner = {base.__name__ for link in _links(error) for base in type(link).__mro__}
    kind: FailureKind
    absent = False
    client = HttpClientDiagnostics(is_request=stage in ("connect", "send"), is_body=stage == "body")
    if names & {"TimeoutException", "TimeoutError"}:
        kind, client = "timeout", client.model_copy(update={"is_timeout": True, "is_connect": stage == "connect"})
        what = f"{peer.host} {_too_slow(stage)}"
    elif names & {"UnsupportedProtocol", "InvalidURL", "LocalProtocolError"}:
        kind, what = "contract_error", f"the request could not be made: {_first(chain)}"
    elif not names & {"HTTPError", "StreamError", "OSError"}:
        kind, what = "unknown", f"the request failed with {chain[0]}"  # nobody's network: not sent again
    elif stage == "connect" or "ConnectError" in names:
        stage = "connect"
        kind, client = "connection", client.model_copy(update={"is_connect": True})
        what, absent = _unreachable(peer, inner, chain), _is_absent(peer, error)
    elif stage == "body" and "DecodingError" in names:
        kind, client = "invalid_response", client.model_copy(update={"is_decode": True})
        what = f"{peer.host} sent a body that its own Content-Encoding cannot read"
    elif stage == "body":
        kind, what = "stream_interrupted", f"{peer.host} broke off in the middle of its answer; nothing of it was used"
    elif "RemoteProtocolError" in names and "disconnected" not in str(error):
        kind, client = "invalid_response", client.model_copy(update={"is_decode": True})
        what = f"{peer.host} does not speak HTTP: {_first(chain)}"
    else:
        kind, what = "connection", f"{peer.host} closed the connection before it answered"
    message = f"{peer.provider}: {what}"
    return _failure(peer, message, kind=kind, stage=stage, client=client, chain=chain, is_absent=absent)


def interrupted(peer: Peer, what: str) -> ModelFailure:
    """A stream without its terminal event: a lost attempt, however much of it had come."""
    message = f"{peer.who}: {what}; nothing of it was used"
    client = HttpClientDiagnostics(is_body=True)
    return _failure(peer, message, kind="stream_interrupted", stage="body", client=client)


def invalid(peer: Peer, what: str, *, stage: Stage = "decode") -> ModelFailure:
    """An answer that is not what the contract says."""
    client = HttpClientDiagnostics(is_decode=True)
    return _failure(peer, f"{peer.who}: {what}", kind="invalid_response", stage=stage, client=client)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds to wait, when the provider said so: in milliseconds, in seconds, or as a date.

    A date is compared with the server's own `Date`, so that a wrong clock here does not matter; else with `now`.
    """
    given = {name.lower(): value.strip() for name, value in headers.items()}
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        seconds = _number(given.get(name))
        if seconds is not None:
            return seconds / scale
    until = _timestamp(given.get("retry-after"))
    since = server_time(given, now)
    if until is None or since is None:
        return None
    return max(0.0, until - since)


def _first_known(*waits: float | None) -> float | None:
    return next((wait for wait in waits if wait is not None), None)


def server_time(headers: Mapping[str, str], now: float | None) -> float | None:
    """The server's own clock, where it shows it."""
    date = next((value for name, value in headers.items() if name.lower() == "date"), None)
    return now if date is None else _timestamp(date)


# --- what to tell a person -------------------------------------------------------------------------------------------


def _words(peer: Peer, kind: FailureKind, said: ProviderWords, how: str) -> str:
    """One line for a person: what happened, in whose words, and what to do."""
    model = (peer.model_ref or "").partition(":")[2]
    told = f": {_short(said.message)}" if said.message else ""
    key = f"the key in {peer.key_variable}" if peer.key_variable else "the key"
    if kind == "auth_error":
        return f"{peer.who} refused {key} ({how}){told}"
    if kind == "quota_exhausted":
        return f"{peer.who}: the account behind {key} has no quota left ({how}){told}"
    if kind == "context_length_exceeded":
        return f"{peer.who}: the conversation is too long for {model or 'the model'} ({how}){told}"
    if kind == "contract_error" and model and is_about_the_model(said):
        near = _near(model, [name for name in peer.known_models() if name != model])
        meant = f". Did you mean {' or '.join(near)}?" if near else ""
        return f"{peer.who} does not know the model {model!r} ({how}){told.rstrip('.') if near else told}{meant}"
    return f"{peer.who} {how}{told}"


def _near(model: str, known: Sequence[str]) -> list[str]:
    """Models that go on where the name stops; else those that look like it."""
    longer = [name for name in known if name.startswith((f"{model}-", f"{model}."))]
    return longer[:3] or get_close_matches(model, known, n=3, cutoff=0.5)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_SAID else f"{line[: MAX_SAID - 1]}…"


def _redirected(peer: Peer, status: int, headers: Mapping[str, str]) -> ModelFailure:
    given = {name.lower(): value for name, value in headers.items()}
    target = public_url(given["location"]) if "location" in given else "nowhere"
    return _failure(
        peer,
        f"{peer.who} answered {status}, a redirect to {target}, and a key is not sent after one. "
        f"Give the address it leads to as base_url",
        kind="contract_error",
        stage="headers",
        status=status,
        client=HttpClientDiagnostics(is_redirect=True, status=status),
    )


# --- exceptions -------------------------------------------------------------------------------------------------------


def _at_least(stage: Stage, names: set[str]) -> Stage:
    """How far the exchange got: as far as was seen, and no less far than the exception itself says.

    A client with a transport of its own may not tell how far it is; the classes of its exceptions still do.
    """
    if stage == "connect" and names & {"WriteTimeout", "WriteError"}:
        return "send"
    if stage == "connect" and names & {"ReadTimeout", "ReadError", "RemoteProtocolError"}:
        return "headers"
    return stage


def _too_slow(stage: Stage) -> str:
    return {
        "connect": "could not be reached in time",
        "send": "did not take the request in time",
        "headers": "did not begin to answer in time",
    }.get(stage, "stopped in the middle of its answer; nothing of it was used")


def _unreachable(peer: Peer, inner: set[str], chain: Sequence[str]) -> str:
    words = " ".join(chain)
    if "SSLCertVerificationError" in inner or "CERTIFICATE_VERIFY_FAILED" in words:
        why = "its certificate is not trusted"
    elif "SSLError" in inner or "[SSL" in words:
        why = "no TLS there; is base_url meant to be http://?"
    elif "gaierror" in inner or "Name or service not known" in words:
        why = "no such host; check base_url"
    elif "ConnectionRefusedError" in inner or "refused" in words:
        why = "nothing listens there; is the server running, and is base_url right?"
    elif "ProxyError" in inner:
        why = "the proxy of HTTP_PROXY or HTTPS_PROXY refused it"
    else:
        why = _first(chain)
    return f"{peer.host} cannot be reached: {why}"


def _is_absent(peer: Peer, error: BaseException) -> bool:
    """Nothing listens at this address of this machine, or no host has that name: waiting alone will hardly help."""
    links = _links(error)
    if any(isinstance(link, socket.gaierror) and link.errno in UNKNOWN_HOST for link in links):
        return True
    refused = any(isinstance(link, ConnectionRefusedError) for link in links)
    host = (urlsplit(peer.url).hostname or "") if peer.url else ""
    return refused and (host == "localhost" or host == "::1" or host.startswith("127."))


def _links(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    open_ones: list[BaseException] = [error]
    while open_ones and len(found) < MAX_CHAIN:
        link = open_ones.pop(0)
        if any(link is seen for seen in found):
            continue
        found.append(link)
        if isinstance(link, BaseExceptionGroup):
            open_ones.extend(link.exceptions)
        cause = link.__cause__ or link.__context__
        if cause is not None:
            open_ones.append(cause)
    return found


def _chain(error: BaseException, secrets: Sequence[str]) -> tuple[str, ...]:
    """The error and what caused it, outermost first."""
    lines = (f"{type(link).__name__}: {link}".removesuffix(": ") for link in _links(error))
    return tuple(redact(line, secrets)[:MAX_LINK] for line in lines)


def _first(chain: Sequence[str]) -> str:
    return next((line.partition(": ")[2] for line in chain if ": " in line), chain[0] if chain else "no reason given")


def _failure(
    peer: Peer,
    message: str,
    *,
    kind: FailureKind,
    stage: Stage,
    status: int | None = None,
    retry_after: float | None = None,
    client: HttpClientDiagnostics | None = None,
    chain: tuple[str, ...] | None = None,
    refused_call: str | None = None,
    unknown_model: bool = False,
    is_absent: bool = False,
) -> ModelFailure:
    return ModelFailure(
        redact(message, peer.secrets),
        kind=kind,
        stage=stage,
        status=status,
        retry_after=retry_after,
        refused_call=redact(refused_call, peer.secrets) if refused_call is not None else None,
        unknown_model=unknown_model,
        diagnostics=TransportDiagnostics(
            stage=stage,
            provider=peer.provider,
            model_ref=peer.model_ref,
            url=redact(public_url(peer.url), peer.secrets) if peer.url else None,
            status=status,
            is_absent=is_absent,
            http_client=client,
            source_chain=chain,
        ),
    )


# --- times ------------------------------------------------------------------------------------------------------------


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return value if value is not None and math.isfinite(value) and value >= 0 else None


def _timestamp(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
