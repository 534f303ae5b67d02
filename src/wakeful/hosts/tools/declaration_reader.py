"""Reading tool declarations from outside: what is accepted, completed, refused.

    validate_declaration(raw)                 the names of the wrong fields of a client tool
    normalize(raw)                            a client tool, strictly: nothing is assumed but its source
    normalize_for_server(raw)                 a tool of the host
    normalize_for_conversation_request(raw)   either, with what goes without saying for `client/*`

Every refusal is an InvalidValue with the contract's code, the wrong fields as its path, and the reasons.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, get_args

from wakeful.contracts.bindings import read_bindings, read_client_context_bindings
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.jsonable import NotJson, plain
from wakeful.contracts.runtime_metadata import normalise_runtime
from wakeful.contracts.sensitive_names import REDACTED, hide_by_name, is_flagged
from wakeful.contracts.tools import Effect, provider_safe_name
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration

INVALID_CLIENT = "invalid_runtime_tool_declaration"
INVALID_SERVER = "invalid_server_tool_declaration"
INVALID_IN_REQUEST = "invalid_conversation_tool_declaration"
CLIENT = "client"
SLUG = r"[a-z][a-z0-9_-]*"
LISTS = ("provider_aliases", "sensitive_parameters", "categories", "modes")
FLAGS = ("mandatory", "write", "mutating", "runtime_tool")
TEXTS = ("required_capability", "category", "mode", "action_policy")

Raw = RuntimeToolDeclaration | Mapping[str, Any]


def validate_declaration(raw: Raw) -> list[str]:
    """The wrong fields of a client tool, by name; empty when it is fit. Anything but an object lacks them all."""
    return list(_wrong_client_fields(_fields(raw) if _is_object(raw) else {}))


def normalize(raw: Raw) -> RuntimeToolDeclaration:
    """A client tool in its strict form: nothing has a default but `source`, `parameters` and `runtime`."""
    return _made(raw, INVALID_CLIENT, _wrong_client_fields)


def normalize_for_server(raw: Raw, *, code: str = INVALID_SERVER) -> RuntimeToolDeclaration:
    """A tool of the host: whatever executes it, the host does."""
    return _made(raw, code, _wrong_server_fields)


def normalize_for_conversation_request(raw: Raw) -> RuntimeToolDeclaration:
    """A declaration that came with a request or a catalogue."""
    if not _is_object(raw):
        raise InvalidValue(INVALID_IN_REQUEST, "", f"a declaration is an object, not a {type(raw).__name__}")
    raw = _fields(raw)
    name = raw.get("name")
    named_client = isinstance(name, str) and name.partition("/")[0] == CLIENT
    if named_client:
        raw = {"source": CLIENT, "executor": CLIENT, "scope": "run", "description": name, **raw}
    if named_client or raw.get("executor") == CLIENT:
        return normalize(raw)
    return normalize_for_server(raw, code=INVALID_IN_REQUEST)


def _is_object(raw: Any) -> bool:
    return isinstance(raw, RuntimeToolDeclaration | Mapping)


def _fields(raw: Raw) -> dict[str, Any]:
    if isinstance(raw, RuntimeToolDeclaration):
        return raw.model_dump(mode="json", exclude_unset=True)
    return dict(raw)


def _made(raw: Raw, code: str, check: Callable[[dict[str, Any]], dict[str, str]]) -> RuntimeToolDeclaration:
    if not _is_object(raw):
        raise InvalidValue(code, "", f"a declaration is an object, not a {type(raw).__name__}")
    fields = _fields(raw)
    wrong = check(fields)
    if wrong:
        raise InvalidValue(code, ", ".join(wrong), "; ".join(f"{field} {why}" for field, why in wrong.items()))
    return RuntimeToolDeclaration.model_validate(_completed(fields))


def _completed(fields: dict[str, Any]) -> dict[str, Any]:
    """What was found right, in one spelling."""
    known = RuntimeToolDeclaration.model_fields
    fields = {name: value for name, value in fields.items() if value is not None or name not in known}
    fields["executor"] = CLIENT if fields["name"].startswith(f"{CLIENT}/") else "host"
    if fields["executor"] == CLIENT:
        fields["source"] = CLIENT
    fields["description"] = fields["description"].strip()
    fields["required_capability"] = fields.get("required_capability", "").strip()
    fields["sensitive_parameters"] = _sensitive_paths(fields)
    fields.pop("parameter_sensitivity", None)
    safe_name = provider_safe_name(fields["name"])
    fields["provider_safe_name"] = safe_name if safe_name != fields["name"] else None
    if "runtime" in fields:
        fields["runtime"] = normalise_runtime(fields["runtime"])
    if "parameter_bindings" in fields:
        fields["parameter_bindings"] = read_bindings(fields["parameter_bindings"])
    if "parameter_defaults" in fields:
        fields["parameter_defaults"] = _safe_defaults(fields)
    return fields


def _safe_defaults(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Defaults travel with the declaration: a secret does not belong there, whoever calls it one."""
    defaults: dict[str, Any] = hide_by_name(fields["parameter_defaults"])
    properties = fields.get("parameters", {}).get("properties")
    flagged = {
        name
        for name, schema in (properties if isinstance(properties, dict) else {}).items()
        if isinstance(schema, dict) and is_flagged(schema)
    }
    bound = {name for name, binding in fields.get("parameter_bindings", {}).items() if binding.sensitive}
    secret = {*fields["sensitive_parameters"], *flagged, *bound}
    return {name: REDACTED if name in secret else value for name, value in defaults.items()}


