"""The one shape in which an operator sees a failure, whatever surface shows it."""

from typing import Literal, TypeAlias

from pydantic import field_validator

from wakeful.contracts.values import Value

FailureCategory: TypeAlias = Literal["transport", "protocol", "runtime", "task", "unknown"]
"""transport: a provider's transport. protocol: an unsupported contract or an invalid response. runtime: a message or a
turn. task: a task's command or the task framework. unknown: anything else."""

MAX_METADATA_KEYS = 16
MAX_METADATA_CHARS = 512


class FailureArtifact(Value):
    """What failed, where it came from, and what is known about it. `metadata` is bounded; logs do not go in it."""

    category: FailureCategory
    kind: str
    summary: str
    provider: str | None = None
    model_ref: str | None = None
    status: int | None = None
    """The HTTP status, when there was one."""
    task_id: str | None = None
    exit_status: int | None = None
    source_chain: tuple[str, ...] | None = None
    metadata: dict[str, str] | None = None

    @field_validator("metadata")
    @classmethod
    def _bounded(cls, metadata: dict[str, str] | None) -> dict[str, str] | None:
        if metadata is None:
            return None
        kept = list(metadata.items())[:MAX_METADATA_KEYS]
        return {key[:MAX_METADATA_CHARS]: value[:MAX_METADATA_CHARS] for key, value in kept}
