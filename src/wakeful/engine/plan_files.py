"""The plan of a work item: prose in a file of the agent's home, which the agent edits like any other file.

The record does not hold it. What is shown of it elsewhere is where it is, its hash, and how it begins.
"""

import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.decisions.work_items.projection import MAX_SHOWN_PLAN

PLAN_FILE = "plan.md"


class ItemPlan(NamedTuple):
    """A plan as readers are shown it."""

    path: str
    """Absolute."""
    hash: str
    bytes: int
    updated_at: str
    preview: str
    preview_complete: bool

    def as_dict(self) -> dict[str, Any]:
        return self._asdict()


def plan_folder(agent_home: Path, work_item_id: str) -> Path:
    return agent_home / "work-items" / work_item_id


def write_plan(agent_home: Path, work_item_id: str, text: str) -> str:
    """Write the first plan of an item; returns its digest. Blocks on the disk. A crash leaves the old file or the new
    one, and the same call again writes the same."""
    folder = plan_folder(agent_home, work_item_id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    data = text.encode("utf-8", "replace")
    unnamed = folder / f"{PLAN_FILE}.new"
    with unnamed.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unnamed.replace(folder / PLAN_FILE)
    return digest_of(data)


def read_plan(agent_home: Path, work_item_id: str) -> ItemPlan | None:
    """The plan as it stands now; None where there is none that can be read. Blocks on the disk."""
    path = plan_folder(agent_home, work_item_id) / PLAN_FILE
    try:
        data, changed = path.read_bytes(), path.stat().st_mtime
    except OSError:
        return None
    text = data.decode("utf-8", "replace")
    return ItemPlan(
        path=str(path.resolve()),
        hash=digest_of(data),
        bytes=len(data),
        updated_at=datetime.fromtimestamp(changed, UTC).isoformat(),
        preview=text[:MAX_SHOWN_PLAN],
        preview_complete=len(text) <= MAX_SHOWN_PLAN,
    )


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()
