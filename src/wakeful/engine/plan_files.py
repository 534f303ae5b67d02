"""The plan of a work item: prose in a file of the agent's home, which the agent edits like any other file.

The record does not hold it. What is shown of it elsewhere is where it is, its hash, and how it begins. What stands at
its place may be anything: only a plain file is read and written there, and no link is followed.
"""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.contracts.errors import InvalidConfig, ToolReported
from wakeful.decisions.work_items.projection import MAX_SHOWN_PLAN
from wakeful.workspaces import Workspace

PLAN_FILE = "plan.md"
FOLDER = "work-items"
MAX_FILE = 4_000_000
"""Bytes. A larger file is no plan."""


class ItemPlan(NamedTuple):
    """A plan as readers are shown it."""

    path: str
    """Absolute."""
    hash: str
    """Blank for one that cannot be read: then the preview says why."""
    bytes: int
    updated_at: str
    preview: str
    preview_complete: bool

    def as_dict(self) -> dict[str, Any]:
        return self._asdict()


def plan_folder(agent_home: Path, work_item_id: str) -> Path:
    return agent_home / FOLDER / work_item_id


def write_plan(agent_home: Path, work_item_id: str, text: str) -> str:
    """Write the first plan of an item; returns its digest. Blocks on the disk. A crash leaves the old file or the new
    one, and the same call again writes the same. Raises ToolReported where no plain file can be written there."""
    agent_home.mkdir(parents=True, exist_ok=True, mode=0o700)
    data = text.encode("utf-8", "replace")
    Workspace.of_agent(agent_home).write(_name(work_item_id), data, tag=work_item_id)
    return digest_of(data)


def read_plan(agent_home: Path, work_item_id: str) -> ItemPlan | None:
    """The plan as it stands now; None where there is none. Blocks on the disk, on nothing else that is put there."""
    try:
        home = Workspace.of_agent(agent_home)
    except InvalidConfig:  # the agent has no home
        return None
    name = _name(work_item_id)
    path = str(home.root / name)
    try:
        found = home.read(name, MAX_FILE)
    except ToolReported as report:
        if report.error.kind == "not_found":
            return None
        return ItemPlan(path, "", 0, "", f"[The plan cannot be read: {report.error.message}.]", True)
    text = found.data.decode("utf-8", "replace")
    return ItemPlan(
        path=path,
        hash=digest_of(found.data),
        bytes=len(found.data),
        updated_at=datetime.fromtimestamp(found.entry.modified_ns / 1e9, UTC).isoformat(),
        preview=text[:MAX_SHOWN_PLAN],
        preview_complete=len(text) <= MAX_SHOWN_PLAN,
    )


def _name(work_item_id: str) -> str:
    return f"{FOLDER}/{work_item_id}/{PLAN_FILE}"


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()
