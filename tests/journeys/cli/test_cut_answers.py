"""`wakeful run` with an answer that is not whole: the text, a line that says so, and an exit code that scripts see."""

import json

import pytest

from kit.surfaces.command_line import Wakeful
from kit.wires import anthropic_samples
from kit.wires.provider_server import Answer, ProviderServer

HALF = "The answer is"


def test_half_an_answer_is_printed_and_is_no_success(
    wakeful: Wakeful, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary-0123456789abcdef")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
    block = anthropic_samples.text_block(0, HALF)
    events = [anthropic_samples.started(), *block, *anthropic_samples.ended("max_tokens")]
    provider.always = Answer(anthropic_samples.sse(events))
    options = ("run", "hello", "--profile", "chat", "--model", "anthropic:claude-opus-4-7")
    done = wakeful(*options)
    assert (done.code, done.out) == (1, f"{HALF}\n")
    assert "incomplete (cut_off)" in done.err and "Raise max_tokens" in done.err
    told = json.loads(wakeful(*options, "--json").out)
    assert (told["status"], told["stop_reason"], told["finish_reason"]) == ("incomplete", "cut_off", "max_tokens")
    assert told["final_content"] == HALF
