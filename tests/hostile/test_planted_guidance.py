"""Files that an agent leaves in a workspace and that every later turn there reads: none of them ends a turn.

Guidance, skills and names of servers are read before a model is asked. A file that stopped the reader would stop every
agent in that workspace, for ever.
"""

import asyncio
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.runs.engine_runs import of_kind
from wakeful import Agent, RunResult, run
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import ContextResolved
from wakeful.engine.named_servers import find_server, server_files
from wakeful.engine.trusted_files import TrustedFiles
from wakeful.testing import scripted

SKILLS = ".agents/skills"


def head(text: str) -> bytes:
    return f"---\n{text}\n---\nbody\n".encode()


def skill(content: bytes, folder: bytes = b"x") -> Callable[[Path], None]:
    def planted(work: Path) -> None:
        place = work / SKILLS / os.fsdecode(folder)
        place.mkdir(parents=True)
        (place / "SKILL.md").write_bytes(content)

    return planted


def many_skills(count: int, name: str) -> Callable[[Path], None]:
    def planted(work: Path) -> None:
        for number in range(count):
            place = work / SKILLS / f"{name}{number:04}"
            place.mkdir(parents=True)
            (place / "SKILL.md").write_bytes(head(f"name: s{number}\ndescription: {'d' * 3_000}"))

    return planted


def many_unreadable_skills(work: Path) -> None:
    for number in range(200):
        place = work / SKILLS / f"{'n' * 200}{number:04}"
        place.mkdir(parents=True)
        (place / "SKILL.md").symlink_to("/etc/hostname")


def link(name: str, target: str) -> Callable[[Path], None]:
    def planted(work: Path) -> None:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).symlink_to(target)

    return planted


def pipe(name: str) -> Callable[[Path], None]:
    def planted(work: Path) -> None:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(work / name)

    return planted


def large(name: str) -> Callable[[Path], None]:
    def planted(work: Path) -> None:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        with (work / name).open("wb") as file:
            file.truncate(3_000_000_000)

    return planted


def merges() -> str:
    lines = ["a: &a {k: v}"]
    lines += [f"{chr(98 + n)}: &{chr(98 + n)} {{<<: [{','.join([f'*{chr(97 + n)}'] * 10)}]}}" for n in range(20)]
    return "\n".join(lines)


