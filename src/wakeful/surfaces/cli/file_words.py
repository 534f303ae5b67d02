"""Problems with files of a home, as a person reads them: file and line first, as terminals and editors open it."""

from collections.abc import Iterable

from wakeful.contracts.file_problems import FileProblem
from wakeful.surfaces.cli.shown_values import plain


def problem_lines(problems: Iterable[FileProblem]) -> list[str]:
    """A line for each, and below it what to do."""
    lines = []
    for each in problems:
        lines.append(plain(f"{each.where}: {each.level}: {each.message}"))
        if each.hint:
            lines.append(plain(f"    {each.hint}"))
    return lines
