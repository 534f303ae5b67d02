"""Templates of agents' homes as readers see them."""

from typing import Literal, TypeAlias

from wakeful.contracts.values import Value

TemplateOrigin: TypeAlias = Literal["builtin", "changed", "own"]
"""Of the runtime; of the runtime and changed since by somebody; somebody's own."""


class TemplateRecord(Value):
    """One template."""

    template: str
    """Its id, as `wakeful agent create --template` takes it."""
    path: str
    """Its folder."""
    origin: TemplateOrigin
    skills: tuple[str, ...] = ()
    """The skills that it brings, as it names them."""
    problem: str = ""
    """Why no home can be made from it now."""


class TemplateText(TemplateRecord):
    """A template with what its `AGENTS.md` says."""

    text: str
