"""Words for what an agent of a runtime is, where its definition comes from, and whether it may run."""

from typing import Literal, TypeAlias

AgentKind: TypeAlias = Literal["default", "named", "child"]
Visibility: TypeAlias = Literal["public", "private"]
Ownership: TypeAlias = Literal["self_owned", "parent_supervised"]
ProfilePreset: TypeAlias = Literal["public_named", "private_child"]
AgentSource: TypeAlias = Literal["code", "file", "api", "agent"]
"""Where its definition comes from. agent: another agent made it, and its definition follows from that one's."""
AgentControl: TypeAlias = Literal["running", "paused", "stopped"]
"""running: its threads run when they are due. paused: everything is kept and nothing runs. stopped: the same, and what
comes from outside is refused."""
ControlCause: TypeAlias = Literal["operator", "budget", "configuration", "provider", "failure", "runtime"]
"""Who or what changed it. Only an operator's word holds until an operator takes it back."""
