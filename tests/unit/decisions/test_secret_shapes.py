"""What looks like a secret is hidden inside any other text, in views and nowhere else."""

from pathlib import Path

import pytest

from kit.runs.engine_runs import calls
from kit.runs.whole_views import run_stream, transcript
from wakeful import Agent, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.decisions.secret_shapes import hide_shapes
from wakeful.service.commands.approvals import kept_secrets
from wakeful.service.queries.explanation import why_call
from wakeful.service.queries.prompt_report import prompt_of_agent, prompt_of_turn
from wakeful.service.queries.turns import EventReader, wire
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.views.tree import execution_tree

LETTERS = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY"
SHAPES = [
    f"sk-{LETTERS}", f"sk-ant-api03-{LETTERS}-x", f"sk-proj-{LETTERS}", f"ghp_{LETTERS}", f"github_pat_{LETTERS}",
    f"glpat-{LETTERS}", "xoxb-123456789012-abcdef", "AKIAIOSFODNN7EXAMPLE", f"AIza{LETTERS}", f"ya29.{LETTERS}",
    f"sk_live_{LETTERS}", f"hf_{LETTERS}", f"npm_{LETTERS}", f"pypi-{LETTERS}", f"gsk_{LETTERS}",
    f"eyJ{LETTERS}.eyJ{LETTERS}.{LETTERS}", f"SG.{LETTERS}.{LETTERS}",
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("around", ["{}", "the key is {}, I think", '{{"a": "{}"}}', "X={}\n", "({})"])
def test_a_token_is_hidden_inside_other_text(shape: str, around: str) -> None:
    assert hide_shapes(around.format(shape)) == around.format("[redacted]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"Authorization: Bearer {LETTERS}", "Authorization: Bearer [redacted]"),
        (f"curl -H 'authorization: bearer {LETTERS}' x", "curl -H 'authorization: bearer [redacted]' x"),
        ("postgres://ada:hunter2@db/x", "postgres://ada:[redacted]@db/x"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END", "[redacted]-----END"),
    ],
)
def test_what_follows_a_scheme_or_a_name_is_hidden(text: str, shown: str) -> None:
    assert hide_shapes(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "bearer authentication-mechanisms are described below",
        "task-list-of-many-words-for-everybody",
        "a token organizationwide is a word",
        "risk-free and sk-ill",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "https://example.org/a:b@c",
        "turn_0123456789abcdef appr_0123456789abcdef call_1_1",
        "https://user@example.org/x",
    ],
)
def test_other_words_stay(text: str) -> None:
    assert hide_shapes(text) == text


@pytest.mark.parametrize(
    "text", ["sk-" * 50_000, "eyJ" * 50_000, "-----BEGIN PRIVATE KEY-----" * 5_000, "://a:" * 40_000]
)
def test_long_texts_are_read_once(text: str) -> None:
    assert isinstance(hide_shapes(text), str)


async def test_views_hide_it_and_the_run_itself_does_not(tmp_path: Path) -> None:
    given: list[str] = []

    @tool(effect="pure")
    def fetch(command: str) -> str:
        """Fetches."""
        given.append(command)
        return f"the answer was: key {SHAPES[0]} for you"

    store, command = MemoryStore(), f"curl -H 'Authorization: Bearer {LETTERS}'"
    model = scripted([calls(("fetch", {"command": command})), f"It is {SHAPES[3]}."])
    result = await run(Agent("clerk", model, tools=[fetch]), "go", store=store)
    assert (given, result.output) == ([command], f"It is {SHAPES[3]}.")
    reader, facts = EventReader(store), list(result.facts())
    views = [
        str([wire(await reader.read(recorded)) for recorded in facts]),
        result.to_json(),
        str([event.model_dump(mode="json") for event in run_stream(result.turn_id, facts)]),
        str([entry.model_dump(mode="json") for entry in transcript(facts)]),
        str(execution_tree(facts, result.turn_id).model_dump(mode="json")),
    ]
    for view in views:
        assert LETTERS not in view
    assert SHAPES[0] in result.to_json(reveal=True), "who has the right sees it"


async def test_why_a_call_failed_and_what_an_agent_is_told_hide_it_too() -> None:
    @tool(effect="pure")
    def fetch() -> str:
        """Fetches."""
        raise RuntimeError(f"refused: {SHAPES[0]}")

    store, agent = MemoryStore(), Agent("clerk", scripted([calls("fetch"), "done"]), f"Use {SHAPES[3]}.", tools=[fetch])
    result = await run(agent, "go", store=store)
    row = await store.turn(result.turn_id)
    assert row is not None
    explanation = await why_call(store, result.calls()[0].call_id)
    assert any(step.traceback for step in explanation.steps)
    for view in (explanation, await prompt_of_turn(store, row), await prompt_of_agent(new_engine(store), agent)):
        shown = str(view.model_dump(mode="json"))
        assert LETTERS not in shown and "[redacted]" in shown


def test_a_person_who_edits_a_call_keeps_what_was_hidden_in_a_text() -> None:
    real = {"command": f"curl -H 'Authorization: Bearer {LETTERS}' x", "times": 1}
    shown = {"command": "curl -H 'Authorization: Bearer [redacted]' x", "times": 2}
    assert kept_secrets(shown, real) == real | {"times": 2}
