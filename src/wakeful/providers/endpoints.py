"""Providers as data: where they are, how they speak, and where their keys come from.

Built in are those whose address and authentication fit a wire format as it is. A provider that needs more (headers of
its own, an account's address) works when it is configured, and not before. What is configured wins: code over the
environment over the owner's settings file over what is built in. No key is kept here, only the name of its variable.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, TypeAlias

from wakeful.contracts.errors import InvalidConfig, KeyMissing, UnknownProvider, inside
from wakeful.providers import azure
from wakeful.providers.endpoint_settings import address, provider_settings, setting, tables
from wakeful.providers.prices import LOCAL, ListedPrice
from wakeful.providers.wire.addresses import has_in_query, is_loopback, joined, with_query
from wakeful.providers.wire.redaction import RequestHeaders, Secret, public_url
from wakeful.settings.owner_file import SETTINGS_FILE

Wire: TypeAlias = Literal["openai_responses", "openai_chat", "anthropic", "gemini"]
Auth: TypeAlias = Literal["bearer", "x-api-key", "api-key", "x-goog-api-key", "none"]
Speech: TypeAlias = Literal["openai", "compatible"]

TRANSPORTS: dict[str, Wire] = {
    "openai_responses": "openai_responses",
    "openai_chat_completions": "openai_chat",
    "anthropic_messages": "anthropic",
    "gemini_generate_content": "gemini",
}
"""The names of the wire formats in settings."""
_AUTHS: dict[Wire | None, Auth] = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}
"""How a format's own vendor takes a key, where that is not as a bearer token."""
IN_CODE = "base_url"
"""The source of an address that the caller gave."""
COMPATIBLE_NAME = "openai-compatible"
"""What an endpoint is called of which only the address was given."""
API_VERSION = "api-version"
ANTHROPIC_FIRST = "2023-06-01"
ANTHROPIC_BEARER = "2026-10-21"
"""From this version on the key is a bearer token, and sampling parameters are refused."""


def provider_name(owner: str) -> str:
    """The provider of an `Endpoint.owner`, wherever its address is."""
    return owner.partition("@")[0]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One provider. `transport` is what was configured; `wire` what this version can speak of it, or None."""

    name: str
    transport: str
    base_url: str = ""
    """Without a slash at its end. Empty: it has to be configured."""
    key_env: tuple[str, ...] = ()
    """Variables that may hold the key; the first that is set counts."""
    auth: Auth = "bearer"
    key_required: bool = True
    api_version: str | None = None
    """A header of Anthropic's API; for the others, `api-version` in the query, as Azure wants it."""
    dialect: Speech = "compatible"
    """Whose words it takes in OpenAI's formats: OpenAI's own, wherever the address leads, or what most servers take."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request. Not shown: they may hold a token."""
    quirks: Mapping[str, Any] = field(default_factory=dict)
    """Where it differs from its wire format, in that format's own words."""
    profile: Mapping[str, Any] = field(default_factory=dict)
    """What is known better about its models' capabilities."""
    prices: Mapping[str, ListedPrice] = field(default_factory=dict)
    """What the owner says its models cost, by their names."""
    source: str = "built in"
    """Where the address came from."""

    @property
    def wire(self) -> Wire | None:
        return TRANSPORTS.get(self.transport)

    @property
    def host(self) -> str:
        return public_url(self.base_url).partition("//")[2].partition("/")[0]

    @property
    def owner(self) -> str:
        """To whom reasoning belongs that came from here: its name, or, of an address in code, name and address."""
        return f"{self.name}@{self.host}" if self.source == IN_CODE else self.name

    @property
    def is_local(self) -> bool:
        """Its address is this machine's."""
        return is_loopback(self.base_url)

    @property
    def asked_at(self) -> str:
        """The server that answers in this provider's name, where that is another than the name says; else nothing."""
        known = BUILT_IN.get(self.name)
        own = known is None or not known.base_url or known.base_url == self.base_url
        return self.host if not own or self.name == COMPATIBLE_NAME else ""

    def url(self, path: str) -> str:
        """Where requests go."""
        found = joined(self.base_url, path)
        if self.api_version and self.wire != "anthropic" and not has_in_query(found, API_VERSION):
            found = with_query(found, [(API_VERSION, self.api_version)])
        return found

    def price(self, model: str) -> ListedPrice | None:
        """What its owner says a model costs: in the file, or by running it; None leaves it to the seller's list."""
        return self.prices.get(model) or (LOCAL if self.is_local else None)

    @property
    def refuses_sampling(self) -> bool:
        """Whether temperature and its like are an error here, whatever the model."""
        return self.wire == "anthropic" and (self.api_version or "") >= ANTHROPIC_BEARER

    def key(self, environ: Mapping[str, str] | None = None) -> "Key":
        """The key and the variable it was found in. Raises InvalidConfig, naming the variable, when one is missing."""
        environ = os.environ if environ is None else environ
        for variable in self.key_env:
            value = environ.get(variable, "").strip()
            if value:
                return Key(Secret(value), variable)
        if self.key_required and self.auth != "none":
            first = self.key_env[0] if self.key_env else ""
            raise KeyMissing(
                f"{self.name} needs a key, and {' and '.join(self.key_env) or 'no variable for it'} is not set",
                f"export {first}=..., or write it in secrets.env of the home (or name another variable: "
                f"[providers.{self.name}] key_env in {SETTINGS_FILE})\n"
                "A daemon reads secrets.env when it starts: wakeful daemon restart"
                if first
                else f'Name the variable: [providers.{self.name}] key_env = "..." in {SETTINGS_FILE}',
            )
        return Key(None, None)

    def auth_headers(self, key: Secret | None) -> RequestHeaders:
        """The headers of a request: the endpoint's own, its version, and the key in the way it wants it."""
        headers = RequestHeaders({name.lower(): value for name, value in self.headers.items()})
        if self.wire == "anthropic" and self.api_version:
            headers.setdefault("anthropic-version", self.api_version)
        if key is not None and self.auth == "bearer":
            headers.setdefault("authorization", f"Bearer {key.reveal()}")
        elif key is not None and self.auth != "none":
            headers.setdefault(self.auth, key.reveal())
        return headers


