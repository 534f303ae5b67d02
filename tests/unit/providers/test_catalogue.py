"""The tables as one answer: complete, true to the tables, and without anything secret."""

from dataclasses import fields
from pathlib import Path

import pytest

from wakeful.contracts.catalogue import Capabilities
from wakeful.contracts.errors import InvalidConfig
from wakeful.providers.catalogue import catalogue, key_variables, model_page, provider_states
from wakeful.providers.endpoints import BUILT_IN
from wakeful.providers.price_list import model_names, price_of
from wakeful.providers.profiles import PROFILES, ModelProfile, profile_of

KEY = "sk-canary-0123456789"


def environ(tmp_path: Path, text: str = "", **more: str) -> dict[str, str]:
    if text:
        (tmp_path / "wakeful.toml").write_text(text)
    return {"WAKEFUL_HOME": str(tmp_path), **more}


def test_every_field_of_a_profile_is_told() -> None:
    assert list(Capabilities.model_fields) == [field.name for field in fields(ModelProfile)]


def test_every_model_of_a_vendor_is_listed_with_its_own_profile(tmp_path: Path) -> None:
    found = {each.ref: each for each in catalogue(environ(tmp_path)).models}
    vendors = ("openai:gpt-5.6", "anthropic:claude-sonnet-5", "deepseek:deepseek-chat", "mistral:mistral-small")
    assert set(vendors) <= found.keys()
    for each in found.values():
        profile, told = profile_of(each.ref.partition(":")[2]), each.capabilities
        assert told is not None and each.declared
        assert (told.tools, told.context_window, set(told.sampling)) == (
            profile.tools,
            profile.context_window,
            profile.sampling,
        )
        assert (each.price is None) == (price_of(each.ref) is None)
    assert not [ref for ref in found if ref.endswith("-")], "a beginning of names is no model"
    assert len(PROFILES) > 10


def test_names_that_are_suggested_are_models() -> None:
    assert not [name for name in model_names("openai") if name.startswith("ft:") or name.endswith("-")]


def test_the_first_variable_that_is_set_is_named_and_its_value_is_not(tmp_path: Path) -> None:
    text = '[providers.groq]\nkey_env = ["WORK_KEY", "HOME_KEY"]\n'
    given = environ(tmp_path, text, HOME_KEY=KEY, ANTHROPIC_API_KEY=f"  {KEY} ")
    states = {each.name: each for each in provider_states(given)}
    assert (states["groq"].key, states["groq"].key_variable) == ("found", "HOME_KEY")
    assert (states["anthropic"].key, states["anthropic"].key_variable) == ("found", "ANTHROPIC_API_KEY")
    assert (states["openai"].key, states["openai"].key_variable) == ("missing", "OPENAI_API_KEY")
    assert KEY not in repr(states) + catalogue(given).model_dump_json() + repr(model_page("groq:m", given))
    assert {"WORK_KEY", "HOME_KEY", "ANTHROPIC_API_KEY", "MISTRAL_API_KEY"} <= key_variables(given)


def test_what_is_secret_in_an_address_or_a_header_is_not_told(tmp_path: Path) -> None:
    text = f'[providers.acme]\nbase_url = "https://acme.test/v1?key={KEY}"\nheaders = {{ x-token = "{KEY}" }}\n'
    told = catalogue(environ(tmp_path, text)).model_dump_json()
    assert "https://acme.test/v1" in told
    assert KEY not in told


def test_one_broken_provider_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    text = '[providers.groq]\nbase_url = "nowhere"\n[providers.acme]\nkey_env = "X"\n'
    states = {each.name: each for each in provider_states(environ(tmp_path, text))}
    assert {name for name, each in states.items() if each.status == "misconfigured"} == {"groq", "acme"}
    assert "'nowhere' is not an address" in states["groq"].note
    assert "has no address" in states["acme"].note
    assert states.keys() == {"scripted", "acme", *BUILT_IN}
    assert "GROQ_API_KEY" in key_variables(environ(tmp_path)), "broken or not, its key is not for children"


def test_a_file_that_cannot_be_read_is_an_error_and_still_no_child_gets_a_key(tmp_path: Path) -> None:
    given = environ(tmp_path, "[providers")
    with pytest.raises(InvalidConfig, match="is not TOML"):
        catalogue(given)
    assert {variable for known in BUILT_IN.values() for variable in known.key_env} <= key_variables(given)


def test_a_price_is_found_for_a_dated_snapshot_and_not_for_the_same_model_on_ones_own_machine(tmp_path: Path) -> None:
    given = environ(tmp_path, ANTHROPIC_API_KEY=KEY)
    dated = model_page("anthropic:claude-haiku-4-5-20251001", given)
    assert dated.model.price is not None and (dated.model.price.input, dated.near) == ("1", ())
    assert dated.model.price.price_list.startswith("genai-prices ")
    local = model_page("vllm:anthropic/claude-haiku-4-5", given).model.price
    assert local is not None and (local.input, local.output, local.price_list) == ("0", "0", "local")
    elsewhere = model_page("vllm:anthropic/claude-haiku-4-5", {**given, "VLLM_BASE_URL": "http://10.0.0.1/v1"})
    assert elsewhere.model.price is None


def test_the_owners_price_is_listed_as_the_owners(tmp_path: Path) -> None:
    text = '[providers.vllm.prices.qwen3]\ninput = 0.1\noutput = 0.2\n[providers.openai.prices."gpt-5.5"]\n'
    given = environ(tmp_path, text + "input = 1\noutput = 2\nas_of = 2026-11-01\n", OPENAI_API_KEY=KEY)
    found = {each.ref: each.price for each in catalogue(given).models}
    mine, theirs = found["vllm:qwen3"], found["openai:gpt-5.5"]
    assert mine is not None and (mine.input, mine.price_list, mine.as_of) == ("0.1", "settings", None)
    assert theirs is not None and (theirs.output, theirs.price_list, theirs.as_of) == ("2", "settings", "2026-11-01")
    page = model_page("openai:gpt-5.5", given).model.price
    assert page == theirs
