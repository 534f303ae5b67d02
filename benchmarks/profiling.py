"""The profile of a cell as text, so that a missed aim is reported with the place where the time goes."""

import cProfile
import pstats
import re
from typing import Any

_PREFIX = re.compile(r"^.*?(?:site-packages|/src|/lib/python3\.\d+|/benchmarks)/")


def text(profile: cProfile.Profile, rounds: int, top: int = 30) -> str:
    """The functions with the most time of their own. The profiler's cost is in it: read the order, not the sum."""
    stats: dict[tuple[str, int, str], tuple[Any, ...]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    whole = sum(entry[2] for entry in stats.values()) or 1.0
    lines = [f"{'own %':>6} {'own us':>8} {'all us':>8} {'calls':>7}  a round; function"]
    for (file, line, name), entry in sorted(stats.items(), key=lambda item: -item[1][2])[:top]:
        _, calls, own, cumulated, _ = entry
        where = name if file == "~" else f"{_PREFIX.sub('', file)}:{line} {name}"
        own_us, all_us = own / rounds * 1e6, cumulated / rounds * 1e6
        lines.append(f"{100 * own / whole:6.1f} {own_us:8.1f} {all_us:8.1f} {calls / rounds:7.2f}  {where}")
    return "\n".join(lines) + "\n"
