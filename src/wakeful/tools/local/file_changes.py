"""Several files changed together, so that a kill at any moment neither loses nor doubles the change.

    1  every new content is staged beside its target           nothing has happened
    2  a record names each file with its hash before and after nothing has happened, and it can be told
    3  each staged file is renamed over its target             it happens
    4  the call returns what the record says                   a repeat finds the record

The record stands in `.wakeful/edits/` of the workspace under the call's idempotency key. After a crash the probe holds
the files against it: all as they should become, it happened; some still as they were, the same call finishes the rest;
anything else, somebody was there in between and nobody can say. Without a record nothing has happened.

A failure in step 3 puts every file back. Only when that fails too is the outcome unknown.

Before every rename, and before anything is put back, the call makes sure that its process still owns the turn (`hold`).
One that was stopped for longer than its lease has a successor, who was told that the outcome is unknown and may have
gone on from what it found: when the first one wakes up, it leaves every file as it is.
"""

import contextlib
import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from wakeful.contracts.errors import OutcomeUnknown, ToolReported, WakefulError
from wakeful.contracts.probes import DidNotHappen, Happened, ProbeAnswer, StillUnknown
from wakeful.tools.local.patch_plan import Change
from wakeful.workspaces import Workspace
from wakeful.workspaces.refusals import refused

RECORDS = ".wakeful/edits"
MAX_RECORDS = 1_000
"""More than this, and the older half is forgotten: a call that is still open is much younger."""

Hold: TypeAlias = Callable[[], None]
"""Raises OwnerFenced when another process owns the turn (`RunContext.hold`)."""
_State: TypeAlias = Literal["before", "after", "other"]


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """One file of a record: hashes, or None where there is no file."""

    path: str
    before: str | None
    after: str | None
    mode: int | None


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """What a call is about to do, and what it will say when it has."""

    result: str
    files: tuple[RecordedFile, ...]


