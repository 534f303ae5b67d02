"""What is read of the front matter of a skill, and that ordinary YAML says the same there."""

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from wakeful.skills.front_matter import front_matter


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\nname: a\ndescription: |\n  two\n  lines\n---\n", {"name": "a", "description": "two lines"}),
        ("---\ndescription: >-  # folded\n  two\n\n  lines\n---\n", {"description": "two lines"}),
        ("---\r\nname: a\r\ndescription: b\r\n---\r\n", {"name": "a", "description": "b"}),
        ("---\ndescription: two\n  lines # and a remark\n---\n", {"description": "two lines"}),
        ("---\ndescription:\n  two\n  lines\n---\n", {"description": "two lines"}),
        ("---\ndescription: 'it''s\n  two' # remark\n---\n", {"description": "it's two"}),
        ('---\ndescription: "a \\"b\\" \\u00e9\\x41 \\\n  c"\n---\n', {"description": 'a "b" éA c'}),
        ("---\n\"name\": a\n'description': b\n---\n", {"name": "a", "description": "b"}),
        ("---\ndescription: Use when: it rains, C# or #1\n---\n", {"description": "Use when: it rains, C# or"}),
        ("\ufeff---\nname: 7\n...\n", {"name": "7"}),
        ("---\nname: 1.50\ndescription: true\n---\n", {"name": "1.50", "description": "true"}),
        ("---\nname: a\nname: b\n---\n", {"name": "b"}),
        ("---\nname: a\nmetadata:\n  name: b\n  tags: [c]\nlicense: MIT\n---\n", {"name": "a", "license": "MIT"}),
        ("---\ntools:\n- a\n- b\nname: a\n---\n", {"name": "a"}),
        ("---\nallowed-tools: Bash(git:*), Read\n---\n", {"allowed-tools": "Bash(git:*), Read"}),
        ("---\nname: [a]\ndescription: {a: b}\n---\n", {}),
        ("---\nname: &a b\ndescription: *a\nx: !!str 7\n<<: {name: c}\n---\n", {}),
        ('---\nname: "not closed\ndescription: b\n---\n', {"description": "b"}),
        ('---\nname: "\\uD800\\U00110000"\n---\n', {"name": "\ufffd\ufffd"}),
        ("---\nname: a\n", {}),
        ("---\n- a\n---\n", {}),
        ("---\n: : {\n---\n", {}),
        ("---\nname:\n---\n", {"name": ""}),
        ("# title\n", {}),
        ("", {}),
    ],
)
def test_the_head_of_a_skill_is_read_as_flat_keys_with_text(text: str, expected: dict[str, str]) -> None:
    assert front_matter(text) == expected


WORDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp", "Cn"]), min_size=1, max_size=300
).filter(str.strip)
STYLES = st.sampled_from([None, "'", '"', "|", ">"])


@given(name=WORDS, description=WORDS, style=STYLES, nested=st.booleans())
def test_a_skill_that_yaml_wrote_is_read_as_yaml_reads_it(
    name: str, description: str, style: str, nested: bool
) -> None:
    data = {
        "name": name,
        "metadata": {"name": "inner", "list": ["a", "b"]} if nested else "",
        "description": description,
    }
    text = yaml.safe_dump(data, default_style=style, allow_unicode=True, sort_keys=False, default_flow_style=False)
    found = front_matter(f"---\n{text}---\nbody\n")
    assert (found["name"], found["description"]) == (" ".join(name.split()), " ".join(description.split()))


@given(
    st.text(max_size=400)
    | st.lists(st.sampled_from(list("\"'\\|>-[]{}&*!:#% \n\tax\ud800")), max_size=200).map("".join)
)
def test_whatever_stands_there_is_read_without_an_error_and_as_text_on_one_line(text: str) -> None:
    found = front_matter(f"---\n{text}\n---\n")
    assert not [each for each in found.values() if re.search(r"[\n\t]", each)]
