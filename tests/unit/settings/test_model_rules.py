"""The owner's word about models: read whole, or refused with its place."""

from pathlib import Path

import pytest

from wakeful.contracts.errors import InvalidConfig
from wakeful.providers.openai_chat import OpenAIChat
from wakeful.settings.model_rules import ModelRules, RuledOut, model_rules


def said(tmp_path: Path, text: str, **environ: str) -> ModelRules:
    file = tmp_path / "wakeful.toml"
    file.write_text(text)
    return model_rules({"WAKEFUL_CONFIG": str(file), **environ})


def test_without_a_word_every_model_may_be_asked(tmp_path: Path) -> None:
    rules = said(tmp_path, "")
    assert rules == ModelRules() == said(tmp_path, "[models]\n", WAKEFUL_OFFLINE="0")
    assert rules.against("openai:gpt-5.5", leaves_machine=True) is None


def test_deny_goes_before_allow_and_what_allow_does_not_name_is_denied(tmp_path: Path) -> None:
    rules = said(tmp_path, '[models]\nallow = ["openai:*", "ollama:qwen3"]\ndeny = ["*-preview"]\n')
    assert rules.against("openai:gpt-5.5", leaves_machine=True) is None
    assert rules.against("ollama:qwen3", leaves_machine=False) is None
    assert rules.against("ollama:qwen4", leaves_machine=False) == RuledOut(
        "policy_denied", "[models] allow does not name it"
    )
    assert rules.against("openai:o1-preview", leaves_machine=True) == RuledOut(
        "policy_denied", "[models] deny names '*-preview'"
    )
    nothing = said(tmp_path, "[models]\nallow = []\n")
    assert nothing.against("openai:gpt-5.5", leaves_machine=True) is not None, "an empty list allows none"


@pytest.mark.parametrize(("text", "variable"), [("[models]\noffline = true\n", ""), ("", "1")])
def test_offline_rules_out_what_is_beyond_this_machine(tmp_path: Path, text: str, variable: str) -> None:
    rules = said(tmp_path, text, WAKEFUL_OFFLINE=variable)
    ruled_out = rules.against("openai:gpt-5.5", leaves_machine=True)
    assert ruled_out is not None and ruled_out.reason == "offline"
    assert rules.against("ollama:qwen3", leaves_machine=False) is None


@pytest.mark.parametrize(
    ("address", "leaves"),
    [
        ("http://127.0.0.1:1/v1", False),
        ("http://localhost:1/v1", False),
        ("http://[::1]:1/v1", False),
        ("http://127.0.0.1.example.org/v1", True),
        ("http://127.example.org/v1", True),
        ("http://192.168.0.2/v1", True),
        ("https://api.example.org/v1", True),
    ],
)
def test_a_model_knows_whether_its_address_is_this_machine(address: str, leaves: bool) -> None:
    assert OpenAIChat("m", base_url=address).leaves_machine is leaves


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[models]\nallow = "openai:*"\n', "allow is 'openai:\\*'"),
        ("[models]\ndeny = [1]\n", r"deny is \[1\]"),
        ('[models]\noffline = "yes"\n', "offline is 'yes'"),
        ("[models]\nalow = []\n", r"no setting 'alow'(.|\n)*Did you mean allow"),
        ("models = 3\n", "models is 3"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused_with_its_place(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(InvalidConfig, match=place):
        said(tmp_path, text)


def test_a_variable_that_says_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="WAKEFUL_OFFLINE is 'maybe'"):
        said(tmp_path, "", WAKEFUL_OFFLINE="maybe")
