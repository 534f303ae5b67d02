"""The files of a home, checked with the models and tools that are here."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.bootstrap.engines import resolve_model
from wakeful.bootstrap.keys import key_variables
from wakeful.contracts.errors import InvalidConfig
from wakeful.settings.home import home as own_home
from wakeful.settings.model_rules import model_rules
from wakeful.settings.owner_file import settings_path

if TYPE_CHECKING:
    from wakeful.contracts.file_problems import FileProblem, FilesReport
    from wakeful.settings.owner_file import OwnerFile
    from wakeful.tools.tool import Tool


def check_home(home: "Path | None", tools: "Sequence[Tool[Any]] | None" = None) -> "FilesReport":
    """The files of a home, checked; None: the home of this installation. Writes nothing.

    Without `tools`, those that files name are taken to be there.
    """
    from wakeful.contracts.file_problems import FileProblem
    from wakeful.runtime.agent_definitions import definition_files
    from wakeful.service.queries.file_checks import check_agent_files, check_owner_file, files_report
    from wakeful.settings.agent_homes import FOLDER
    from wakeful.settings.owner_file import SETTINGS_FILE

    folder = own_home() if home is None else home
    used = settings_path()
    owned = used if home is None else folder / SETTINGS_FILE
    files = definition_files(folder / FOLDER)
    problems = []
    if owned.is_file():
        files.append(owned)
        problems += check_owner_file(owned, _check_providers, key_variables)
        if owned.absolute() != used.absolute():
            message = f"it is not in force: the owner's file is {used}"
            hint = f"Set WAKEFUL_HOME={folder} or WAKEFUL_CONFIG={owned}."
            problems.append(FileProblem(place=str(owned), message=message, hint=hint, level="warning"))
    can_ask = _owner_is_readable()
    agents, wrong = check_agent_files(folder, tools, _model_at_hand if can_ask else lambda _: "")
    problems += wrong
    return files_report(folder, files, agents, problems)


def owner_problems() -> "list[FileProblem]":
    """Everything that is wrong with the owner's file as it is on the disk."""
    from wakeful.service.queries.file_checks import check_owner_file

    return check_owner_file(settings_path(), _check_providers, key_variables) if settings_path().is_file() else []


def _owner_is_readable() -> bool:
    """Can models be looked up? Not while the owner's file cannot be read: that is told about that file."""
    from wakeful.settings.owner_file import owner_file

    try:
        owner_file()
    except InvalidConfig:
        return False
    return True


def _model_at_hand(reference: str) -> str:
    """Blank: the model can be asked; else what is missing. Raises UnknownProvider, InvalidConfig or MalformedScript."""
    from wakeful.providers.catalogue import SCRIPTED, model_page
    from wakeful.providers.endpoints import split

    if split(reference)[0] == SCRIPTED:
        resolve_model(reference)
        return ""
    page = model_page(reference)
    ruled_out = model_rules(os.environ).against(page.model.ref, leaves_machine=False)
    if ruled_out is not None:
        raise InvalidConfig(f"the owner's file rules out {reference}: {ruled_out.detail}", "Name another model.")
    if page.provider.status != "available":
        return f"{reference} cannot be asked here: {page.provider.note}"
    near = " or ".join(page.near)
    return f"{reference} is not in the list of models; did you mean {near}?" if near else ""


def _check_providers(file: "OwnerFile") -> None:
    from wakeful.providers.endpoint_settings import tables
    from wakeful.providers.endpoints import endpoint

    for name in tables(file.data, str(file.path)):
        endpoint(name, environ={}, settings=file.data)
