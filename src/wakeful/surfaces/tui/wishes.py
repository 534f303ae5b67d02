"""What a key in an overlay comes to: a wish that the console carries out. Pure."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from wakeful.surfaces.tui.home_client import Record


class CommandWish(NamedTuple):
    """A line is to be carried out, as if it were typed."""

    line: str


class DecisionWish(NamedTuple):
    """A decision is to be told to the process. The field `words` is what a person typed."""

    approval: str
    how: str
    fields: Record


class QuestionWish(NamedTuple):
    """The composer is to ask for words, which make another wish."""

    label: str
    initial: str
    answer: "Callable[[str], Wish]"


Wish: TypeAlias = CommandWish | DecisionWish | QuestionWish
