"""Where a parameter's value comes from when it is not the model's to give.

A binding names a context and a dotted path in it. An *authoritative* one takes the parameter away from the model: what
the model writes for it is thrown away, and its schema no longer shows it. A plain one only fills what the model left
out.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import Field

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.jsonable import JsonAny, JsonDict
from wakeful.contracts.sensitive_names import REDACTED, is_sensitive
from wakeful.contracts.validation import validated
from wakeful.contracts.values import Value

ContextSource: TypeAlias = Literal["context", "client_context", "caller_context", "runtime_context"]


class Binding(Value):
    """One parameter's place in a context."""

    source: ContextSource
    path: str = Field(min_length=1, pattern=r"^[^.]+(\.[^.]+)*$")
    """Dotted: `customer.id`."""
    sensitive: bool = Field(False, strict=True)
    """The value is a secret: it is redacted wherever the parameter is shown."""
    default: JsonAny = None
    authoritative: bool = Field(False, strict=True)

    def __str__(self) -> str:
        return f"{self.source}.{self.path}"


class ParameterPlan(Value):
    """How the parameters of a tool are put together, beside what the model gives."""

    bindings: dict[str, Binding] = {}
    defaults: JsonDict = {}
    required: tuple[str, ...] = ()
    """Names without which the call does not run."""

    @property
    def authoritative(self) -> tuple[str, ...]:
        """Parameters that are not the model's to give."""
        return tuple(name for name, binding in self.bindings.items() if binding.authoritative)

    @property
    def fillable(self) -> tuple[str, ...]:
        """Parameters that may be there although the model did not give them."""
        return tuple(dict.fromkeys((*self.bindings, *self.defaults)))

    @property
    def sensitive(self) -> tuple[str, ...]:
        return tuple(name for name, binding in self.bindings.items() if binding.sensitive)


NO_PLAN = ParameterPlan()


def read_binding(raw: Any) -> Binding:
    """A binding as an object or as the compact text `source.path`. Raises InvalidValue saying what is wrong with it."""
    if isinstance(raw, str):
        source, _, path = raw.partition(".")
        raw = {"source": source, "path": path}
    return validated(Binding, raw, "invalid_binding")


def read_bindings(raw: Any) -> dict[str, Binding]:
    """`parameter_bindings`: an object by parameter. Raises InvalidValue naming the parameter."""
    if not isinstance(raw, Mapping):
        raise InvalidValue("invalid_binding", "", f"must be an object by parameter, not a {type(raw).__name__}")
    bindings = {}
    for name, given in raw.items():
        if not isinstance(name, str) or not name:
            raise InvalidValue("invalid_binding", str(name), "a parameter's name is a text that is not empty")
        try:
            bindings[name] = _safe(name, read_binding(given))
        except InvalidValue as error:
            where = f"{name}.{error.path}" if error.path else name
            raise InvalidValue("invalid_binding", where, error.reason) from None
    return bindings


def read_client_context_bindings(raw: Any) -> dict[str, Binding]:
    """A list of names, or an object parameter -> key of the client's context. Raises InvalidValue."""
    if isinstance(raw, list | tuple):
        raw = {name: name for name in raw if isinstance(name, str)} if all(isinstance(n, str) for n in raw) else None
    if not isinstance(raw, Mapping) or not all(isinstance(key, str) and key for key in raw.values()):
        raise InvalidValue("invalid_binding", "", "must be a list of names, or an object parameter -> context key")
    return read_bindings({name: {"source": "client_context", "path": key} for name, key in raw.items()})


def _safe(name: str, binding: Binding) -> Binding:
    """A default travels with the declaration, so it is no place for a secret."""
    if binding.default is not None and (binding.sensitive or is_sensitive(name)):
        return binding.model_copy(update={"default": REDACTED})
    return binding
