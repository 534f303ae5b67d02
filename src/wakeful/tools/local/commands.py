"""`wakeful/exec_command`: one shell command in the workspace, confined, to its end.

Its result is an envelope that says how it ended. A status that is not zero is a result like any other. A run of the
library has nobody who would look after a task: a command runs to its end within its time, and what needs a task is not
in the schema, and so is refused. In a runtime, `task_commands` takes the place of this.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import Confinement, ToolDeclaration
from wakeful.sandbox.confinement import Sandbox
from wakeful.tools import schema
from wakeful.tools.call_runner import CallHandle, begin
from wakeful.tools.context import RunContext
from wakeful.tools.local import command_runs
from wakeful.tools.local.output_budget import OutputBudget, both_ends, share
from wakeful.tools.local.repository_custody import RepositoryCustody, custody_of
from wakeful.tools.results import MAX_SHOWN_BYTES, ToolOutput
from wakeful.tools.tool import DeclaredTool

NAME = "wakeful/exec_command"
DEFAULT_TIMEOUT_MS = 120_000
_ENVELOPE_BYTES = 1_000
"""What an envelope needs beside the previews."""

Milliseconds = Annotated[int, Field(ge=1, le=command_runs.MAX_TIMEOUT_MS)]
Tokens = Annotated[int, Field(ge=1)]
Words = Annotated[str, Field(min_length=1)]


DESCRIPTION = (
    "Run a shell command in the workspace and wait for its end. It runs confined: it can write in the workspace and a "
    "private temporary folder, and it has no network unless that was granted. Everything it starts ends with it. "
    "The result has exit_status, stdout_preview and stderr_preview; what is too long is cut in the middle and whole in "
    "an artifact. A virtual environment in the workspace (.venv) is on its PATH. "
    "Use it to look around as well: ls, rg, sed -n, git log."
)
PARAMETERS = {
    "cmd": "The command, as typed into a shell.",
    "workdir": "The folder to run in: in the workspace, or relative to it. Left out: the workspace itself.",
    "shell": "The shell to use: a name or a path. Left out: bash, or sh where there is none.",
    "login": "Start it as a login shell, which reads the profile files of the system and may change PATH.",
    "tty": "Give it a terminal. Its output is then one transcript, in stdout_preview, and nothing can be typed.",
    "yield_time_ms": "It is killed after this time.",
    "max_output_tokens": "How much of the output you want to see at most, in tokens.",
}


def declared(name: str, description: str, compiled: schema.CompiledSchema, sandbox: Sandbox) -> ToolDeclaration:
    """What both command tools are held to."""
    network = sandbox.network == "full"
    return ToolDeclaration(
        name=name,
        description=description,
        input_schema=compiled.schema,
        effect="irreversible",
        timeout=command_runs.MAX_TIMEOUT_MS / 1000 + 30,
        parallel_safe=False,
        permission_class="execute",
        capabilities=("shell", "filesystem", *(("network",) if network else ())),
        categories=("local",),
        # It reads whatever it is let see, and that is more than the workspace.
        reads_private=True,
        changes_state=True,
        leaves_machine=network,
        interrupt_behavior="cancel",  # with all its processes
    )


class ExecCommand(DeclaredTool):
    """The tool for one command."""

    description: ClassVar[str] = DESCRIPTION
    parameters: ClassVar[Mapping[str, str]] = PARAMETERS

    def __init__(
        self, sandbox: Sandbox, budget: OutputBudget | None = None, custody: RepositoryCustody | None = None
    ) -> None:
        self._sandbox = sandbox
        self._custody = custody if custody is not None else custody_of(sandbox)
        self._budget = budget if budget is not None else OutputBudget()
        self.__signature__, self._compiled = schema.compile_method(self._run, self.parameters)
        self._declaration = declared(NAME, self.description, self._compiled, sandbox)

    @property
    def workspace_root(self) -> str:
        return self._sandbox.root

    @property
    def write_roots(self) -> tuple[str, ...]:
        return self._sandbox.write_roots

    def confinement(self, arguments: dict[str, Any]) -> Confinement:
        return self._sandbox.confinement(self.working_directory(arguments))

    def working_directory(self, arguments: dict[str, Any]) -> str:
        """Where it would run; for a folder that it may not run in, the workspace: the call says what is wrong."""
        try:
            return command_runs.working_directory(self._sandbox, arguments.get("workdir"))
        except (ToolReported, TypeError, ValueError):
            return self._sandbox.root

    def start(self, ctx: RunContext[object], arguments: dict[str, Any]) -> CallHandle:
        return begin(self._run, True, (ctx,), self._compiled.arguments(arguments))

    async def _run(
        self,
        ctx: RunContext[object],
        cmd: Words,
        workdir: str | None = None,
        shell: str | None = None,
        login: bool = False,
        tty: bool = False,
        yield_time_ms: Milliseconds = DEFAULT_TIMEOUT_MS,
        max_output_tokens: Tokens | None = None,
    ) -> ToolOutput:
        cwd = command_runs.working_directory(self._sandbox, workdir)
        finished = await command_runs.run_command(
            self._sandbox, self._custody, ctx, cmd, cwd, shell=shell, login=login, tty=tty, timeout_ms=yield_time_ms
        )
        return await completed(ctx, finished, self._budget, max_output_tokens, tty=tty)


async def completed(
    ctx: RunContext[object],
    finished: command_runs.FinishedCommand,
    budget: OutputBudget,
    max_output_tokens: int | None,
    *,
    tty: bool,
) -> ToolOutput:
    """The envelope of a command that has ended."""
    ended, notes = finished
    shown = budget.most_bytes(max_output_tokens)
    most = max(0, shown - _ENVELOPE_BYTES)
    for_stdout, for_stderr = share(ended.stdout.total_bytes * 2, ended.stderr.total_bytes * 2, most)
    stdout, cut_out = both_ends(ended.stdout.data, ended.stdout.dropped_bytes, for_stdout)
    stderr, cut_err = both_ends(ended.stderr.data, ended.stderr.dropped_bytes, for_stderr)
    truncated = cut_out or cut_err
    artifacts, at_stdout, at_stderr = await command_runs.kept(ctx, ended) if truncated else ([], None, None)
    envelope = {
        "disposition": "completed",
        "exit_status": ended.exit_status,
        "stdout_preview": stdout,
        "stderr_preview": stderr,
        "truncated": truncated,
        "artifacts": [{"digest": ref.digest, "size": ref.size, "media_type": ref.media_type} for ref in artifacts],
        "stdout_artifact": at_stdout,
        "stderr_artifact": at_stderr,
        **({"repositories": list(notes)} if notes else {}),
    }
    dropped = ended.stdout.dropped_bytes + ended.stderr.dropped_bytes
    metadata = {
        "exit_status": ended.exit_status,
        "duration_ms": round(ended.duration_ms),
        "tty": tty,
        "dropped_bytes": dropped,
    }
    return ToolOutput(
        envelope,
        artifacts=tuple(artifacts),
        truncated=truncated,
        metadata=metadata,
        most_bytes=max(shown, MAX_SHOWN_BYTES),
    )
