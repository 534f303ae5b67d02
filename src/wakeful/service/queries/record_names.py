"""Records by the names that people give them: a whole id, or as much of its beginning as means one record.

The word in front (`turn_`) may be left out. A beginning that fits several records is never guessed at: the error lists
them.
"""

from collections.abc import Iterable, Sequence

SHORTEST = 4
"""Letters of an id, without the word in front, that are enough to be looked for."""
MOST = 8
"""How many candidates are listed."""


def begin_with(given: str, ids: Iterable[str], word: str) -> list[str]:
    """The ids that begin with what was given, `word` included or not."""
    bare = given.removeprefix(word)
    if len(bare) < SHORTEST:
        return []
    return [each for each in ids if each.startswith(given) or each.removeprefix(word).startswith(bare)]


def several(given: str, what: str, candidates: Sequence[str]) -> tuple[str, str]:
    """Message and hint for a name that fits several records."""
    lines = [f"  {each}" for each in candidates[:MOST]]
    lines += [f"  and {len(candidates) - MOST} more"] if len(candidates) > MOST else []
    return f"{given!r} matches {len(candidates)} {what}", "\n".join(["Give more of the id:", *lines])
