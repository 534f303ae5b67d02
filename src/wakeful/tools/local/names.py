"""The names of the profiles: what an agent's configuration may say."""

from typing import Literal, TypeAlias

Profile: TypeAlias = Literal["coding", "shell_first", "chat"]
