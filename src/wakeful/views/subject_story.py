"""Why one thing is as it is: a message, a timer, a notice or a turn, in a sentence with the facts it rests on."""

from typing import Literal, TypeAlias

from wakeful.contracts.values import Value

SubjectKind: TypeAlias = Literal["message", "timer", "notice", "turn"]


class SubjectStory(Value):
    """One thing, and why it is as it is."""

    kind: SubjectKind
    id: str
    agent: str
    thread: str
    sentence: str
    state: str
    evidence: tuple[str, ...] = ()
    """The facts it rests on, in words or as a kind and an id."""
    next_command: str = ""
    """What somebody may type who wants to know more."""
