"""`@tool(external=True)`: a function that is only a signature."""

from typing import Any

import pytest

from wakeful import RunContext, tool
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.tools import ToolDeclaration
from wakeful.tools.client import ClientTool


@tool(external=True, timeout=12.5, effect="pure")
def pick_file(folder: str) -> str:
    """Let the person pick a file."""
    return f"called with {folder}"


def test_the_declaration_says_that_a_client_runs_it_and_how_long_it_may_take() -> None:
    declared = pick_file.declaration
    assert (declared.name, declared.answered_by, declared.runtime_owner) == ("client/pick_file", "client", "client")
    assert (declared.timeout, declared.effect, declared.external) == (12.5, "pure", True)
    assert declared.description == "Let the person pick a file."
    assert declared.input_schema["required"] == ["folder"]
    assert pick_file("/home") == "called with /home"  # the function stays that function


@pytest.mark.parametrize("given", ["pick", "client/pick"])
def test_a_name_may_be_bare_or_whole(given: str) -> None:
    assert tool(lambda: None, external=True, name=given).name == "client/pick"


@pytest.mark.parametrize("given", ["mine/pick", "Pick", "client/Pick", "client/pick.it"])
def test_a_name_that_is_no_clients_is_refused(given: str) -> None:
    with pytest.raises(InvalidConfig, match="cannot be the name of a tool that a client runs"):
        tool(lambda: None, external=True, name=given)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"effect": "probeable"}, "ask a client whether it did something"),
        ({"locks": ["ledger"]}, "holds no locks"),
        ({"bind": {"order": "context.order"}}, "come from this run's context"),
    ],
)
def test_what_only_code_of_this_process_could_keep_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidConfig, match=words):

        @tool(external=True, **options)
        def look(order: str) -> str: ...


def test_a_client_has_no_context() -> None:
    with pytest.raises(InvalidConfig, match="takes a context"):

        @tool(external=True)
        def look(ctx: RunContext[object], order: str) -> str: ...


def test_nothing_ever_starts_it_here() -> None:
    declared = ToolDeclaration(name="client/look", input_schema={})
    for made in (pick_file, ClientTool(declared)):
        with pytest.raises(AssertionError, match="run by a client, never by code of this process"):
            made.start(RunContext(None), {})


def test_a_declaration_alone_makes_a_clients_tool() -> None:
    made = ClientTool(ToolDeclaration(name="client/look", input_schema={}))
    assert (made.declaration.answered_by, made.declaration.runtime_owner) == ("client", "client")
    with pytest.raises(InvalidConfig):
        ClientTool(ToolDeclaration(name="wakeful/look", input_schema={}))
