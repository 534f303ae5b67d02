"""Where notices go, by name: `[notify.NAME]` in `wakeful.toml`. An agent says `notify: {to: NAME}`.

    [notify.phone]
    to_env = "PHONE_URL"                 # the variable that holds the address; or `to`, the address or a command
    quiet = "22:00-07:00"
    timezone = "Europe/Berlin"

`[notify.default]` holds for agents that say nothing. So the file of an agent holds no address. What the agent says
itself wins over what stands here.
"""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from wakeful.contracts.errors import InvalidConfig, inside
from wakeful.contracts.notices import NotifyTarget
from wakeful.settings.owner_file import OwnerFile, check_names, owner_file
from wakeful.settings.spend_windows import zone_named

TABLE = "notify"
DEFAULT = "default"
KNOWN = ("to", "to_env", "on", "quiet", "digest", "timezone", "allow_private")


def owner_targets(
    environ: Mapping[str, str] = os.environ, file: OwnerFile | None = None
) -> dict[str, Mapping[str, Any]]:
    """The tables of the owner's file, checked. Raises InvalidConfig with the place."""
    file = owner_file(environ) if file is None else file
    found: dict[str, Mapping[str, Any]] = {}
    for name, table in file.table(TABLE).items():
        with inside(TABLE, name):
            found[name] = _checked(table, f"{file.path}: [{TABLE}.{name}]")
    return found


def resolve_target(target: NotifyTarget, environ: Mapping[str, str] = os.environ) -> NotifyTarget:
    """A target with the address that its name stands for. Raises InvalidConfig."""
    if not target.is_name:
        return target
    known = owner_targets(environ)
    name = str(target.to)
    if name not in known:
        raise _unknown(name, known, owner_file(environ))
    table = dict(known[name])
    variable = table.pop("to_env", None)
    if variable is not None:
        table["to"] = environ.get(variable, "")
        if not table["to"]:
            raise InvalidConfig(f"[{TABLE}.{name}] names the variable {variable}, which is not set", f"Set {variable}.")
    own = {field: getattr(target, field) for field in target.model_fields_set if field != "to"}
    try:
        return NotifyTarget(**{**table, **own})
    except ValidationError as error:  # the variable holds no address; its value may be a secret, and is not shown
        hint = "It has to be a http or https URL."
        raise InvalidConfig(f"[{TABLE}.{name}] has no usable address: {error.errors()[0]['type']}", hint) from None


def default_target(environ: Mapping[str, str] = os.environ) -> NotifyTarget | None:
    """Where notices of agents go that say nothing; None: the owner's file does not say either."""
    return NotifyTarget(to=DEFAULT) if DEFAULT in owner_targets(environ) else None


def check_target(target: NotifyTarget | None, environ: Mapping[str, str] = os.environ) -> None:
    """Raises InvalidConfig for a name that the owner's file does not have, as far as that file can be read."""
    if target is None or not target.is_name:
        return
    try:
        file = owner_file(environ)
        known = owner_targets(environ, file)
    except InvalidConfig:
        return  # what is wrong with that file is told about that file
    if str(target.to) not in known:
        raise _unknown(str(target.to), known, file).within(TABLE, "to")


def _unknown(name: str, known: Mapping[str, Any], file: OwnerFile) -> InvalidConfig:
    near = get_close_matches(name, known, n=1)
    meant = f"Did you mean {near[0]}? " if near else ""
    there = f"There are: {', '.join(known)}." if known else f'Write [{TABLE}.{name}] with to = "https://..." there.'
    return InvalidConfig(f"notify: there is no [{TABLE}.{name}] in {file.path}", f"{meant}{there}")


def _checked(table: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(table, Mapping):
        raise InvalidConfig(f"{where} is {table!r}", f"Write [{TABLE}.NAME] above its lines.")
    check_names(table, KNOWN, f"{where} has")
    if ("to" in table) == ("to_env" in table):
        hint = 'Write to = "https://...", or to_env = "VARIABLE" with the name of a variable that holds it.'
        raise InvalidConfig(f"{where} has {'to and to_env' if 'to' in table else 'no address'}", hint)
    if not isinstance(table.get("to_env", ""), str):
        raise InvalidConfig(f"{where} to_env is {table['to_env']!r}", "Write the name of a variable.").within("to_env")
    try:
        target = NotifyTarget(**{"to": "https://example.invalid", **{k: v for k, v in table.items() if k != "to_env"}})
    except ValidationError as error:
        wrong = error.errors()[0]
        said = wrong["msg"].removeprefix("Value error, ")
        raise InvalidConfig(f"{where} {'.'.join(map(str, wrong['loc'])) or 'to'}: {said}").within(
            *wrong["loc"]
        ) from None
    if target.is_name:
        raise InvalidConfig(f"{where} to is {target.to!r}", "Write a URL or the words of a command.").within("to")
    with inside("timezone"):
        zone_named(target.timezone, where)
    return table
