"""`wakeful workspace list`, `attach`, `use`, `detach` and `clean`: where an agent of a runtime works.

None of them needs the process that runs the agent: its next turn begins where the newest word says.
"""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.contracts.errors import InvalidRequest
from wakeful.service.operations.workspaces import (
    ATTACH_WORKSPACE,
    CLEAN_UP_WORKTREE,
    DETACH_WORKSPACE,
    LIST_WORKSPACES,
    USE_WORKSPACE,
    WorkspacesOf,
    WorkspaceToAttach,
    WorkspaceToDetach,
    WorkspaceToUse,
    WorktreeToCleanUp,
)
from wakeful.service.queries.record_names import meant
from wakeful.surfaces.cli.agent_control import AgentArgument
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.screen import columns, prose
from wakeful.surfaces.cli.shown_values import json_text, out, plain
from wakeful.views.execution_snapshot import AgentWorkspaces, WorktreeRecord

PathArgument = Annotated[str, typer.Argument(metavar="PATH", help="A folder.")]
WorkspaceArgument = Annotated[str, typer.Argument(metavar="WORKSPACE", help="Its id, or its beginning.")]


def listed(agent: AgentArgument, json: JsonOption = False, wide: WideOption = False, store: StoreOption = None) -> None:
    """List the folders an agent may work in, the one it works in, its worktrees, and what confines its commands."""
    place = place_to_ask(store)
    known = ask(LIST_WORKSPACES, WorkspacesOf(agent), place)
    kept = [tree for tree in known.worktrees if tree.state == "kept"]
    remember("workspaces", [each.workspace_id for each in known.attached_workspaces], place, of=agent)
    remember("worktrees", [tree.worktree_id for tree in kept], place, of=agent)
    if json:
        out(json_text(known.model_dump(mode="json"), indent=2))
        return
    cells = [
        (each.workspace_id, "active" if each.active else each.state, plain(each.workspace_anchor))
        for each in known.attached_workspaces
    ]
    out(columns(cells, ("WORKSPACE", "STATE", "FOLDER"), wide=wide))
    entry = known.active_workspace_entry
    missing = ", which is not there: no turn begins until it is back" if entry.state == "missing" else ""
    prose(f"works in {plain(entry.execution_root)}{missing}")
    if known.worktree_session is not None:
        prose(f"branch {plain(known.worktree_session.worktree_branch)} of {plain(entry.workspace_anchor)}")
    for tree in kept:
        prose(f"kept: {plain(tree.worktree_path)} ({_why(tree)}); wakeful workspace clean {agent} {tree.worktree_id}")
    prose(_limits(known))


def attach(
    agent: AgentArgument,
    path: PathArgument,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Let an agent work in a folder. It works where it did until it is told to use another one."""
    known = ask(ATTACH_WORKSPACE, WorkspaceToAttach(agent, _from_here(path)), place_to_ask(store))
    _told(known, json, f"agent {plain(known.agent)} may work in {plain(path)}")


def use(
    agent: AgentArgument,
    workspace: Annotated[
        str | None,
        typer.Argument(metavar="WORKSPACE", help="Its id or its beginning, or agent_home. Default: give --path."),
    ] = None,
    path: Annotated[str | None, typer.Option("--path", metavar="PATH", help="A folder, attached if it is not.")] = None,
    isolated: Annotated[
        bool, typer.Option("--isolated", help="Work in a git worktree on a branch of its own.")
    ] = False,
    cwd: Annotated[str | None, typer.Option("--cwd", metavar="FOLDER", help="Where commands begin, inside.")] = None,
    label: Annotated[str, typer.Option("--label", metavar="WORD", help="A word for the name of the branch.")] = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Have an agent work in a workspace from its next turn on. A turn that runs goes on where it is."""
    if label and not isolated:
        raise InvalidRequest("--label names the branch of a worktree, and no worktree is made", "Add --isolated.")
    if (path is None) == (workspace is None):
        given = "neither a workspace nor --path was given" if path is None else "a workspace and --path were both given"
        raise InvalidRequest(given, f"wakeful workspace use {agent} ID, or wakeful workspace use {agent} --path PATH")
    folder = None if path is None else _from_here(path)
    asked = WorkspaceToUse(agent, folder, workspace, "isolated" if isolated else "direct", cwd, label)
    known = ask(USE_WORKSPACE, asked, place_to_ask(store))
    _told(known, json, f"agent {plain(known.agent)} works in {plain(known.active_workspace_entry.execution_root)}")
    if known.advice and not json:
        prose(known.advice)


def detach(
    agent: AgentArgument,
    workspace: WorkspaceArgument,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Detach a folder from an agent. Nothing on disk is touched."""
    known = ask(DETACH_WORKSPACE, WorkspaceToDetach(agent, workspace), place_to_ask(store))
    _told(known, json, f"{plain(workspace)} is detached from agent {plain(known.agent)}")


def clean(
    agent: AgentArgument,
    worktree: Annotated[str, typer.Argument(metavar="WORKTREE", help="Its id, or its beginning.")],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Remove a worktree that was kept, if it is clean and its commits are merged by now."""
    known = ask(CLEAN_UP_WORKTREE, WorktreeToCleanUp(agent, worktree), place_to_ask(store))
    there = {tree.worktree_id: tree for tree in known.worktrees}
    kept = there.get(meant(worktree, there, "wt_", "worktrees"))
    words = f"{plain(worktree)} is removed"
    _told(known, json, words if kept is None else f"{plain(kept.worktree_path)} is kept: {_why(kept)}")


def _from_here(path: str) -> str:
    """A folder by its whole name: a daemon works in another folder than the person who types."""
    return str(Path(path).expanduser().absolute()) if path else path


def _told(known: AgentWorkspaces, json: bool, words: str) -> None:
    if json:
        out(json_text(known.model_dump(mode="json"), indent=2))
    else:
        prose(words)


def _why(tree: WorktreeRecord) -> str:
    why = (tree.cleanup_reason or tree.state).replace("_", " ")
    number = len(tree.changed_files)
    return plain(f"{why}: {number}" if number else why)


def _limits(known: AgentWorkspaces) -> str:
    """Each of the five limits, by its name."""
    policy = known.execution.policy
    held = policy.process_execution
    limits = {
        "path": held.path_confinement,
        "write": held.write_confinement,
        "network": held.network_confinement,
        "secrets": held.secret_isolation,
        "child processes": held.child_process_containment,
    }
    return f"commands ({policy.backend}): " + ", ".join(f"{name} {level}" for name, level in limits.items())
