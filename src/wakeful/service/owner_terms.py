"""The owner's file while a runtime is at work: what it said when it was last read and right is in force.

A change counts from the next `reload` on, all of it at once and for turns that begin later. A file that cannot be read
changes nothing: its problems are told with their lines, and the one before stays in force. `store`, `[telemetry]` and
`[log]` are read when a runtime starts: as long as they say something else since, `problems` has a warning for each.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from wakeful.contracts.file_problems import FileProblem
from wakeful.engine.run_request import Engine
from wakeful.service.owner_hooks import read_hooks
from wakeful.settings.model_rules import model_rules
from wakeful.settings.owner_file import OwnerFile, hold_owner_file, owner_file, release_owner_file, settings_path
from wakeful.settings.spend_windows import owner_windows

AT_START = ("store", "telemetry", "log")
"""What a runtime reads when it starts, and not again."""
CheckOwner = Callable[[], list[FileProblem]]
"""Everything that is wrong with the owner's file as it is on the disk."""


@dataclass(slots=True)
class OwnerTerms:
    """What the owner's file says, for as long as a runtime is at work."""

    check: CheckOwner
    keys: Callable[[], frozenset[str]]
    """Variables that no command of the owner gets."""
    problems: list[FileProblem] = field(default_factory=list)
    _held: OwnerFile | None = None
    _begun: dict[str, Any] = field(default_factory=dict)
    """What it said when the runtime started."""
    _terms: dict[str, Any] = field(default_factory=dict)
    _seen: tuple[int, int, int] | None = None

    def hold(self) -> None:
        """Keep the file as it is. Raises InvalidConfig for one that is not right."""
        self._seen = self._stamp()
        self._held = owner_file()
        self._begun = {name: self._held.data.get(name) for name in AT_START}
        hold_owner_file(self._held)

    def release(self) -> None:
        release_owner_file(settings_path())

    def reload(self) -> bool:
        """Read it again. Whether it says something else; what is wrong is in `problems`."""
        self._seen = self._stamp()
        self.problems = [each for each in self.check() if each.level == "error"]
        if self.problems:
            return False
        before = self._held
        release_owner_file(settings_path())
        self._held = owner_file()
        hold_owner_file(self._held)
        self.problems = self._waiting(self._held)
        if before is not None and before.data == self._held.data:
            return False
        self._terms = {
            "hooks": read_hooks(self._held, self.keys),
            "model_rules": model_rules(os.environ, self._held),
            "owner_windows": owner_windows(os.environ, self._held),
        }
        return True

    def _waiting(self, file: OwnerFile) -> list[FileProblem]:
        return [
            FileProblem(
                place=str(file.path),
                field=name,
                message=f"`{name}` has changed, and the running runtime keeps the old value",
                hint="The new value is used after a restart: wakeful daemon restart",
                level="warning",
            )
            for name, begun in self._begun.items()
            if file.data.get(name) != begun
        ]

    def is_changed(self) -> bool:
        """Was the file written since it was last read?"""
        return self._stamp() != self._seen

    def applied(self, engine: Engine) -> Engine:
        """What turns are run with that begin now."""
        return replace(engine, **self._terms) if self._terms else engine

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = settings_path().stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
