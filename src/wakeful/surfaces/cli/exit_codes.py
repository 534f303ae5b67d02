"""How a command ends: the exit codes of its process. A wrong request ends with the code of its error, which is 2."""

from typing import Final

COMPLETED: Final = 0
FAILED: Final = 1
NEEDS_PERSON: Final = 3
INTERRUPTED: Final = 130
