"""How much memory this process holds. Where the system does not tell what is held now, the peak so far stands in."""

import resource
import sys
from pathlib import Path

_STATM = Path("/proc/self/statm")


def resident() -> int:
    """Bytes held now."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    return peak()


def peak() -> int:
    """The most bytes this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