class FileChanges:
    """Carries changes out in one workspace. `key` is the call's idempotency key; without one nothing is recorded."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._own = workspace.unprotected()
        self._lock = threading.Lock()
        self._busy: set[str] = set()

    def carry_out(self, key: str, changes: Sequence[Change], result: str, hold: Hold) -> str:
        """Make all changes or none. Raises ToolReported with every file as it was, or OutcomeUnknown.

        Raises OwnerFenced when the turn has another owner before the first file was changed.
        """
        tag = _tag(key) if key else secrets.token_hex(16)
        with self._under_way(key):
            made = self._missing_folders(changes)
            done: list[tuple[Change, int | None]] = []
            try:
                files = tuple(self._staged(change, tag) for change in changes)
                if key:
                    self._write(key, ChangeRecord(result, files))
                for change, file in zip(changes, files, strict=True):
                    if self._hash(change.path) != file.before:
                        raise _changed_meanwhile(change.path)
                for change in changes:
                    found = self._workspace.stat(change.path)
                    hold()
                    done.append((change, found.mode if found else None))
                    self._happen(change.path, change.after is None, tag)
            except BaseException as error:
                if done:
                    _leave_unless_ours(hold, done, error)
                self._roll_back(changes, done, made, tag, key, error)
                raise
        self._forget_old()
        return result

    def finished(self, key: str, hold: Hold) -> str | None:
        """What an earlier run of this very call began is finished here; None when there was none.

        Raises OutcomeUnknown when somebody else changed the files, OwnerFenced when the turn has another owner.
        """
        record = self._read(key)
        if record is None:
            return None
        tag = _tag(key)
        with self._under_way(key):
            states = [(file, self._state(file, tag)) for file in record.files]
            for file, state in states:
                if state == "other":
                    raise OutcomeUnknown(_neither(file.path))
            for file, state in states:
                if state == "before":
                    hold()
                    self._happen(file.path, file.after is None, tag)
            self._clear(record.files, tag)
        return record.result

    def asked(self, key: str) -> ProbeAnswer:
        """Did this call happen? Looks and changes nothing."""
        with self._lock:
            if key in self._busy:
                return StillUnknown("it is still running")
        record = self._read(key)
        if record is None:
            return DidNotHappen()
        states = {file.path: self._state(file, _tag(key)) for file in record.files}
        if all(state == "after" for state in states.values()):
            return Happened(record.result)
        others = [path for path, state in states.items() if state == "other"]
        return StillUnknown(_neither(others[0])) if others else DidNotHappen()

    # --- one file -----------------------------------------------------------------------------------------------

    def _staged(self, change: Change, tag: str) -> RecordedFile:
        mode = change.mode
        if change.after is None:
            self._workspace.locate(change.path)
        else:
            bits = self._workspace.stat(change.bits_of) if change.bits_of and mode is None else None
            self._workspace.stage(change.path, change.after, tag, bits.mode if bits else mode)
        return RecordedFile(change.path, _hashed(change.before), _hashed(change.after), mode)

    def _happen(self, path: str, is_deleted: bool, tag: str) -> None:
        if is_deleted:
            self._workspace.delete(path)
        else:
            self._workspace.place(path, tag)

    def _state(self, file: RecordedFile, tag: str) -> _State:
        now = self._hash(file.path)
        if now == file.after and self._has_mode(file):
            return "after"
        if now == file.before and (file.after is None or self._workspace.staged(file.path, tag)):
            return "before"
        return "other"

    def _has_mode(self, file: RecordedFile) -> bool:
        found = self._workspace.stat(file.path) if file.mode is not None and file.after is not None else None
        return found is None or found.mode == file.mode

    def _hash(self, path: str) -> str | None:
        return _hashed(bytes_at(self._workspace, path))

    def _clear(self, files: Sequence[RecordedFile], tag: str) -> None:
        """Nothing that was staged is left beside files that are as they should be, or were being put back."""
        for file in files:
            for each in (tag, _back(tag)):
                with contextlib.suppress(ToolReported):
                    self._workspace.unstage(file.path, each)

    # --- back again ---------------------------------------------------------------------------------------------

    def _roll_back(
        self,
        changes: Sequence[Change],
        done: Sequence[tuple[Change, int | None]],
        made: Sequence[str],
        tag: str,
        key: str,
        cause: BaseException,
    ) -> None:
        try:
            for change, mode in reversed(done):
                self._restore(change, mode, tag)
            if key:
                with contextlib.suppress(ToolReported):
                    self._own.delete(_record_path(key))
        except Exception as error:
            raise OutcomeUnknown(
                f"the change failed ({cause}) and could not be taken back ({error}): "
                f"look at {', '.join(change.path for change, _ in done)}"
            ) from cause
        for change in changes:
            with contextlib.suppress(ToolReported):
                self._workspace.unstage(change.path, tag)
        for folder in reversed(made):
            with contextlib.suppress(ToolReported):
                self._workspace.delete(folder)

    def _restore(self, change: Change, mode: int | None, tag: str) -> None:
        now = bytes_at(self._workspace, change.path)
        found = self._workspace.stat(change.path)
        if now == change.before and (found is None or mode is None or found.mode == mode):
            return
        if change.before is None:
            self._workspace.delete(change.path)
        else:
            self._workspace.write(change.path, change.before, mode, tag=_back(tag))

    def _missing_folders(self, changes: Sequence[Change]) -> list[str]:
        """Folders that staging will make, outermost first."""
        folders: dict[str, None] = {}
        for change in changes:
            parts = change.path.split("/")[:-1] if change.after is not None else []
            folders.update((("/".join(parts[:count]), None)) for count in range(1, len(parts) + 1))
        return [folder for folder in folders if self._workspace.stat(folder) is None]

    # --- records ------------------------------------------------------------------------------------------------

    def _write(self, key: str, record: ChangeRecord) -> None:
        if self._own.stat(".wakeful/.gitignore") is None:
            self._own.write(".wakeful/.gitignore", b"*\n", tag="ours")
        self._own.write(_record_path(key), json.dumps(asdict(record)).encode(), tag=_tag(key))

    def _read(self, key: str) -> ChangeRecord | None:
        data = bytes_at(self._own, _record_path(key)) if key else None
        if data is None:
            return None
        stored = json.loads(data)
        return ChangeRecord(stored["result"], tuple(RecordedFile(**file) for file in stored["files"]))

    def _forget_old(self) -> None:
        with contextlib.suppress(ToolReported):
            records = self._own.list(RECORDS)
            if len(records) > MAX_RECORDS:
                for entry in sorted(records, key=lambda entry: entry.modified_ns)[: len(records) // 2]:
                    self._own.delete(entry.path)

    @contextlib.contextmanager
    def _under_way(self, key: str) -> Iterator[None]:
        with self._lock:
            self._busy.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._busy.discard(key)


def bytes_at(workspace: Workspace, path: str) -> bytes | None:
    """What a file holds; None when it is not there."""
    try:
        return workspace.read(path).data
    except ToolReported as report:
        if report.error.kind == "not_found":
            return None
        raise


def _leave_unless_ours(hold: Hold, done: Sequence[tuple[Change, int | None]], cause: BaseException) -> None:
    """Raises OutcomeUnknown when somebody else owns the turn, or may: then nothing is put back."""
    try:
        hold()
    except WakefulError as lost:
        paths = ", ".join(change.path for change, _ in done)
        raise OutcomeUnknown(
            f"the change stopped in the middle ({cause}) and nothing was put back, because the turn may belong to "
            f"another process now: look at {paths}"
        ) from lost


def _tag(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def _back(tag: str) -> str:
    """What is staged to put a file back as it was."""
    return f"{tag}/back"


def _record_path(key: str) -> str:
    return f"{RECORDS}/{_tag(key)}.json"


def _hashed(data: bytes | None) -> str | None:
    return None if data is None else f"sha256:{hashlib.sha256(data).hexdigest()}"


def _neither(path: str) -> str:
    return f"{path} is neither as it was before the call nor as the call makes it"


def _changed_meanwhile(path: str) -> ToolReported:
    return refused(
        "changed_meanwhile",
        f"{path!r} was changed by another program while this call ran; nothing was written",
        "Read the file again, then make the change.",
        retryable=True,
        path=path,
    )
