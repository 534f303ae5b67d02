"""Settings of an installation as its operator sees them: each value that is in force, and where it comes from."""

from typing import Any, Literal, TypeAlias

from wakeful.contracts.file_problems import FileProblem
from wakeful.contracts.values import Value

SettingSource: TypeAlias = Literal["default", "file", "environment"]


class SettingRecord(Value):
    """One setting that is in force."""

    name: str
    """As it stands in the owner's file, with its table: `budget.per_day`."""
    value: Any = None
    """None: nothing was said, and nothing holds."""
    source: SettingSource
    line: int | None = None
    """Of the owner's file."""
    variable: str | None = None
    """Of the environment."""


class SettingsReport(Value):
    """What is in force, in one process."""

    home: str
    store: str
    settings_file: str
    has_file: bool
    """False: there is no such file, and every setting has its default."""
    is_daemon: bool
    """The process runs the agents; False: it is only a command's, and the next one may see another file."""
    settings: tuple[SettingRecord, ...]
    variables: dict[str, str]
    """Variables of wakeful that are set; secrets are hidden."""
    problems: tuple[FileProblem, ...] = ()
    """Why the file on the disk is not what is in force."""
