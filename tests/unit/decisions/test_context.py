"""The frame a turn's requests begin with."""

from dataclasses import replace
from typing import Any

import pytest

from wakeful import Agent, run, tool
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.frames import ProviderPromptFrame
from wakeful.contracts.skills import ActiveSkill
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.context import frame_of, prompt_cache_key
from wakeful.decisions.prompt import PromptParts, assembled, root_blocks
from wakeful.ports import ModelRequest
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted

LOOK = ToolDeclaration(name="look", input_schema={"type": "object"})
CONFIG = TurnConfig(agent_name="a", model_ref="m:n", instructions="Be brief.", tools=(LOOK,))


@tool(effect="pure")
async def look() -> str:
    """Look."""
    return "seen"


async def frames(*prompts: str, instructions: str = "Be brief.", thread: str = "t") -> list[ProviderPromptFrame]:
    """The frames of all requests of some turns of one thread."""
    seen: list[ProviderPromptFrame] = []

    def answer(request: ModelRequest) -> Any:
        assert request.frame is not None
        seen.append(request.frame)
        return {"calls": [{"name": "look", "arguments": {}}]} if request.answered == 0 else "done"

    store = MemoryStore()
    for prompt in prompts:
        await run(Agent("a", scripted(answer), instructions, [look]), prompt, store=store, thread=thread)
    return seen


@pytest.mark.spec("HOL-FRAME-01", "HOL-FRAME-02", "HOL-FRAME-08")
async def test_every_request_of_a_turn_has_one_neutral_frame_whatever_rounds_came_before() -> None:
    first, second = await frames("go")
    assert first == second, "a continuation begins as the first request did"
    assert first.system_prompt == "Be brief."
    assert [block.text for block in first.system_blocks] == ["Be brief."]
    assert ProviderPromptFrame.model_validate_json(first.model_dump_json()) == first, "it can be replayed from its JSON"


@pytest.mark.spec("HOL-FRAME-03")
def test_blocks_say_how_stable_they_are_and_where_a_cache_may_end() -> None:
    (block,) = frame_of(CONFIG, "a", 7).system_blocks
    assert (block.stability, block.cache_breakpoint) == ("agent_scoped", True)
    assert frame_of(CONFIG.model_copy(update={"instructions": ""}), "a", 7).system_blocks == ()


def test_what_is_kept_with_a_configuration_is_not_of_its_copies() -> None:
    (kept,) = frame_of(CONFIG, "a", 7).system_blocks
    assert frame_of(CONFIG, "b", 8).system_blocks[0] is kept, "made once"
    for other in (CONFIG.changed(instructions="Be long."), CONFIG.model_copy(update={"instructions": "Be long."})):
        assert other.kept == {}
        assert [block.text for block in frame_of(other, "a", 7).system_blocks] == ["Be long."]


@pytest.mark.spec("HOL-FRAME-04", "HOL-FRAME-06")
async def test_the_cache_key_outlives_turns_and_the_fingerprint_does_not() -> None:
    one, _, two, _ = await frames("first", "second")
    assert one.cache is not None and two.cache is not None
    assert one.cache.prompt_cache_key == two.cache.prompt_cache_key
    assert one.cache.context_fingerprint != two.cache.context_fingerprint
    assert one.cache.context_fingerprint != one.cache.prompt_cache_key


@pytest.mark.spec("HOL-FRAME-05")
def test_the_cache_key_rotates_with_guidance_and_tools_and_with_nothing_else() -> None:
    key = prompt_cache_key(CONFIG)
    other_tools = CONFIG.model_copy(update={"tools": ()})
    other_words = CONFIG.model_copy(update={"instructions": "Be long."})
    other_settings = CONFIG.model_copy(update={"settings": {"temperature": 1}, "model_ref": "x:y"})
    assert prompt_cache_key(other_tools) != key != prompt_cache_key(other_words)
    assert prompt_cache_key(CONFIG.model_copy(update={"agent_name": "b"})) != key
    assert prompt_cache_key(other_settings) == key


async def test_runs_of_one_agent_share_their_cache_key_also_without_a_thread() -> None:
    seen: list[str] = []

    def answer(request: ModelRequest) -> str:
        assert request.frame is not None and request.frame.cache is not None
        seen.append(request.frame.cache.prompt_cache_key)
        return "hi"

    for _ in range(2):
        await run(Agent("a", scripted(answer), "Be brief."), "go")
    assert seen[0] == seen[1]


def test_what_is_a_turns_own_comes_last_and_turns_no_key() -> None:
    parts = PromptParts(instructions="Be brief.", belt=("wakeful/exec_command",), works_on_files=True)
    used = ActiveSkill(name="notes", entrypoint_path="/s/SKILL.md", state="restored", load_reason="read_skill_md")

    def config(parts: PromptParts) -> TurnConfig:
        prompt = assembled(root_blocks(parts))
        return CONFIG.model_copy(update={"instructions": prompt.text, "prompt_blocks": prompt.blocks})

    before, after = config(parts), config(replace(parts, active=(used,)))
    one, two = frame_of(before, "a", 7), frame_of(after, "a", 7, "# Plan")
    assert [(block.stability, block.cache_breakpoint) for block in two.system_blocks] == [
        ("stable", True),
        ("agent_scoped", False),
        ("agent_scoped", True),
        ("turn_scoped", False),
        ("turn_scoped", False),
    ]
    assert one.system_blocks == two.system_blocks[:3] and two.system_blocks[4].text == "# Plan"
    assert one.system_prompt == before.instructions and two.system_prompt == f"{after.instructions}\n\n# Plan"
    assert prompt_cache_key(before) == prompt_cache_key(after)
    assert prompt_cache_key(before) != prompt_cache_key(config(replace(parts, instructions="Be long.")))


def test_a_configuration_with_other_instructions_has_no_blocks_of_the_old_ones() -> None:
    prompt = assembled(root_blocks(PromptParts(instructions="Be brief.", works_on_files=True)))
    config = CONFIG.changed(instructions=prompt.text, prompt_blocks=prompt.blocks)
    assert config.prompt_blocks and config.changed(tools=()).prompt_blocks
    assert config.changed(instructions="Plan.").prompt_blocks == ()
