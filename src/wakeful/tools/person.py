"""`ask_person`: a question to whoever is in charge, as a tool. Its call waits like one that needs approval.

No code runs: the gate writes the question down, and the answer is the result. Where nobody could ever answer, the model
is told so at once.
"""

from typing import Any

from wakeful.contracts.tools import ToolDeclaration
from wakeful.tools.call_runner import CallHandle
from wakeful.tools.context import RunContext
from wakeful.tools.decorator import tool
from wakeful.tools.tool import Tool

NAME = "wakeful/ask_person"


def _ask_person(question: str, choices: list[str] | None = None) -> str:
    """Ask the person in charge, and wait for the answer. Give choices where only a few answers make sense.

    Args:
        question: What you want to know, in full: the person sees nothing else of the conversation.
        choices: The possible answers, if there are only a few.
    """
    raise AssertionError("a question is answered by a person, never by code")


class AskPerson(Tool[object]):
    """The tool; use the one instance, `ask_person`."""

    def __init__(self) -> None:
        self._asked = tool(_ask_person, effect="pure", name=NAME)
        self.__signature__ = self._asked.__signature__
        self._declaration: ToolDeclaration | None = None

    @property
    def declaration(self) -> ToolDeclaration:
        if self._declaration is None:
            declared = self._asked.declaration
            self._declaration = declared.model_copy(
                update={"answered_by": "person", "permission_class": "safe", "parallel_safe": True}
            )
        return self._declaration

    @property
    def name(self) -> str:
        return NAME

    @property
    def needs_deps(self) -> bool:
        return False

    def start(self, ctx: RunContext[object], arguments: dict[str, Any]) -> CallHandle:
        raise AssertionError("a question is answered by a person, never by code")


ask_person = AskPerson()
