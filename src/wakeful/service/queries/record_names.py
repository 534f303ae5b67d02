"""Records by the names that people give them: a whole id, or as much of its beginning as means one record.

The word in front (`turn_`) may be left out. A beginning that fits several records is never guessed at: the error lists
them.
"""

from collections.abc import Iterable, Sequence

from wakeful.contracts.errors import ForTheCaller, InvalidRequest
from wakeful.ports.tables import Match, Row, Rows, Table

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


def meant(given: str, ids: Iterable[str], word: str, what: str, problem: type[ForTheCaller] = InvalidRequest) -> str:
    """The whole id of the one record that is meant; what no id begins with stays as it is. Raises `problem` where
    several do."""
    known = [*ids]
    fitting = [given] if given in known else begin_with(given, known, word)
    if len(fitting) > 1:
        raise problem(*several(given, what, fitting))
    return fitting[0] if fitting else given


async def meant_row(
    store: Rows,
    table: Table[Row],
    given: str,
    word: str,
    what: str,
    problem: type[ForTheCaller] = InvalidRequest,
) -> Row | None:
    """The same of the rows of a table, by their key: the row that is meant, without reading the others."""
    row, bare = await store.get_row(table, given), given.removeprefix(word)
    if row is not None or len(bare) < SHORTEST:
        return row
    begins = (table.key[0], word + bare, f"{word}{bare}\U0010ffff")
    found = {
        str(table.key_of(each)[0]): each
        for each in await store.find_rows(table, [Match({}, begins)], order=table.key, limit=MOST + 1)
    }
    return found.get(meant(given, found, word, what, problem))
