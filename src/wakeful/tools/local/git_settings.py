"""Which lines of a repository's settings are harmless, whoever wrote them.

A list of what is known to name no program and to lead nowhere else, read strictly: a line that is written in an unusual
way is not on it. Read like this, what is left out cannot hide what is kept.
"""

import re
from typing import NamedTuple

_SECTION = re.compile(r'\[(core|extensions|user|init|remote|branch|submodule)(?: "([^"\\]*)")?\]')
_ENTRY = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*) ?= ?([^\"\\;#]*)")
_BLANK = re.compile(r"\s*(?:[#;][^\\]*)?")
HARMLESS = {
    "core": {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode"}
    | {"symlinks", "autocrlf", "eol", "longpaths", "sharedrepository", "worktree"},
    "extensions": {"objectformat", "partialclone", "refstorage", "worktreeconfig"},
    "user": {"name", "email"},
    "init": {"defaultbranch"},
    "remote": {"url", "pushurl", "fetch", "tagopt", "promisor", "partialclonefilter"},
    "branch": {"remote", "merge", "rebase", "description"},
    "submodule": {"url", "active", "path", "branch", "shallow", "ignore"},
}
_REMOTE_NAME = re.compile(r"\.|[A-Za-z0-9][A-Za-z0-9_.-]*")


class FilteredSettings(NamedTuple):
    """Settings without what is not harmless, and what that was."""

    text: str
    left_out: tuple[str, ...]


def harmless(text: str) -> FilteredSettings:
    """The settings of a repository that a command made, as they may stay."""
    kept: list[str] = []
    left_out: list[str] = []
    section: str | None = None
    for line in text.splitlines():
        if header := _SECTION.fullmatch(line):
            section = header.group(1)
            kept.append(line)
        elif _BLANK.fullmatch(line):
            kept.append(line)
        elif line.lstrip().startswith("["):
            section = None
            left_out.append(line.strip())
        elif section is not None and _is_harmless(section, line):
            kept.append(line)
        else:
            left_out.append(line.strip())
    return FilteredSettings("".join(f"{line}\n" for line in kept), tuple(left_out))


def _is_harmless(section: str, line: str) -> bool:
    entry = _ENTRY.fullmatch(line)
    if entry is None or entry.group(1).lower() not in HARMLESS[section]:
        return False
    return entry.group(1).lower() != "worktree" or not entry.group(2).strip().startswith(("/", "~"))


def only_follows_branches(before: str, after: str) -> bool:
    """Is all that changed which branch follows which one? `git switch` and `git branch` write that, and delete it."""
    if _rest(before) != _rest(after):
        return False
    added = set(after.splitlines()) - set(before.splitlines())
    entries = [entry for line in added if (entry := _ENTRY.fullmatch(line))]
    followed = [entry.group(2).strip() for entry in entries if entry.group(1).lower() == "remote"]
    return all(_REMOTE_NAME.fullmatch(name) for name in followed)  # an address would be one to send everything to


def _rest(text: str) -> list[tuple[bool, str]]:
    """Every line but those that say what a branch follows, and whether it stands among them."""
    kept: list[tuple[bool, str]] = []
    is_branch = False
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            header = _SECTION.fullmatch(line)
            is_branch = header is not None and header.group(1) == "branch"
        if not _BLANK.fullmatch(line) and not (is_branch and _says_what_is_followed(line)):
            kept.append((is_branch, line))
    return kept


def _says_what_is_followed(line: str) -> bool:
    entry = _ENTRY.fullmatch(line)
    return _SECTION.fullmatch(line) is not None or (entry is not None and entry.group(1).lower() in HARMLESS["branch"])