class Key(NamedTuple):
    """A key, and where it was found."""

    secret: Secret | None
    variable: str | None


class ModelAddress(NamedTuple):
    """What `provider:model` stands for."""

    endpoint: Endpoint
    model: str


def _compatible(name: str, base_url: str, key_env: str, **more: Any) -> Endpoint:
    return Endpoint(name, "openai_chat_completions", base_url, (key_env,), **more)


BUILT_IN: dict[str, Endpoint] = {
    endpoint.name: endpoint
    for endpoint in (
        Endpoint("openai", "openai_responses", "https://api.openai.com/v1", ("OPENAI_API_KEY",), dialect="openai"),
        Endpoint(
            "anthropic",
            "anthropic_messages",
            "https://api.anthropic.com",
            ("ANTHROPIC_API_KEY",),
            auth="x-api-key",
            api_version=ANTHROPIC_FIRST,
        ),
        Endpoint(
            "gemini",
            "gemini_generate_content",
            "https://generativelanguage.googleapis.com/v1beta",
            ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            auth="x-goog-api-key",
        ),
        # Its address and its account headers belong to whoever uses it, so they have to be configured.
        Endpoint("openai-codex", "openai_responses", "", ("OPENAI_CODEX_API_KEY",), quirks={"codex": True}),
        _compatible("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        _compatible("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        _compatible(
            "deepseek",
            "https://api.deepseek.com/v1",
            "DEEPSEEK_API_KEY",
            # In a tool loop it refuses a request in which an assistant message lacks its reasoning.
            quirks={
                "response_format": "json_object",
                "strict_field": False,
                "required": ["reasoning_content"],
                "known_fields": ["user"],
            },
        ),
        _compatible("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
        _compatible(
            "mistral",
            "https://api.mistral.ai/v1",
            "MISTRAL_API_KEY",
            quirks={"call_ids": "nine", "user_after_tool": False, "known_fields": ["metadata"]},
        ),
        _compatible("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
        # xAI calls its Chat Completions deprecated, and gives reasoning back only here.
        Endpoint("xai", "openai_responses", "https://api.x.ai/v1", ("XAI_API_KEY",)),
        _compatible("huggingface", "https://router.huggingface.co/v1", "HF_TOKEN"),
        # Its address is one's own resource's.
        Endpoint(
            azure.NAME, "openai_chat_completions", "", ("AZURE_OPENAI_API_KEY",), auth="api-key", dialect="openai"
        ),
        _compatible("ollama", "http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", key_required=False),
        _compatible("vllm", "http://127.0.0.1:8000/v1", "VLLM_API_KEY", key_required=False),
        _compatible("lmstudio", "http://127.0.0.1:1234/v1", "LMSTUDIO_API_KEY", key_required=False),
    )
}


def resolve(
    reference: str,
    *,
    environ: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> ModelAddress:
    """The endpoint and the model of `provider:model` (or `provider/model`). Raises errors that say what to write."""
    provider, name = split(reference)
    found = endpoint(provider, environ=environ, settings=settings)
    if not name:
        raise InvalidConfig(
            f"{reference!r} names a provider and no model",
            f"Write provider:model, such as {provider}:{_example(provider)}",
        )
    return ModelAddress(replace(found, base_url=azure.at_deployment(found.base_url, name)), name)


def split(reference: str) -> tuple[str, str]:
    """Provider and model. A colon divides them; without one, the first slash."""
    provider, colon, name = reference.partition(":")
    if not colon:
        provider, _, name = reference.partition("/")
    return provider.strip(), name.strip()


def endpoint(
    provider: str,
    *,
    environ: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Endpoint:
    """A provider as it is configured here. Raises UnknownProvider with near names, InvalidConfig for bad settings."""
    environ = os.environ if environ is None else environ
    where, configured = (
        provider_settings(environ) if settings is None else ("the settings", tables(settings, "settings"))
    )
    known = BUILT_IN.get(provider)
    if known is None and provider not in configured:
        raise _unknown(provider, [*BUILT_IN, *configured])
    found = known or Endpoint(provider, "openai_chat_completions", "", (), key_required=False)
    if provider in configured:
        with inside("providers", provider):
            found = _with_settings(found, configured[provider], f"{where}: [providers.{provider}]")
    variable = f"{_as_variable(provider)}_BASE_URL"
    if environ.get(variable):
        found = replace(found, base_url=address(environ[variable], variable), source=variable)
    if not found.base_url and provider == azure.NAME:
        found = replace(found, **azure.azure_address(environ, found.api_version)._asdict(), source=azure.RESOURCE)
    if not found.base_url:
        raise InvalidConfig(
            f"the provider {provider!r} has no address built in",
            f"Set [providers.{provider}] base_url in {SETTINGS_FILE}, or {variable}.",
        )
    return found


def endpoints(
    *, environ: Mapping[str, str] | None = None, settings: Mapping[str, Any] | None = None
) -> dict[str, "Endpoint | InvalidConfig"]:
    """Every provider there is, and for one that cannot be used as it is configured, why."""
    environ = os.environ if environ is None else environ
    configured = provider_settings(environ)[1] if settings is None else tables(settings, "settings")
    found: dict[str, Endpoint | InvalidConfig] = {}
    for name in dict.fromkeys((*BUILT_IN, *configured)):
        try:
            found[name] = endpoint(name, environ=environ, settings=settings)
        except InvalidConfig as problem:
            found[name] = problem
    return found


def _with_settings(known: Endpoint, table: Mapping[str, Any], where: str) -> Endpoint:
    changed: dict[str, Any] = {}
    for name, value in table.items():
        with inside(name):
            changed[name] = setting(name, value, where)
    version = changed.get("api_version", known.api_version)
    if "dialect" in changed and TRANSPORTS.get(changed.get("transport", known.transport)) in ("anthropic", "gemini"):
        raise InvalidConfig(
            f"{where}: dialect has no effect with this transport",
            "It is about OpenAI's formats (openai_chat_completions, openai_responses): leave it out.",
        )
    if "transport" in changed and "auth" not in changed and TRANSPORTS.get(changed["transport"]) != known.wire:
        changed["auth"] = _AUTHS.get(TRANSPORTS.get(changed["transport"]), "bearer")
    speaks_anthropic = TRANSPORTS.get(changed.get("transport", known.transport)) == "anthropic"
    if "auth" not in changed and speaks_anthropic and (changed.get("api_version") or "") >= ANTHROPIC_BEARER:
        changed["auth"] = "bearer"
    if "key_env" in changed and "key_required" not in changed:
        changed["key_required"] = bool(changed["key_env"])  # who names a variable means it
    if speaks_anthropic and not version:
        changed["api_version"] = ANTHROPIC_FIRST
    for name in ("headers", "quirks", "profile", "prices"):
        if name in changed:
            changed[name] = {**getattr(known, name), **changed[name]}
    if "base_url" in changed:
        changed["source"] = where
    return replace(known, **changed)


# --- what to tell a person --------------------------------------------------------------------------------------------


def _unknown(provider: str, known: list[str]) -> UnknownProvider:
    names = sorted({*known, "scripted"})
    # Names of services that are not built in look like others that are, and are none of them.
    near = ["gemini"] if provider in ("google", "google-gla") else get_close_matches(provider, names, n=3, cutoff=0.7)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    return UnknownProvider(
        f"there is no provider {provider!r}" if provider else "the model names no provider",
        f"{meant}There are: {', '.join(names)}. Any other that speaks a known format: "
        f"[providers.{provider or 'NAME'}] base_url in {SETTINGS_FILE}.",
    )


def _as_variable(provider: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in provider).upper()


def _example(provider: str) -> str:
    examples = {
        "openai": "gpt-5.5",
        "anthropic": "claude-opus-4-7",
        "deepseek": "deepseek-chat",
        "ollama": "qwen3",
        "gemini": "gemini-3.8-flash",
        "xai": "grok-4.7",
        "azure": "DEPLOYMENT",
    }
    return examples.get(provider, "MODEL")
