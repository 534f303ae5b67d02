"""The files of a home: what is wrong with them, and where."""

from typing import Literal

from wakeful.contracts.values import Value


class FileProblem(Value):
    """Something about a file that has to be mended, and until then is not in force."""

    place: str
    """The file."""
    line: int | None = None
    """Where in it, from 1 on; None: nowhere in particular."""
    agent: str = ""
    """The agent it is about, as far as it can be told."""
    field: str = ""
    """The field, such as `wake.0.cron`."""
    message: str
    hint: str = ""
    level: Literal["error", "warning"] = "error"
    """error: the file is not in force as it is. warning: it is, and something in it may not work."""

    @property
    def where(self) -> str:
        """File and line, as editors and terminals open it."""
        return self.place if self.line is None else f"{self.place}:{self.line}"


class FilesReport(Value):
    """The files of a home, checked."""

    home: str
    files: tuple[str, ...] = ()
    """Those that were read."""
    agents: tuple[str, ...] = ()
    """Agents whose files are right."""
    problems: tuple[FileProblem, ...] = ()
    valid: bool
    """No file has an error."""


class ReloadReport(Value):
    """What became of a request to read the files again."""

    loaded: bool
    """False: no runtime is at work; the next one reads them when it starts."""
    problems: tuple[FileProblem, ...] = ()
