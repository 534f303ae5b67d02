"""Settings of a model request, by what they mean: one typed set that each wire format writes in its own words.

A misspelt name or a value of the wrong type is an error where the settings are made. Fields that only one vendor knows
go under that vendor's name. A model that cannot take a setting is asked without it, and the run says so once.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, ValidationError

from wakeful.contracts.described_values import DescribedValue
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.setting_names import (
    BELONGS,
    FROM_THE_REQUEST,
    INSTEAD,
    NOT_READ,
    VENDORS,
    Capability,
    check_fields_of_the_request,
    invalid_setting,
    unknown_setting,
)

Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
"""How hard to think. A model that does not know a word is told the highest below it that it knows."""
ToolChoice: TypeAlias = Literal["auto", "none", "required"] | tuple[str, ...]
"""Names: the model has to call one of these tools."""


def _texts(value: Any) -> Any:
    """A list, or one text, as a tuple of texts."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _listed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _choice(value: Any) -> Any:
    value = value if value in ("auto", "none", "required") else _texts(value)
    if value == ():
        raise ValueError("no tool is named")
    return value


def _thinking(value: Any) -> Any:
    if value is True or (value == 0 and value is not False):
        raise ValueError("it is not clear how much")
    return value


def _cache(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError("a number is neither yes nor no")
    return value


def _bias(value: Any) -> Any:
    """Token ids are keys of a JSON object, so they are texts there."""
    return {str(token): bias for token, bias in value.items()} if isinstance(value, Mapping) else value


_Number: TypeAlias = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Penalty: TypeAlias = Annotated[_Number, Field(ge=-2, le=2)]
_Flag: TypeAlias = Annotated[bool, Field(strict=True)]
_Text: TypeAlias = Annotated[str, Field(strict=True, min_length=1)]
_Count: TypeAlias = Annotated[int, Field(strict=True, ge=1)]
_Bias: TypeAlias = Annotated[int, Field(strict=True, ge=-100, le=100)]
_Names: TypeAlias = Annotated[
    tuple[_Text, ...], BeforeValidator(_texts, json_schema_input_type=str | tuple[_Text, ...])
]
_Capabilities: TypeAlias = Annotated[tuple[Capability, ...], BeforeValidator(_listed)]
_Choice: TypeAlias = Annotated[
    Literal["auto", "none", "required"] | tuple[_Text, ...],
    BeforeValidator(_choice, json_schema_input_type=str | tuple[_Text, ...]),
]
_Thinking: TypeAlias = Annotated[Effort | _Count | Literal[False], BeforeValidator(_thinking)]
_Cache: TypeAlias = Annotated[Literal[True, False, "5m", "1h"], BeforeValidator(_cache)]


class ModelSettings(DescribedValue):
    """Settings of a model request: `ModelSettings(temperature=0.2, max_tokens=500)`, or a dict with the same keys.

    Raises UnknownSetting for a name that does not exist, InvalidConfig for a value of the wrong type.
    """

    temperature: Annotated[_Number, Field(ge=0, le=2)] | None = None
    """How random the reply is, from 0 to 2."""
    top_p: Annotated[_Number, Field(ge=0, le=1)] | None = None
    """The share of likely tokens that the reply is chosen from, from 0 to 1."""
    max_tokens: _Count | None = None
    """The most tokens of one reply."""
    stop: _Names | None = None
    """Texts at which the reply ends; one text or a list."""
    seed: Annotated[int, Field(strict=True)] | None = None
    """Makes replies repeatable, as far as the provider can."""
    presence_penalty: _Penalty | None = None
    """Makes tokens that occurred less likely, from -2 to 2."""
    frequency_penalty: _Penalty | None = None
    """Makes tokens less likely the more often they occurred, from -2 to 2."""
    logit_bias: Annotated[dict[str, _Bias], BeforeValidator(_bias)] | None = None
    """Token ids and how much more or less likely they become, from -100 to 100."""
    tool_choice: _Choice | None = None
    """`auto`, `required` (call a tool), `none` (call no tool), the name of a tool, or a list of names (call one of
    them). `required` and names apply to the first reply of a run; then the model decides, or it could never answer."""
    parallel_tool_calls: _Flag | None = None
    """Whether one reply may call several tools."""
    thinking: _Thinking | None = None
    """`low`, `medium`, `high`, `xhigh`, `max`, a number of tokens, or False. A model that knows no such word gets the
    highest one below it."""
    cache: _Cache | None = None
    """Whether the prompt is cached, and for how long. The default is yes, for as long as the provider likes."""
    service_tier: _Text | None = None
    """`auto`, `default`, or a tier of the provider such as `flex` or `priority`."""
    user: _Text | None = None
    """An id of the end user that says nothing about the person."""
    metadata: dict[str, Annotated[str, Field(strict=True)]] | None = None
    """Texts that the provider stores with the request."""
    timeout: Annotated[_Number, Field(gt=0)] | None = None
    """Seconds that one request may take, from its start to the end of its answer; 900 by default."""
    first_byte_timeout: Annotated[_Number, Field(gt=0)] | None = None
    """Seconds until an answer begins; 60 by default where it is streamed, else as long as `timeout`."""
    extra_headers: dict[str, Annotated[str, Field(strict=True)]] | None = None
    """HTTP headers for the provider of the agent's model; no other provider is sent them."""
    extra_body: JsonDict | None = None
    """Fields of the request body for the provider of the agent's model, as they are; no other provider is sent them."""
    anthropic: JsonDict | None = None
    """Fields of Anthropic's Messages API: `{"top_k": 40}`."""
    openai: JsonDict | None = None
    """Fields of OpenAI's APIs: `{"verbosity": "low"}`."""
    gemini: JsonDict | None = None
    """Fields of Gemini's API: `{"safety_settings": [...]}`."""
    stream: _Flag | None = None
    """False: replies are not streamed. The facts are the same."""
    require: _Capabilities | None = None
    """Capabilities that a model must have to be asked."""
    accept_gap: _Capabilities | None = None
    """Capabilities that may be missing although the run needs them."""

    if TYPE_CHECKING:  # more is taken than is kept: a text stands for a list of one

        def __init__(
            self,
            *,
            temperature: float | None = None,
            top_p: float | None = None,
            max_tokens: int | None = None,
            stop: str | Sequence[str] | None = None,
            seed: int | None = None,
            presence_penalty: float | None = None,
            frequency_penalty: float | None = None,
            logit_bias: Mapping[str, int] | Mapping[int, int] | None = None,
            tool_choice: str | Sequence[str] | None = None,
            parallel_tool_calls: bool | None = None,
            thinking: Effort | int | Literal[False] | None = None,
            cache: Literal[True, False, "5m", "1h"] | None = None,
            service_tier: str | None = None,
            user: str | None = None,
            metadata: Mapping[str, str] | None = None,
            timeout: float | None = None,
            first_byte_timeout: float | None = None,
            extra_headers: Mapping[str, str] | None = None,
            extra_body: Mapping[str, Any] | None = None,
            anthropic: Mapping[str, Any] | None = None,
            openai: Mapping[str, Any] | None = None,
            gemini: Mapping[str, Any] | None = None,
            stream: bool | None = None,
            require: Sequence[Capability] | None = None,
            accept_gap: Sequence[Capability] | None = None,
        ) -> None: ...

    else:

        def __init__(self, **given: Any) -> None:
            for name in given:
                if name not in type(self).model_fields:
                    raise unknown_setting(name, type(self).model_fields)
            try:
                super().__init__(**given)
            except ValidationError as error:
                raise invalid_setting(error, given) from None
            check_fields_of_the_request(self)

    def written(self) -> dict[str, Any]:
        """The settings that were given, as JSON data."""
        return self.model_dump(mode="json", exclude_none=True, exclude_unset=True)

    def updated(self, changes: "ModelSettings") -> "ModelSettings":
        """These settings with those that were set in `changes`; objects are merged, None takes a setting back."""
        merged = self.written()
        for name in changes.model_fields_set:
            value = getattr(changes, name)
            merged[name] = {**merged.get(name, {}), **value} if isinstance(value, dict) else value
        return ModelSettings(**{name: value for name, value in merged.items() if value is not None})

    def without(self, *names: str) -> "ModelSettings":
        """These settings without some of them."""
        return ModelSettings(**{name: value for name, value in self.written().items() if name not in names})

    def vendor(self, name: str) -> dict[str, Any]:
        """The fields for one vendor; none for a name that is no vendor's."""
        fields: dict[str, Any] = (getattr(self, name) if name in VENDORS else None) or {}
        return fields


def provider_of(model_ref: str) -> str:
    """The provider in `provider:model` or `provider/model`."""
    return re.split("[:/]", model_ref, maxsplit=1)[0]


def owner_of(model: object) -> str:
    """Whose server a model is asked at: its provider's, or, of an address in code, that address's."""
    if isinstance(model, str):
        return provider_of(model)
    return str(getattr(model, "owner", None) or provider_of(str(getattr(model, "ref", ""))))


def checked_settings(who: str, settings: "ModelSettings | Mapping[str, Any] | None") -> ModelSettings:
    """Settings as a program or a file gives them. Raises UnknownSetting or InvalidConfig, naming whose they are."""
    if isinstance(settings, ModelSettings):
        return settings
    if settings is None:
        return ModelSettings()
    if not isinstance(settings, Mapping):
        raise InvalidConfig(f"{who}: settings={settings!r}", 'give ModelSettings or a dict: {"temperature": 0.2}')
    try:
        return ModelSettings(**{str(name): value for name, value in settings.items()})
    except InvalidConfig as error:
        raise type(error)(f"{who}: {error.message}", error.hint) from None


# --- what was stored --------------------------------------------------------------------------------------------------


def stored_settings(data: Mapping[str, Any]) -> ModelSettings:
    """Settings as a turn wrote them down, also before they were typed: then every field stood beside the others.

    A field that has no place today was sent as it is, and still is.
    """
    known: dict[str, Any] = {}
    placed: dict[str, Any] = {}
    for name, value in data.items():
        if value is None:
            continue
        if name in (*VENDORS, "extra_body"):
            placed.setdefault(name, {}).update(value)
        elif name in ModelSettings.model_fields and not (name == "thinking" and isinstance(value, Mapping)):
            known[name] = value
        elif name in ("max_output_tokens", "max_completion_tokens", "stop_sequences"):
            known.setdefault(INSTEAD[name], value)
        elif name in FROM_THE_REQUEST or name in NOT_READ:
            continue
        elif name in ("reasoning_effort", "effort") and value in ("low", "medium", "high"):
            known.setdefault("thinking", value)
        elif name == "effort":
            placed.setdefault("anthropic", {})["output_config"] = {"effort": value}
        else:
            elsewhere = {"thinking": "anthropic", "reasoning_effort": "openai"}
            place = elsewhere.get(name) or BELONGS.get(name, "extra_body")
            placed.setdefault(place, {})[name] = value
    try:
        return ModelSettings(**placed, **known)
    except InvalidConfig:
        # A value of another type than today's was sent as it is, too.
        fits = {name: value for name, value in known.items() if _fits(name, value)}
        rest = {name: value for name, value in known.items() if name not in fits and name not in FROM_THE_REQUEST}
        body = {**placed.pop("extra_body", {}), **rest}
        return ModelSettings(**placed, **fits, extra_body=body)


def _fits(name: str, value: Any) -> bool:
    try:
        ModelSettings(**{name: value})
    except InvalidConfig:
        return False
    return True
