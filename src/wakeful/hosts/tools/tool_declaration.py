"""Tool declarations as hosts hand them in: `RuntimeToolDeclaration`.

Two forms (`hosts.tools.declaration_reader` reads them). A *client* tool (`client/<slug>`) runs with whoever asked, so
its executor is `client` and nothing else. A *server* tool is run by the host's executor, under any other namespace and
with a `source` that says who provides it. What the runtime itself works with is `contracts.tools.ToolDeclaration`;
`to_declaration` makes one.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from pydantic import ConfigDict, model_validator

from wakeful.contracts.bindings import Binding, ParameterPlan, read_client_context_bindings
from wakeful.contracts.jsonable import JsonAny, JsonDict, plain
from wakeful.contracts.parameter_schemas import relaxed, without
from wakeful.contracts.runtime_metadata import is_repeatable
from wakeful.contracts.tools import Effect, ToolDeclaration, provider_safe_name
from wakeful.contracts.values import Value


class RuntimeToolDeclaration(Value):
    """A tool as a host declares it. JSON fields of the host's own are kept as they are."""

    model_config = ConfigDict(extra="allow")

    name: str
    """`namespace/slug`: the family the model sees, which is not who executes it."""
    source: str
    description: str
    parameters: JsonDict = {}
    """JSON Schema of the arguments."""
    executor: Literal["client", "host"]
    scope: Literal["run"] = "run"
    runtime: JsonDict = {}
    """Product-neutral execution hints; the core carries them. `executor_target` names who executes it."""
    provider_safe_name: str | None = None
    """The name providers accept, where it is another."""
    provider_aliases: tuple[str, ...] = ()
    """Other names under which a model may call it."""
    parameter_bindings: dict[str, Binding] = {}
    """Parameters that come from a context, by name."""
    client_context_bindings: JsonAny = None
    """The same for keys of the client's context: a list of names, or an object parameter -> key."""
    parameter_defaults: JsonDict = {}
    """Shown to models; a secret in it is `[redacted]` and never sent to an executor."""
    required_capability: str = ""
    """Capabilities that the principal's ceiling must permit before the tool runs."""
    sensitive_parameters: tuple[str, ...] = ()
    """Dotted paths, `*` for list items."""
    effect: Effect = "irreversible"
    """Whether a retry is safe. Default: irreversible."""
    reads_private: bool = False
    """The result holds the owner's private data."""
    leaves_machine: bool = False
    """Data of a call leaves the machine."""
    untrusted: bool | None = None
    """The result may hold text from strangers. None: of a client's tool yes, of the host's own when it leaves the
    machine."""
    content: tuple[str, ...] = ()
    """Parameters that hold free text, by dotted path: where their words come from is not compared."""
    parallel_safe: bool | None = None
    """May it run beside others? A tool that changes something never may; a client's tool has to declare it."""
    requires_exclusive_lock: str | None = None
    """A name that no two running calls may hold together."""

    @model_validator(mode="after")
    def _own_fields_are_json(self) -> "RuntimeToolDeclaration":
        plain(self.model_extra or {})
        return self

    @property
    def required_parameters(self) -> tuple[str, ...]:
        """Names that must be given: listed by the schema, or marked `required: true` on the property."""
        listed = self.parameters.get("required")
        names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        properties = self.parameters.get("properties")
        for name, schema in (properties if isinstance(properties, dict) else {}).items():
            if isinstance(schema, dict) and schema.get("required") is True and name not in names:
                names.append(name)
        return tuple(names)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name a call may use, the canonical one first."""
        return tuple(dict.fromkeys((self.name, provider_safe_name(self.name), *self.provider_aliases)))

    @property
    def is_clients(self) -> bool:
        """Does whoever asked run it, and not the host?"""
        return self.executor == "client"

    @property
    def executor_target(self) -> str:
        """The executor of the tool, when it is not the host's own."""
        target = self.runtime.get("executor_target")
        return target if isinstance(target, str) else ""

    @cached_property
    def plan(self) -> ParameterPlan:
        """How its parameters are put together."""
        client = read_client_context_bindings(self.client_context_bindings) if self.client_context_bindings else {}
        return ParameterPlan(
            bindings={**client, **self.parameter_bindings},
            defaults=self.parameter_defaults,
            required=self.required_parameters,
        )

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The parameters as JSON Schema proper: what a call's final parameters must fit."""
        return _as_json_schema(self.parameters, self.required_parameters)

    @cached_property
    def visible_schema(self) -> dict[str, Any]:
        """The schema for the model, without parameters that the model must not give."""
        plan = self.plan
        return relaxed(without(self.input_schema, plan.authoritative), optional=plan.fillable, ignored=())

    def to_declaration(self) -> ToolDeclaration:
        """The schema for the model's own arguments; the final parameters must match `input_schema`."""
        plan = self.plan
        stated: dict[str, Any] = {}
        if self.parallel_safe is not None or self.effect != "pure":
            stated["parallel_safe"] = self.parallel_safe is True and self.effect == "pure"
        return ToolDeclaration(
            name=self.name,
            description=self.description,
            input_schema=relaxed(self.input_schema, optional=plan.fillable, ignored=plan.authoritative),
            effect=self.effect,
            locks=(self.requires_exclusive_lock,) if self.requires_exclusive_lock else (),
            reads_private=self.reads_private,
            leaves_machine=self.leaves_machine,
            # The host's own executor is the owner's program, as a function of a library run is.
            untrusted=self.untrusted if self.untrusted is not None or self.is_clients else self.leaves_machine,
            content=self.content,
            external=True,
            answered_by="client" if self.is_clients else "code",
            runtime_owner="client" if self.is_clients else "local",
            duplicate_policy="repeatable" if is_repeatable(self.runtime) else None,
            sensitive_parameters=tuple(dict.fromkeys((*self.sensitive_parameters, *plan.sensitive))),
            **stated,
        )


def _as_json_schema(parameters: Mapping[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    """The parameters as JSON Schema proper: `required: true` on a property becomes an entry of the object's list."""
    schema: dict[str, Any] = {"type": "object", **parameters}
    properties = schema.get("properties")
    if isinstance(properties, dict):
        schema["properties"] = {
            name: {key: value for key, value in inner.items() if not (key == "required" and isinstance(value, bool))}
            if isinstance(inner, dict)
            else inner
            for name, inner in properties.items()
        }
    if required:
        schema["required"] = list(required)
    return schema
