"""What an agent's files and commands are bound to, and what holds them: a view of facts and of this machine.

It claims no more than holds. Where nothing confines a command (`host_local`), each of the five limits says
`not_enforced`; where the kernel does (`sandboxed`), it says which of them the kernel keeps. Landlock knows no
namespaces and no rights of metadata: a command may change mode, owner and times of a file outside that belongs to the
user, and what it leaves running is ended by a supervisor. A network that was granted is held by nothing.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from wakeful.contracts.values import Value
from wakeful.contracts.workspaces import ProjectionKind, WorkspaceMode, WorktreeSession, WorktreeState

Backend: TypeAlias = Literal["host_local", "sandboxed"]
Enforcement: TypeAlias = Literal["hard_enforced", "runtime_shaped", "not_enforced"]
"""hard_enforced: it cannot be otherwise. runtime_shaped: the runtime arranges it so, and a program could leave it.
not_enforced: nothing keeps a program from it."""


class ExecutionProfile(Value):
    """What an agent may do with processes here."""

    backend: Backend
    process_execution_exposed: bool
    allow_background_tasks: bool
    supports_managed_worktrees: bool = True


class ResourceAuthority(Value):
    """Who has the say over what, whatever a command does."""

    message_ingress: Enforcement = "hard_enforced"
    agent_state: Enforcement = "hard_enforced"
    control_plane: Enforcement = "hard_enforced"
    workspace_projection: Enforcement = "hard_enforced"
    process_execution: Enforcement = "runtime_shaped"


class ProcessExecution(Value):
    """What holds a command."""

    cwd_rooting: Enforcement = "hard_enforced"
    projection_rooting: Enforcement = "hard_enforced"
    path_confinement: Enforcement = "not_enforced"
    write_confinement: Enforcement = "not_enforced"
    network_confinement: Enforcement = "not_enforced"
    secret_isolation: Enforcement = "not_enforced"
    child_process_containment: Enforcement = "not_enforced"


class ExecutionPolicySnapshot(Value):
    """The boundary in force."""

    backend: Backend
    process_execution_exposed: bool
    managed_worktree_supported: bool = True
    resource_authority: ResourceAuthority
    process_execution: ProcessExecution
    reason: str = ""
    """Why not more is held."""


class ExecutionSnapshot(Value):
    """Where an agent works, and what holds there."""

    profile: ExecutionProfile
    policy: ExecutionPolicySnapshot
    workspace_id: str
    workspace_anchor: str
    execution_root: str
    cwd: str
    execution_root_id: str | None = None
    projection_kind: ProjectionKind | None = None


class ActiveWorkspaceEntry(Value):
    """The place that an agent works in."""

    workspace_id: str
    workspace_anchor: str
    execution_root: str
    execution_root_id: str
    cwd: str
    mode: WorkspaceMode = "direct"
    projection_kind: ProjectionKind = "canonical_root"
    state: Literal["ready", "missing"] = "ready"
    """missing: its folder is not there, and no turn begins until it is."""


class WorkspaceRecord(Value):
    """A folder that an agent may work in."""

    workspace_id: str
    workspace_anchor: str
    active: bool
    state: Literal["ready", "missing"]
    attached_by: str
    attached_at: float | None = None
    """Unix seconds; None: it was always there."""


class WorktreeRecord(Value):
    """A worktree that the runtime made. One that was kept waits for somebody to look at it."""

    worktree_id: str
    workspace_id: str
    worktree_path: str
    worktree_branch: str
    base_branch: str
    base_commit: str
    task_id: str | None = None
    state: WorktreeState
    cleanup_status: str | None = None
    cleanup_reason: str | None = None
    changed_files: tuple[str, ...] = ()
    detail: str = ""
    created_at: float
    updated_at: float


class AgentWorkspaces(Value):
    """Everything about the workspaces of an agent."""

    agent: str
    attached_workspaces: tuple[WorkspaceRecord, ...]
    active_workspace_id: str
    active_workspace_entry: ActiveWorkspaceEntry
    cwd: str
    worktree_session: WorktreeSession | None = None
    worktrees: tuple[WorktreeRecord, ...] = ()
    execution: ExecutionSnapshot
    advice: str = ""


class CommandConfinement(NamedTuple):
    """What this machine holds commands with."""

    mode: Literal["bubblewrap", "landlock", "not_enforced"]
    reason: str = ""
    grants_network: bool | None = None
    """The agent's commands may use it; None: nobody here can say."""


_NETWORK: Mapping[bool | None, Enforcement] = {True: "not_enforced", False: "hard_enforced", None: "runtime_shaped"}


def _held(confined: CommandConfinement) -> ProcessExecution:
    if confined.mode == "not_enforced":
        return ProcessExecution()
    arranged: Enforcement = "hard_enforced" if confined.mode == "bubblewrap" else "runtime_shaped"
    return ProcessExecution(
        path_confinement="hard_enforced",
        write_confinement=arranged,
        network_confinement=_NETWORK[confined.grants_network],
        secret_isolation="hard_enforced",
        child_process_containment=arranged,
    )


def execution_snapshot(
    entry: ActiveWorkspaceEntry, confined: CommandConfinement, *, works_on_files: bool
) -> ExecutionSnapshot:
    """The snapshot of an agent that works there, on a machine that holds commands so."""
    is_held = confined.mode != "not_enforced"
    backend: Backend = "sandboxed" if is_held else "host_local"
    return ExecutionSnapshot(
        profile=ExecutionProfile(
            backend=backend, process_execution_exposed=works_on_files, allow_background_tasks=works_on_files
        ),
        policy=ExecutionPolicySnapshot(
            backend=backend,
            process_execution_exposed=works_on_files,
            resource_authority=ResourceAuthority(),
            process_execution=_held(confined),
            reason=confined.reason,
        ),
        workspace_id=entry.workspace_id,
        workspace_anchor=entry.workspace_anchor,
        execution_root=entry.execution_root,
        cwd=entry.cwd,
        execution_root_id=entry.execution_root_id,
        projection_kind=entry.projection_kind,
    )
