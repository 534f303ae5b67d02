"""Schemas, patterns and texts that would keep a process busy for ever: one call does not stop it.

Without what stops them most of these would never end; the inversions show that in a child with little processor time.
"""

import json
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from kit.mcp_peers.asking import Odd, names, reasons
from kit.runs.engine_runs import calls, of_kind
from wakeful import Agent, RunResult, run, tool
from wakeful.contracts.events import SubagentStarted
from wakeful.contracts.tools import Confinement
from wakeful.decisions.planner import read_plan
from wakeful.testing import scripted
from wakeful.tools.local.denials import told

SLOW = "a" * 5_000 + "!"
PROCESSOR_SECONDS = 4


@pytest.fixture
async def bombs(tmp_path: Path) -> AsyncIterator[Odd]:
    server = Odd(tmp_path, "bombs")
    yield server
    await server.source.close()


def spent_in_a_child(code: str) -> int:
    """How a child ends that may use a few seconds of processor time: below zero, it was killed for using more."""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS + 1))

    return subprocess.run([sys.executable, "-c", code], preexec_fn=bounded, check=False).returncode


async def called(tools: Any, name: str, arguments: Any, **agent: Any) -> RunResult[Any]:
    return await run(Agent("busy", scripted([calls((name, arguments)), "done"]), tools=tools, **agent), "go")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("text", {"text": SLOW}),
        ("keys", {SLOW: "x"}),
        ("others", {SLOW: "x"}),
        ("dialect", {"text": SLOW}),
        ("choices", {"list": [-1] * 5_000}),
        ("unique", {"list": [{"a": at} for at in range(200_000)]}),
    ],
)
async def test_a_servers_schema_and_a_models_arguments_together_stop_nothing(
    bombs: Odd, name: str, arguments: dict[str, Any]
) -> None:
    result = await called([bombs.source], f"mcp.odd/{name}", arguments)
    assert result.status == "completed"
    (call,) = result.calls()
    assert call.status == "error" and "tools/call" not in bombs.methods()


async def test_a_schema_that_cannot_be_checked_leaves_its_tool_out_and_says_why(bombs: Odd) -> None:
    offer = await bombs.source.offer()
    assert [name.removeprefix("mcp.odd/") for name in names(offer)] == [
        *("text", "keys", "others", "dialect", "unique", "choices", "email")
    ]
    why = {name.removeprefix("mcp.odd/"): each.reason for name, each in reasons(offer).items()}
    assert "lookaround is supported at the beginning only" in why["behind"]
    assert "stand for more than" in why["twice"] and "stand for more than" in why["wide"]
    assert "leads back to itself" in why["itself"]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (
            {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
            "properties.a.pattern: patterns are not supported",
        ),
        ({"patternProperties": {"^(a+)+$": {}}}, "patternProperties: patterns are not supported"),
        ({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {}]}}, "$ref": "#/$defs/a"}, "leads back to itself"),
    ],
)
async def test_a_schema_that_a_model_writes_holds_no_pattern(schema: dict[str, Any], reason: str) -> None:
    given = {"title": "look", "instructions": "look", "output_schema": {"type": "object", **schema}}
    asked = calls(("run_subtask", given))
    result = await run(Agent("busy", scripted([asked, "done"]), subtasks=True), "go")
    assert reason in (result.calls()[0].error or "")
    assert of_kind(result, SubagentStarted) == []


class Sum(BaseModel):
    left: "Sum | Product | int"
    right: int = 0


class Product(BaseModel):
    left: "Sum | Product | int"
    right: int = 0


Sum.model_rebuild()