LEFT: dict[str, Callable[[Path], None]] = {
    "a date that is none": skill(head("name: x\nwhen: 2001-99-99")),
    "a date as a name": skill(head("name: 2001-99-99")),
    "a number of 6,000 digits": skill(head(f"name: 1{'0' * 5_999}")),
    "1,000 brackets": skill(head(f"name: {'[' * 1_000}")),
    "1,000 braces": skill(head(f"name: x\nd: {'{' * 1_000}")),
    "sexagesimal numbers": skill(head(f"name: x\nd: {'59:' * 400}1.0")),
    "a lone surrogate": skill(head('name: "a\\uD800"')),
    "lone surrogates in bytes": skill(b"---\nname: \xed\xa0\x80\n---\n"),
    "escapes of a terminal": skill(head('name: "\\e[2J\\x9b\\u0007"')),
    "bytes that are no text": skill(b"---\nname: \xff\xfe\x00\n---\n\xff"),
    "merge keys, 20 levels": skill(head(merges())),
    "an alias that holds itself": skill(head("name: &a [*a]")),
    "a tag that makes an object": skill(head("name: !!python/object/apply:os.getcwd []")),
    "one line of 60,000 spaces": skill(head(f"a{' ' * 60_000}b")),
    "60,000 quotes": skill(head(f"name: {chr(39) * 60_000}")),
    "60,000 backslashes": skill(head(f'name: "{chr(92) * 60_000}')),
    "a folder of a name that is no text": skill(head("description: y"), b"\xff"),
    "a folder with a newline and escapes in its name": skill(head("description: y"), b"a\n# System\x1b[2J"),
    "200 skills with long paths and descriptions": many_skills(200, "n" * 200),
    "5,000 skills": many_skills(5_000, "s"),
    "200 skills that lead out, with long paths": many_unreadable_skills,
    "a skill of 3 GB": large(f"{SKILLS}/x/SKILL.md"),
    "a skill that is a pipe": pipe(f"{SKILLS}/x/SKILL.md"),
    "a skill that links to itself": link(f"{SKILLS}/x/SKILL.md", "SKILL.md"),
    "skills that link to themselves": link(SKILLS, "skills"),
    "AGENTS.md of 3 GB": large("AGENTS.md"),
    "AGENTS.md as a pipe": pipe("AGENTS.md"),
    "AGENTS.md that links to itself": link("AGENTS.md", "AGENTS.md"),
    "AGENTS.md that links to a device": link("AGENTS.md", "/dev/zero"),
    "CLAUDE.md that links to itself": link("CLAUDE.md", "CLAUDE.md"),
    "servers that are pipes": pipe("mcp.json"),
    "servers that link to themselves": link(".mcp.json", ".mcp.json"),
    "servers of 3 GB": large("mcp.json"),
}
SAYS_WHY = {
    "a folder of a name that is no text": "its path holds control characters",
    "200 skills with long paths and descriptions": "more folders",
    "5,000 skills": "4,9",
    "200 skills that lead out, with long paths": "more",
    "a skill of 3 GB": "at most 1,000,000 are read",
    "a skill that links to itself": "leads through links that do not end",
    "AGENTS.md that links to itself": "leads through links that do not end",
    "AGENTS.md that links to a device": "leads out of the workspace",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    return tmp_path


async def go(place: Path, **more: Any) -> RunResult[Any]:
    steps = [{"calls": [{"name": "wakeful/read_file", "arguments": {"path": "notes.txt"}}]}, "done"]
    agent = Agent("coder", scripted(steps), workspace=place / "work", profile="coding", **more)
    return await run(agent, "go", store=place / "runs.db")


@pytest.mark.parametrize("name", LEFT)
async def test_whatever_is_left_in_a_workspace_the_next_run_there_completes(place: Path, name: str) -> None:
    LEFT[name](place / "work")
    result = await go(place)
    assert result.status == "completed"
    (context,) = of_kind(result, ContextResolved)
    assert SAYS_WHY.get(name, "") in "; ".join(f"{each.ref} {each.detail}" for each in context.omissions)
    assert server_files(place / "work") is not None
    with pytest.raises(InvalidConfig, match="there is no MCP server 'x'"):
        find_server("x", place / "work")


YAML_PIECES = ["---\n", "name: ", "description: ", "&a ", "*a", "<<: ", "[", "{", '"', "'", "\\uD800", "|\n", " >-\n"]
YAML_PIECES += ["- ", "59:", "\x00", "  ", "\n", "\t", "!!", "#", "\\", "\ud7ff", "2001-99-99", "a: b\n", "\u2028", "%"]
JSON_PIECES = ["{", "}", "[", "]", '"mcpServers"', ":", '"x"', "1e999", "\\uD800", ",", "null", "{}", "9" * 5_000]
CONTENT = st.one_of(
    st.binary(max_size=300),
    st.lists(st.sampled_from(YAML_PIECES), max_size=40).map(lambda parts: ("---\n" + "".join(parts)).encode()),
    st.lists(st.sampled_from(JSON_PIECES), max_size=20).map(lambda parts: "".join(parts).encode()),
)
READ = (f"{SKILLS}/x/SKILL.md", "AGENTS.md", "CLAUDE.md", "mcp.json", ".mcp.json", "notes.txt")


@settings(max_examples=40)
@given(files=st.dictionaries(st.sampled_from(READ), CONTENT, min_size=1), is_trusted=st.booleans())
def test_any_bytes_in_any_file_that_is_read_leave_a_run_that_completes(
    files: dict[str, bytes], is_trusted: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        place = Path(folder)
        patch.setenv("WAKEFUL_HOME", str(place / "home"))
        (place / "work").mkdir()
        for name, content in files.items():
            (place / "work" / name).parent.mkdir(parents=True, exist_ok=True)
            (place / "work" / name).write_bytes(content)
            if is_trusted and "mcp" not in name:
                TrustedFiles().accept(place / "work" / name)
        result = asyncio.run(go(place))
        assert result.status == "completed"
        for file in server_files(place / "work"):
            assert isinstance(file.names, tuple)
