"""The settings that are in force in this process, and where each comes from: a variable, a line of the owner's file, or
nobody, which is the default.

Addresses that are secrets by themselves (a topic of notices, a heartbeat) are shown without their path, headers without
their values.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.file_problems import FileProblem
from wakeful.contracts.owner_settings import OwnerSettings
from wakeful.contracts.sensitive_names import REDACTED
from wakeful.decisions.secret_shapes import hide_shapes_in
from wakeful.service.owner_terms import OwnerTerms
from wakeful.settings.file_lines import NO_LINES, FieldPath, FileLines, toml_lines
from wakeful.settings.home import home
from wakeful.settings.model_rules import VARIABLE as OFFLINE
from wakeful.settings.owner_file import OwnerFile, owner_file, read_owner_file
from wakeful.settings.store_file import VARIABLE as STORE
from wakeful.settings.store_file import default_store, home_store
from wakeful.tools.local.output_budget import DEFAULT_SETTING, MAX_SETTING, OutputBudget
from wakeful.views.settings_report import SettingRecord, SettingsReport

PREFIX = "WAKEFUL_"
VARIABLES: Mapping[FieldPath, str] = {
    ("store",): STORE,
    ("models", "offline"): OFFLINE,
    ("runtime", DEFAULT_SETTING): f"{PREFIX}{DEFAULT_SETTING.upper()}",
    ("runtime", MAX_SETTING): f"{PREFIX}{MAX_SETTING.upper()}",
}
"""Variables that say the same as a setting, and win over it."""
SHOWN_SCHEMES = ("http", "https")
SECRET_ADDRESSES = ("notify", "heartbeat", "telemetry")
"""Tables whose addresses open something by themselves."""
NO_SECRETS = (
    "AGENT_ID", "CONFIG", "CONNECT", "DEFAULT_TOOL_OUTPUT_TOKENS", "HOME", "MAX_", "OFFLINE", "PROVIDER_PROBE_SECONDS",
    "STORE", "WORK_ITEM_",
)  # fmt: skip
"""Beginnings of variables, behind the prefix, whose values are no secrets."""


def settings_report(held: OwnerTerms | None) -> SettingsReport:
    """Of a runtime at work, which holds what the file said when it was last read; None: of the file as it is.

    Blocks on the disk. Raises InvalidConfig for a file that cannot be read where none is held.
    """
    file = owner_file()
    lines = _lines(file)
    return SettingsReport(
        home=str(home()),
        store=str(default_store()),
        settings_file=str(file.path),
        has_file=file.path.is_file(),
        is_daemon=held is not None,
        settings=tuple(_records(file, lines)),
        variables={name: _variable(name, value) for name, value in sorted(os.environ.items()) if _is_ours(name, value)},
        problems=tuple(_differences(held, file)) if held is not None else (),
    )


def _differences(held: OwnerTerms, file: OwnerFile) -> Iterator[FileProblem]:
    """Why the file on the disk is not what is in force."""
    yield from held.problems
    if held.is_changed():
        yield FileProblem(
            place=str(file.path),
            message="it was changed, and the runtime at work has not read it since",
            hint="wakeful reload",
            level="warning",
        )


def _records(file: OwnerFile, lines: FileLines) -> Iterator[SettingRecord]:
    given = dict(_leaves(file.data))
    otherwise = dict(_defaults())
    for path in [*otherwise, *(path for path in given if path not in otherwise)]:
        name = _name(path)
        variable = VARIABLES.get(path)
        if variable is not None and os.environ.get(variable):
            yield SettingRecord(
                name=name, value=_typed(os.environ[variable], path), source="environment", variable=variable
            )
        elif path in given:
            value = _shown(path, given[path])
            yield SettingRecord(name=name, value=value, source="file", line=lines.line(path))
        else:
            yield SettingRecord(name=name, value=otherwise[path], source="default")


def _defaults() -> Iterator[tuple[FieldPath, Any]]:
    """Settings that hold also where nobody says anything."""
    yield ("store",), str(home_store())
    for section, table in OwnerSettings():
        if isinstance(table, BaseModel):
            for name, value in table.model_dump(mode="json").items():
                yield (section, name), value
    yield ("models", "allow"), None  # an empty list would allow none
    output = OutputBudget()
    yield ("runtime", DEFAULT_SETTING), output.default_tokens
    yield ("runtime", MAX_SETTING), output.max_tokens


def _leaves(data: Any, above: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """What a file says, setting by setting: an amount in braces is one value."""
    for key, value in data.items() if isinstance(data, Mapping) else enumerate(data):
        path = (*above, key)
        is_tables = isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value)
        if is_tables or (isinstance(value, Mapping) and set(value) != {"usd"}):
            yield from _leaves(value, path)
        else:
            yield path, value


def _name(path: FieldPath) -> str:
    """`budget.per_day`, `hooks[0].command`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _shown(path: FieldPath, value: Any) -> Any:
    if "headers" in path:
        return REDACTED
    if isinstance(value, str):
        parts = urlsplit(value)
        if parts.scheme in SHOWN_SCHEMES:
            rest = parts.path if path[0] not in SECRET_ADDRESSES else f"/{REDACTED}" if parts.path.strip("/") else ""
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{rest}"
    if path[0] == "notify" and isinstance(value, list):
        return [_shown(path, each) for each in value]
    return hide_shapes_in(value)


def _typed(text: str, path: FieldPath) -> Any:
    """The text of a variable as its setting is written."""
    if path == ("models", "offline"):
        return text == "1"
    return int(text) if path[0] == "runtime" and text.isdigit() else text


def _lines(file: OwnerFile) -> FileLines:
    """Lines of the file on the disk, where that says what is in force."""
    try:
        return toml_lines(file.path.read_text("utf-8")) if read_owner_file(file.path).data == file.data else NO_LINES
    except (OSError, InvalidConfig):
        return NO_LINES


def _is_ours(name: str, value: str) -> bool:
    return name.startswith(PREFIX) and bool(value)


def _variable(name: str, value: str) -> str:
    return value if name.removeprefix(PREFIX).startswith(NO_SECRETS) else REDACTED