def nested(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = {"left": found}
    return found


async def test_the_owners_own_types_are_not_tried_without_end() -> None:
    @tool(effect="pure")
    def add(sum: Sum) -> str:
        """Adds."""
        return "added"

    ran = await called([add], "add", {"sum": nested(5)})
    assert ran.calls()[0].status == "success"
    deep = await called([add], "add", {"sum": nested(40)})
    assert deep.calls()[0].status == "error"


async def test_an_answer_is_not_tried_without_end() -> None:
    steps = [json.dumps(nested(40)), f"```json\n{json.dumps(nested(3))}\n```"]
    result = await run(Agent("busy", scripted(steps), output_type=Sum), "go")
    assert isinstance(result.output, Sum)


async def test_white_space_without_end_in_an_answer_is_read_once() -> None:
    steps = ["```\n" + " \n" * 100_000 + "1", "1"]
    assert (await run(Agent("busy", scripted(steps), output_type=int), "go")).output == 1


async def test_white_space_without_end_in_a_plan_is_read_once() -> None:
    plan = read_plan(f"1. look\n- {' ' * 19_000}\n-x", run_id="r", model_ref="m", at=0.0, tool_calls=0)
    assert plan is not None and [step.text for step in plan.steps] == ["look"]


def test_what_a_command_says_is_read_once() -> None:
    held = Confinement(mode="bubblewrap", cwd="/w", write_roots=("/w",), read_roots=("/",), network="none")
    for words in ("+" * 60_000, "\u2018a" * 20_000, "-" * 60_000, "a/" * 30_000):
        told(f"{words} Permission denied".encode(), held, ["/hidden"])
    assert told(b"cat: '/hidden/x': Permission denied", held, ["/hidden"]) is not None


PLAIN_PATTERN = f"import re; re.search('^(a+)+$', {'a' * 40 + '!'!r})"
OUR_PATTERN = f"from wakeful.decisions.linear_patterns import found_by; found_by('^(a+)+$')({SLOW!r})"
TWICE = (
    "twice = {'$ref': '#/$defs/d0', '$defs': {**{f'd{n}': {'allOf': [{'$ref': f'#/$defs/d{n+1}'}] * 2} "
    "for n in range(40)}, 'd40': {}}}\n"
)
PLAIN_SCHEMA = TWICE + "from jsonschema import Draft202012Validator as V; V(twice).is_valid('x')"
OUR_SCHEMA = TWICE + "from wakeful.decisions.schema_validator import schema_problem; assert schema_problem(twice)"

MANY_STATES = (
    "import random\n"
    "from wakeful.decisions.linear_patterns import found_by\n"
    "from wakeful.decisions.schema_validator import SchemaValidator, schema_problem\n"
    "from wakeful.decisions.schema_keywords import TooMuchWork\n"
    "states, text = '^(a|b)*a(a|b){990}c', ''.join(random.Random(1).choices('ab', k=1_000_000))\n"
)
PLAIN_STATES = MANY_STATES + "found_by(states)(text)"
OUR_STATES = MANY_STATES + (
    "try: list(SchemaValidator({'pattern': states}).errors(text))\nexcept TooMuchWork: pass\nelse: raise SystemExit(1)"
)
LARGE = MANY_STATES + "large = [r'(\\PL|\\PN|\\PS){0,300}' * 9 + str(number) for number in range(1_000)]\n"
PLAIN_LARGE = LARGE + "list(map(found_by, large))"
OUR_LARGE = (
    LARGE
    + "assert 'too large' in schema_problem({'$defs': {str(at): {'pattern': each} for at, each in enumerate(large)}})"
)


@pytest.mark.parametrize(
    ("plain", "ours"),
    [
        (PLAIN_PATTERN, OUR_PATTERN),
        (PLAIN_SCHEMA, OUR_SCHEMA),
        (PLAIN_STATES, OUR_STATES),
        (PLAIN_LARGE, OUR_LARGE),
    ],
    ids=["a pattern", "a schema", "a pattern of many states", "large patterns"],
)
def test_without_the_bounds_a_pattern_and_a_schema_would_take_for_ever(plain: str, ours: str) -> None:
    assert spent_in_a_child(plain) in (-signal.SIGXCPU, -signal.SIGKILL)
    assert spent_in_a_child(ours) == 0