def _sensitive_paths(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Both spellings of what a declaration calls sensitive, as one list of paths."""
    declared = fields.get("parameter_sensitivity") or ()
    if isinstance(declared, Mapping):
        declared = [path for path, sensitive in declared.items() if sensitive]
    return tuple(dict.fromkeys((*fields.get("sensitive_parameters", ()), *declared)))


# --- what may be wrong -----------------------------------------------------------------------------------------------


def _wrong_client_fields(fields: dict[str, Any]) -> dict[str, str]:
    wrong = {}
    name = fields.get("name")
    if not isinstance(name, str) or not re.fullmatch(rf"{CLIENT}/{SLUG}", name):
        wrong["name"] = f"must be client/<slug> for a tool that the client executes, not {name!r}"
    if fields.get("source", CLIENT) != CLIENT:
        wrong["source"] = f"must be 'client', not {fields['source']!r}"
    if fields.get("executor") != CLIENT:
        wrong["executor"] = f"must be 'client' for a client/* tool, not {fields.get('executor')!r}"
    if fields.get("scope") != "run":
        wrong["scope"] = f"must be 'run', not {fields.get('scope')!r}"
    return {**wrong, **_wrong_shared_fields(fields)}


def _wrong_server_fields(fields: dict[str, Any]) -> dict[str, str]:
    wrong = {}
    name = fields.get("name")
    if not isinstance(name, str) or not re.fullmatch(rf"{SLUG}/{SLUG}", name):
        wrong["name"] = f"must be namespace/slug, not {name!r}"
    elif name.startswith(f"{CLIENT}/"):
        wrong["name"] = f"must not be of the namespace 'client', which is for tools that the client executes: {name!r}"
    source = fields.get("source")
    if not isinstance(source, str) or not re.fullmatch(SLUG, source):
        wrong["source"] = (
            f"must say who provides the tool, as a slug; the namespace does not stand in for it ({source!r})"
        )
    executor = fields.get("executor", "host")
    if executor == CLIENT:
        wrong["executor"] = "must not be 'client' for a tool that is not client/<slug>"
    elif not isinstance(executor, str):
        wrong["executor"] = f"must be a text, not a {type(executor).__name__}"
    if fields.get("scope", "run") != "run":
        wrong["scope"] = f"must be 'run', not {fields['scope']!r}"
    return {**wrong, **_wrong_shared_fields(fields)}


def _wrong_shared_fields(fields: Mapping[Any, Any]) -> dict[str, str]:
    wrong = {}
    description = fields.get("description")
    if not isinstance(description, str) or not description.strip():
        wrong["description"] = "must be a text that is not blank"
    if fields.get("effect", "irreversible") not in get_args(Effect):
        wrong["effect"] = f"must be one of {', '.join(get_args(Effect))}, not {fields['effect']!r}"
    for field in ("parameters", "runtime", "parameter_defaults"):
        if not isinstance(fields.get(field, {}), dict):
            wrong[field] = "must be an object"
    for field, value in fields.items():
        if not isinstance(field, str):
            wrong[str(field)] = "must have a text as its name"
            continue
        try:
            plain(value if field != "runtime" else None, field)  # of `runtime`, what is not JSON is dropped
        except NotJson as error:
            wrong.setdefault(field, str(error))
    wrong.update(_wrong_kinds(fields))
    return {**wrong, **_wrong_bindings(fields)}


def _wrong_kinds(fields: Mapping[str, Any]) -> dict[str, str]:
    """Of fields with a meaning: a text where a flag belongs would silently mean the opposite."""
    wrong = {}
    for field, value in fields.items():
        if value is None:
            continue
        if field in LISTS and not _are_texts(value):
            wrong[field] = "must be a list of texts"
        elif field in FLAGS and not isinstance(value, bool):
            wrong[field] = f"must be true or false, not {value!r}"
        elif (field in TEXTS or str(field).startswith("action_policy_")) and not isinstance(value, str):
            wrong[str(field)] = f"must be a text, not a {type(value).__name__}"
        elif field == "parameter_sensitivity" and not (isinstance(value, Mapping) or _are_texts(value)):
            wrong[field] = "must be a list of paths, or an object path -> true or false"
    return wrong


def _wrong_bindings(fields: Mapping[str, Any]) -> dict[str, str]:
    wrong: dict[str, str] = {}
    found: dict[str, set[str]] = {}
    for field, read in (
        ("parameter_bindings", read_bindings),
        ("client_context_bindings", read_client_context_bindings),
    ):
        if fields.get(field) is None:
            continue
        try:
            found[field] = set(read(fields[field]))
        except InvalidValue as error:
            wrong[field] = f"{error.path}: {error.reason}" if error.path else error.reason
    twice = sorted(found.get("parameter_bindings", set()) & found.get("client_context_bindings", set()))
    if twice:
        wrong["client_context_bindings"] = f"binds {twice[0]!r}, which parameter_bindings binds too"
    return wrong


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(entry, str) for entry in value)
