"""A result's parts are declared once: what it is made of, what its document has, and what is read back."""

import inspect
from typing import Any

import pytest

from wakeful import RunResult
from wakeful.contracts.models import TokenUsage
from wakeful.contracts.values import Value
from wakeful.service.result_parts import Parts, derive, document, part
from wakeful.service.run_result import run_result_document


class Line(Value):
    words: str
    by: str | None = None


class Poem(Parts):
    title: str = part()
    _lines: tuple[Line, ...] = part(alias="lines", json="text", sparse=True, default=())
    note: str | None = part(default=None, absent=None, if_any=True)
    made = 0

    @derive()
    def length(self) -> int:
        """How many lines there are."""
        type(self).made += 1
        return len(self._lines)


def test_plain_parts_are_given_by_keyword_and_others_made_once() -> None:
    poem = Poem(title="Sea", lines=(Line(words="Grey."),))
    before = Poem.made
    assert (poem.title, poem.note, poem.length, poem.length) == ("Sea", None, 1, 1)
    assert Poem.made == before + 1
    assert (
        str(inspect.signature(Poem))
        == "(*, title: str, lines: tuple[" + f"{__name__}.Line, ...] = (), note: str | None = None)"
    )


@pytest.mark.parametrize(
    ("given", "said"), [({}, r"Poem\(\) needs title="), ({"title": "Sea", "lenght": 3}, r"Poem\(\) has no 'lenght'")]
)
def test_a_keyword_that_is_missing_or_unknown_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Poem(**given)


def test_a_part_that_nobody_gave_is_not_taken_for_one() -> None:
    """The inversion: a result that was never made has no title, not the declaration of its class."""
    with pytest.raises(AttributeError, match="a result without title"):
        _ = Poem.__new__(Poem).title


def test_a_document_has_the_parts_in_their_order_under_their_names_there() -> None:
    shape = document(Poem, "PoemDocument", "A poem.", version=(int, ...))
    assert list(shape.model_fields) == ["version", "title", "text", "note", "length"]
    assert shape.model_json_schema()["required"] == ["version", "title", "text", "length"]
    lines = Poem._parts["_lines"]
    assert lines.encoded((Line(words="Grey."),)) == [{"words": "Grey."}], "what is null is left out"


def test_a_written_result_has_every_field_of_its_document_and_comes_back() -> None:
    made = RunResult[str](
        turn_id="t",
        agent="a",
        agent_id="i",
        thread="main",
        status="completed",
        stop_reason="natural",
        retryable=False,
        final_content="Done.",
        output="Done.",
        usage=TokenUsage(input_tokens=2, output_tokens=3),
    )
    written = made.to_dict()
    shape = run_result_document()
    absent = ("schema_id", "failure_artifact", "waiting_for", "next_try")
    assert list(written) == [
        "schema",
        *(name for name in shape.model_fields if name not in absent),
    ]
    again = RunResult.from_dict({**written, "of_a_later_version": 1})
    assert again.to_dict() == written
    assert (again.output, again.usage, again.messages) == ("Done.", made.usage, ())
    for field in shape.model_fields:
        if field not in (*absent, "citations", "warnings", "provider_attempt_timeline"):
            with pytest.raises(ValueError, match=field):
                RunResult.from_dict({name: value for name, value in written.items() if name != field})
