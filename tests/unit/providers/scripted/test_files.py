"""Scripts from files, and what a wrong one is told."""

import json
from pathlib import Path

import pytest

from kit.wires.model_requests import a_request, pieces_of, reply_of
from wakeful.contracts.content import Image
from wakeful.contracts.errors import MalformedScript
from wakeful.contracts.models import TokenUsage
from wakeful.providers.scripted import ScriptedModel, scripted_from_reference

YAML = """\
description: a price, then an answer
usage: auto
steps:
  - calls:
      - {name: look_up, arguments: {order: A17}}
  - It costs 42.
"""


@pytest.fixture
def written(tmp_path: Path) -> "Written":
    return Written(tmp_path)


class Written:
    """A script file with a given text."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, text: str, name: str = "script.yaml") -> Path:
        path = self.folder / name
        path.write_text(text, "utf-8")
        return path

    def refused(self, text: str, name: str = "script.yaml") -> MalformedScript:
        with pytest.raises(MalformedScript) as refused:
            ScriptedModel(self(text, name))
        return refused.value


async def test_a_yaml_file_with_steps_and_usage(written: Written) -> None:
    path = written(YAML)
    model = scripted_from_reference(str(path))
    assert model.ref == f"scripted:{path}"
    assert (await reply_of(model, a_request(0))).item.calls[0].arguments == {"order": "A17"}
    last = await reply_of(model, a_request(1))
    assert (last.item.text, last.usage) == ("It costs 42.", TokenUsage(output_tokens=4, total_tokens=4))


async def test_a_list_by_itself_is_a_script_and_json_holds_the_same(written: Written) -> None:
    steps = [{"text": "hi", "parts": [{"type": "image", "data": "cG5n"}]}]
    from_json = await reply_of(ScriptedModel(written(json.dumps(steps), "script.json")), a_request())
    from_yaml = await reply_of(ScriptedModel(written("- {text: hi, parts: [{type: image, data: cG5n}]}")), a_request())
    assert from_json == from_yaml
    assert from_json.item.parts[1] == Image(data=b"png")


@pytest.mark.parametrize("streams", [True, False])
async def test_the_script_that_ships_answers_without_tools_for_ever(streams: bool) -> None:
    model = scripted_from_reference("demo")
    assert model.ref == "scripted:demo"
    for answered in (0, 1, 7):
        reply = await reply_of(model, a_request(answered, stream=streams))
        assert not reply.item.calls
        assert "no key, no cost" in reply.item.text
    assert len(await pieces_of(model, a_request(stream=True))) > 5


def test_an_unknown_key_is_named_with_file_line_step_and_near_match(written: Written) -> None:
    refused = written.refused("- hello\n- text: hi\n  cals: []\n")
    assert refused.message == (
        f"{written.folder / 'script.yaml'}: line 3, step 2: unknown key 'cals'; did you mean 'calls'?"
    )
    assert "text, reasoning, calls" in refused.hint


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- calls: [{name: x, argumets: {}}]", "line 1, step 1: calls[0]: unknown key 'argumets'; did you mean 'argum"),
        ("- calls: [{arguments: {}}]", "step 1: calls[0].name: is missing"),
        ("- calls: [{name: x, arguments: 3}]", "step 1: calls[0].arguments: must be a mapping or a text, not int"),
        ("- fail: {kind: overlaoded}", "step 1: fail[0].kind: 'overlaoded' is not one of timeout"),
        ("- fail: {kind: overlaoded}", "did you mean 'overloaded'?"),
        ("- yes", "step 1: must be a text or a mapping, not bool True (put it in quotes)"),
        ("- hi\n- {}", "line 2, step 2: says nothing: give at least one of text"),
        ("- {text: hi, chunks: [h, o]}", "step 1: the chunks make 'ho' and the text is 'hi'"),
        ("- {text: hi, chunks: 0}", "step 1: chunks: must be a number from 1 or a list of texts, not 0"),
        ("- {text: hi, delay: -1}", "step 1: delay: input should be greater than or equal to 0, not -1"),
        ("steps: []", "steps: there are no steps"),
        ("step: [hi]", "unknown key 'step'; did you mean 'steps'?"),
        ("usage: always\nsteps: [hi]", "line 1, usage: 'always' is not one of auto"),
        ("hello", "a script is a list of steps, or a mapping with `steps`; this is a str"),
        ("", "the file is empty"),
        ("- calls: [{name: x, arguments: {day: 2024-01-01}}]", "date is not JSON serializable"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(written: Written, text: str, told: str) -> None:
    assert told in written.refused(text).message


def test_malformed_yaml_is_told_with_line_and_column(written: Written) -> None:
    message = written.refused("- hello\n- text: hi\n   calls: []\n").message
    assert message.startswith(f"{written.folder / 'script.yaml'}: line 3, column 9: mapping values are not allowed")


def test_malformed_json_is_told_with_line_and_column(written: Written) -> None:
    message = written.refused('[\n "hello"\n "bye"\n]', "script.json").message
    assert message == f"{written.folder / 'script.json'}: line 3, column 2: Expecting ',' delimiter"


def test_a_yaml_tag_makes_no_object(written: Written) -> None:
    assert "could not determine a constructor" in written.refused("- !!python/object/apply:os.getcwd []").message


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_bytes(b"- \xff\xfe")
    with pytest.raises(MalformedScript, match="byte 2 is not UTF-8"):
        ScriptedModel(tmp_path / "script.yaml")
    with pytest.raises(MalformedScript, match="cannot be read: Is a directory"):
        ScriptedModel(tmp_path)


def test_a_missing_file_is_told_with_its_path_and_near_names(written: Written) -> None:
    written("- hi", "prices.yaml")
    missing = written.folder / "price.yaml"
    with pytest.raises(MalformedScript) as refused:
        ScriptedModel(missing)
    assert f"{missing}: there is no such script" in refused.value.message
    assert f"Did you mean {written.folder / 'prices.yaml'}?" in refused.value.hint


def test_a_misspelt_name_is_told_which_scripts_ship() -> None:
    with pytest.raises(MalformedScript) as refused:
        scripted_from_reference("demmo")
    assert "Did you mean demo? Scripts that need no file: scripted:demo" in refused.value.hint
    with pytest.raises(MalformedScript, match="names no script"):
        scripted_from_reference("")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ([], "scripted:inline: there are no steps"),
        (["hi", {"cals": []}], "scripted:inline: step 2: unknown key 'cals'; did you mean 'calls'?"),
        (["hi", 3], "scripted:inline: step 2: must be a text, a mapping, a Reply or an AssistantItem, not int 3"),
        (7, "a script is a list of steps, a file or a function, not int"),
    ],
)
def test_a_wrong_list_is_refused_when_the_model_is_made(script: object, told: str) -> None:
    with pytest.raises(MalformedScript) as refused:
        ScriptedModel(script)  # type: ignore[arg-type]
    assert told in refused.value.message


def test_many_mistakes_are_listed_up_to_a_point(written: Written) -> None:
    lines = written.refused("\n".join("- {txt: hi}" for _ in range(8))).message.splitlines()
    assert len(lines) == 6
    assert lines[-1].endswith("and 3 more")
