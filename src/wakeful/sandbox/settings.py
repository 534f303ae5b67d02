"""What an owner may say about commands: how strictly they are held, what they reach, how much they get."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeAlias

from wakeful.contracts.errors import InvalidConfig

Strictness: TypeAlias = Literal["required", "preferred"]
"""required: a command that nothing holds is refused. preferred: it runs, and everybody is told `not_enforced`."""
Network: TypeAlias = Literal["none", "full"]

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineLimits:
    """How much of the machine one command gets, its children included."""

    processes: int = 512
    """Processes and threads together."""
    memory_bytes: int = 4096 * MIB
    """Resident memory of all of them, with shared memory and memfd; also what one of them may have as data."""
    file_bytes: int = 2048 * MIB
    """The largest file it may write."""
    temporary_bytes: int = 1024 * MIB
    """Its private temporary folder, where that is in memory; the same again for shared memory in files."""
    cpu_seconds: int = 1200
    """Of one process."""
    growth_bytes: int = 8192 * MIB
    """By how much the folders it may write may grow while it runs. Looked at, so it can be passed by what is written
    between two looks."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidConfig(f"Limits({name}={value!r}): give a whole number, 1 or more")

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """The owner's choices. Paths are absolute, or relative to the workspace where it says so."""

    confinement: Strictness = "preferred"
    network: Network = "none"
    read_roots: tuple[str, ...] = ()
    """Folders that may be read where reading is granted folder by folder (Landlock)."""
    write_roots: tuple[str, ...] = ()
    """Folders outside the workspace that may be written."""
    hidden: tuple[str, ...] = ()
    """Not readable, not writable, not creatable. A name with a slash at its end is a folder."""
    protected: tuple[str, ...] = ()
    """Readable, and neither writable nor creatable. The same way of writing."""
    environment: tuple[str, ...] = ()
    """Variables that are passed on beside the usual ones. Keys of providers and WAKEFUL_* never are."""
    limits: MachineLimits = field(default_factory=MachineLimits)

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "SandboxSettings":
        """From a configuration's own words. Raises InvalidConfig, naming what is not known."""
        known = {each.name for each in fields(cls)}
        for name in data:
            if name not in known:
                raise InvalidConfig(f"sandbox has no setting {name!r}", f"it has: {', '.join(sorted(known))}")
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }
        if isinstance(given.get("limits"), Mapping):
            given["limits"] = _limits(given["limits"])
        return cls(**given)

    def as_dict(self) -> dict[str, Any]:
        """The settings that differ from the default, as JSON data."""
        if self == _USUAL:
            return {}
        usual, said = asdict(_USUAL), asdict(self)
        said = {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}
        usual = {name: list(value) if isinstance(value, tuple) else value for name, value in usual.items()}
        return {name: value for name, value in said.items() if value != usual[name]}

    def __post_init__(self) -> None:
        if self.confinement not in ("required", "preferred"):
            raise InvalidConfig(f"confinement={self.confinement!r}", 'give "required" or "preferred"')
        if self.network not in ("none", "full"):
            raise InvalidConfig(f"network={self.network!r}", 'give "none" or "full"')
        for name in ("read_roots", "write_roots", "hidden", "protected"):
            for path in getattr(self, name):
                if not path.startswith("/"):
                    raise InvalidConfig(
                        f"{name} has {path!r}, which is not absolute", "write the path from the root on"
                    )


_USUAL = SandboxSettings()


def _limits(data: Mapping[str, Any]) -> MachineLimits:
    known = {each.name for each in fields(MachineLimits)}
    for name in data:
        if name not in known:
            raise InvalidConfig(f"sandbox.limits has no setting {name!r}", f"it has: {', '.join(sorted(known))}")
    return MachineLimits(**data)
