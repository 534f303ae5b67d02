"""What the environment says about the numbers of the loop reaches a turn, or is refused by name."""

import pytest

from wakeful import Agent, Budget, run
from wakeful.contracts import budgets
from wakeful.contracts.budgets import PROFILES, Limits
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import TurnStarted
from wakeful.settings.limit_overrides import OVERRIDABLE, limit_overrides
from wakeful.testing import scripted

SAID = {
    "MAX_DEPTH": ("1", "depth", 1),
    "MAX_ITERATIONS_PER_LEVEL": ("5", "max_steps", 5),
    "MAX_PARALLEL_PER_TURN": ("2", "width", 2),
    "MAX_TOTAL_SUBTASKS": ("0", "subtasks", 0),
    "MAX_TOTAL_LLM_CALLS": ("7", "model_calls", 7),
    "MAX_TOTAL_TOOL_CALLS": ("9", "tool_calls", 9),
    "MAX_WALL_CLOCK_MS": ("1500", "seconds", 1.5),
    "MAX_TOOL_RESULT_BYTES": ("4000", "result_bytes", 4_000),
    "MAX_HISTORY_TOKENS": ("6000", "history_tokens", 6_000),
    "MAX_SCHEMA_RETRIES": ("1", "schema_retries", 1),
}


def test_every_constant_may_be_overridden_and_nothing_else() -> None:
    constants = {name for name in vars(budgets) if name.startswith("MAX_")}
    assert constants == set(OVERRIDABLE) == set(SAID)
    assert limit_overrides({f"wakeful_{name}": "1" for name in constants}) == {}


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("profile", ["interactive", "autonomous"])
def test_a_variable_replaces_that_number_of_a_profile(name: str, profile: str) -> None:
    text, field, value = SAID[name]
    overrides = limit_overrides({f"WAKEFUL_{name}": text})
    assert overrides == {field: value}
    base = PROFILES[profile]
    assert getattr(base, field) != value
    assert Budget(profile=profile).limits(overrides=overrides) == base.model_copy(update={field: value})  # type: ignore[arg-type]


def test_what_is_unlimited_stays_so_and_what_a_budget_names_wins() -> None:
    overrides = limit_overrides({f"WAKEFUL_{name}": text for name, (text, _, _) in SAID.items()})
    bare = Budget.unlimited().limits(overrides=overrides)
    assert bare == Limits(depth=1, width=2, result_bytes=4_000, schema_retries=1)
    named = Budget(model_calls=50, depth=2).limits(12, overrides)
    assert (named.model_calls, named.depth, named.max_steps, named.tool_calls) == (50, 2, 12, 9)


@pytest.mark.parametrize("wrong", ["many", "-1", "1.5", "1_000", " 5", "+5", "٣", "9" * 16])
@pytest.mark.parametrize("name", SAID)
def test_a_value_that_is_no_number_is_an_error(name: str, wrong: str) -> None:
    with pytest.raises(InvalidConfig, match=f"WAKEFUL_{name} is"):
        limit_overrides({f"WAKEFUL_{name}": wrong})


@pytest.mark.parametrize("name", ["MAX_TOTAL_LLM_CALLS", "MAX_PARALLEL_PER_TURN", "MAX_WALL_CLOCK_MS"])
def test_none_at_all_is_refused_where_a_turn_could_not_begin(name: str) -> None:
    with pytest.raises(InvalidConfig, match="1 or more"):
        limit_overrides({f"WAKEFUL_{name}": "0"})
    assert limit_overrides({f"WAKEFUL_{name}": ""}) == {}


async def test_a_run_is_held_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKEFUL_MAX_TOTAL_LLM_CALLS", "1")
    steps = [{"calls": [{"name": "absent", "arguments": {}}]}, {"text": "done"}]
    agent = Agent("any", scripted(steps, leftover="ignore"))
    result = await run(agent, "go")
    assert (result.status, result.stop_reason) == ("incomplete", "llm_calls")
    monkeypatch.setenv("WAKEFUL_MAX_TOTAL_LLM_CALLS", "lots")
    with pytest.raises(InvalidConfig, match="WAKEFUL_MAX_TOTAL_LLM_CALLS is 'lots'"):
        await run(agent, "go")
    monkeypatch.delenv("WAKEFUL_MAX_TOTAL_LLM_CALLS")
    assert (await run(Agent("any", scripted(steps)), "go")).status == "completed"


@pytest.mark.spec("LOOP-BUD-13")
@pytest.mark.parametrize("name", SAID)
async def test_each_constant_that_is_overridden_is_what_a_run_is_held_to(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, field, value = SAID[name]
    assert set(SAID) == set(OVERRIDABLE)
    plain = await run(Agent("any", scripted(["done"])), "go", budget=Budget(profile="interactive"))
    monkeypatch.setenv(f"WAKEFUL_{name}", text)
    held = await run(Agent("any", scripted(["done"])), "go", budget=Budget(profile="interactive"))
    for result, wanted in ((plain, getattr(PROFILES["interactive"], field)), (held, value)):
        (started,) = [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, TurnStarted)]
        assert getattr(started.limits, field) == wanted
