"""Tool declarations as hosts hand them in: `RuntimeToolDeclaration`, with the rules of what may be offered.

Two forms. A *client* tool (`client/<slug>`) runs with whoever asked, so its executor is `client` and nothing else. A
*server* tool is run by the host's executor, under any other namespace and with a `source` that says who provides it.
What the runtime itself works with is `contracts.tools.ToolDeclaration`; `to_declaration` makes one.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import ConfigDict, model_validator

from wakeful.contracts.errors import InvalidValue, NotBuiltYet
from wakeful.contracts.jsonable import JsonDict, NotJson, plain
from wakeful.contracts.tools import Effect, ToolDeclaration
from wakeful.contracts.values import Value

INVALID_CLIENT = "invalid_runtime_tool_declaration"
INVALID_SERVER = "invalid_conversation_tool_declaration"
SLUG = re.compile(r"[a-z][a-z0-9_-]*")
LATER = (
    "parameter_bindings",
    "client_context_bindings",
    "parameter_defaults",
    "required_capability",
    "action_policy",
)
"""Fields that promise something about execution which nothing keeps yet."""


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
    """Product-neutral execution hints; the core carries them."""
    provider_aliases: tuple[str, ...] = ()
    """Other names under which a model may call it."""
    sensitive_parameters: tuple[str, ...] = ()
    """Dotted paths, `*` for list items."""
    effect: Effect = "irreversible"
    """What a repeat would do; a host that says nothing is taken to mean the worst."""

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

    def to_declaration(self) -> ToolDeclaration:
        """What the runtime holds the tool to."""
        return ToolDeclaration(
            name=self.name,
            description=self.description,
            input_schema=_as_json_schema(self.parameters, self.required_parameters),
            effect=self.effect,
            external=True,
            sensitive_parameters=self.sensitive_parameters,
        )


def provider_safe_name(name: str) -> str:
    """A name every provider accepts: `client/search-docs` as `client__search__docs`."""
    safe = re.sub(r"[^A-Za-z0-9_]+", "__", name).strip("_")
    return safe if safe[:1].isalpha() else f"tool_{safe}"


def normalize_for_conversation_request(raw: RuntimeToolDeclaration | Mapping[str, Any]) -> RuntimeToolDeclaration:
    """A declaration that came with a request, checked and completed. Raises InvalidValue naming the fields."""
    if isinstance(raw, RuntimeToolDeclaration):
        return raw
    if not isinstance(raw, Mapping):
        raise InvalidValue(INVALID_SERVER, "", f"a declaration is an object, not a {type(raw).__name__}")
    fields = dict(raw)
    _refuse_later_parts(fields)
    name = fields.get("name")
    is_client = fields.get("executor") == "client" or (isinstance(name, str) and name.split("/")[0] == "client")
    if is_client:
        fields = _with_client_defaults(fields)
    wrong = _wrong_client_fields(fields) if is_client else _wrong_server_fields(fields)
    wrong.update(_wrong_shared_fields(fields))
    if wrong:
        reasons = "; ".join(f"{field} {reason}" for field, reason in wrong.items())
        raise InvalidValue(INVALID_CLIENT if is_client else INVALID_SERVER, ", ".join(wrong), reasons)
    if not is_client:
        fields["executor"] = "host"
    fields["description"] = fields["description"].strip()
    fields["sensitive_parameters"] = _sensitive_paths(fields)
    fields.pop("parameter_sensitivity", None)
    return RuntimeToolDeclaration.model_validate(fields)


def _with_client_defaults(fields: dict[str, Any]) -> dict[str, Any]:
    """Requests may leave out what goes without saying for a client tool, and only what it does."""
    name = fields.get("name")
    if not isinstance(name, str) or not name.startswith("client/"):
        return fields
    return {"source": "client", "executor": "client", "scope": "run", "description": name, **fields}


def _wrong_client_fields(fields: Mapping[str, Any]) -> dict[str, str]:
    wrong = {}
    name = fields.get("name")
    if not isinstance(name, str) or not re.fullmatch(rf"client/{SLUG.pattern}", name):
        wrong["name"] = f"must be client/<slug> for a tool that the client executes, not {name!r}"
    if fields.get("source", "client") != "client":
        wrong["source"] = f"must be 'client', not {fields['source']!r}"
    if fields.get("executor") != "client":
        wrong["executor"] = f"must be 'client' for a client/* tool, not {fields.get('executor')!r}"
    return wrong


def _wrong_server_fields(fields: Mapping[str, Any]) -> dict[str, str]:
    wrong = {}
    name = fields.get("name")
    if not isinstance(name, str) or not re.fullmatch(rf"{SLUG.pattern}/{SLUG.pattern}", name):
        wrong["name"] = f"must be namespace/slug, not {name!r}"
    source = fields.get("source")
    if not isinstance(source, str) or not SLUG.fullmatch(source):
        wrong["source"] = (
            f"must say who provides the tool, as a slug; the namespace does not stand in for it ({source!r})"
        )
    return wrong


def _wrong_shared_fields(fields: Mapping[str, Any]) -> dict[str, str]:
    wrong = {}
    description = fields.get("description")
    if not isinstance(description, str) or not description.strip():
        wrong["description"] = "must be a text that is not blank"
    if fields.get("scope", "run") != "run":
        wrong["scope"] = f"must be 'run', not {fields['scope']!r}"
    if fields.get("effect", "irreversible") not in get_args(Effect):
        wrong["effect"] = f"must be one of {', '.join(get_args(Effect))}, not {fields['effect']!r}"
    for field in ("parameters", "runtime"):
        if not isinstance(fields.get(field, {}), dict):
            wrong[field] = "must be an object"
    for field, value in fields.items():
        try:
            plain(value, field)
        except NotJson as error:
            wrong.setdefault(field, str(error))
    for field in ("provider_aliases", "sensitive_parameters"):
        listed = fields.get(field, ())
        if not isinstance(listed, list | tuple) or not all(isinstance(entry, str) for entry in listed):
            wrong[field] = "must be a list of texts"
    return wrong


def _sensitive_paths(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Both spellings of what a declaration calls sensitive, as one list of paths."""
    declared = fields.get("parameter_sensitivity", ())
    if isinstance(declared, Mapping):
        declared = [path for path, sensitive in declared.items() if sensitive]
    extra = [path for path in declared if isinstance(path, str)] if isinstance(declared, list | tuple) else []
    return tuple(dict.fromkeys((*fields.get("sensitive_parameters", ()), *extra)))


def _refuse_later_parts(fields: Mapping[str, Any]) -> None:
    for field, value in fields.items():
        if value and (field in LATER or field.startswith("action_policy_")):
            raise NotBuiltYet(
                f"the field {field!r} of a tool declaration",
                "nothing would keep what it promises; leave it out and let the executor decide",
            )
    runtime = fields.get("runtime")
    if isinstance(runtime, Mapping) and runtime.get("executor_target"):
        raise NotBuiltYet("runtime.executor_target of a tool declaration", "every call goes to the tool_executor given")


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
