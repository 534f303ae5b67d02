"""read_file: as much as a model can use, and how to read on."""

from pathlib import Path
from typing import Any

import pytest

from wakeful.contracts.content import Image, Text
from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import ToolError
from wakeful.tools.context import RunContext
from wakeful.tools.local.file_reads import read_file_tool
from wakeful.tools.results import MAX_SHOWN_BYTES, show
from wakeful.workspaces import Workspace

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


async def read(root: Path, path: str, **arguments: Any) -> Any:
    return await read_file_tool(Workspace.at(root)).invoke(RunContext(None), {"path": path, **arguments})


async def refusal(root: Path, path: str, **arguments: Any) -> ToolError:
    with pytest.raises(ToolReported) as raised:
        await read(root, path, **arguments)
    assert raised.value.error.recovery_hint and raised.value.error.details
    return raised.value.error


async def test_lines_come_with_their_numbers_or_plain(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("eins\r\nzwölf\n\nlast".encode())
    assert await read(tmp_path, "a") == "     1\teins\n     2\tzwölf\n     3\t\n     4\tlast"
    assert await read(tmp_path, "a", numbered=False) == "eins\nzwölf\n\nlast"
    assert await read(tmp_path, "a", start_line=2, limit=1) == (
        "     2\tzwölf\n[lines 2 to 2 of 4 are shown; read on with start_line=3]"
    )


async def test_a_long_file_is_read_in_parts_that_together_are_the_file(tmp_path: Path) -> None:
    lines = [f"line {number} {'ö' * (number % 70)}" for number in range(5_000)]
    (tmp_path / "a").write_text("\n".join(lines) + "\n")
    start, got = 1, []
    while True:
        part = await read(tmp_path, "a", start_line=start, numbered=False)
        assert len(part.encode()) < MAX_SHOWN_BYTES and show(part).whole is None, "the model is shown all of it"
        *body, last = part.split("\n")
        if not last.startswith("[lines "):
            got += [*body, last]
            break
        got += body
        start = int(last.rpartition("start_line=")[2].rstrip("]"))
    assert got == lines


async def test_a_line_that_is_too_long_is_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * 100_000 + "\nnext\n")
    shown = await read(tmp_path, "a")
    assert "[cut: this line has 100,000 characters]\n     2\tnext" in shown


async def test_a_picture_comes_as_a_picture(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b").write_bytes(b"RIFF\x00\x00\x00\x00WEBPVP8 ")
    assert await read(tmp_path, "a.png") == [
        Text("a.png: image/png, 28 bytes"),
        Image(data=PNG, media_type="image/png"),
    ]
    assert (await read(tmp_path, "b"))[1].media_type == "image/webp"
    (tmp_path / "large.png").write_bytes(PNG + bytes(5_000_000))
    assert (await refusal(tmp_path, "large.png")).kind == "too_large"


async def test_what_is_no_text_is_refused_or_marked(tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(b"\x7fELF\x00\x01")
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    (tmp_path / "empty").write_bytes(b"")
    assert (await refusal(tmp_path, "program")).kind == "binary_file"
    assert await read(tmp_path, "latin") == (
        "     1\tcaf\ufffd\n[the file is not UTF-8: bytes that cannot be read are shown as \ufffd]"
    )
    assert await read(tmp_path, "empty") == "(the file is empty)"


async def test_a_directory_says_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "src" / "inner").mkdir(parents=True)
    (tmp_path / "src" / "a.py").write_text("")
    error = await refusal(tmp_path, "src")
    assert (error.kind, error.details and error.details["entries"]) == ("is_a_directory", ["src/a.py", "src/inner/"])


async def test_a_start_beyond_the_end_says_how_long_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n")
    error = await refusal(tmp_path, "a", start_line=3)
    assert (error.kind, error.details and error.details["field"]) == ("invalid_parameters", "start_line")
    assert "has 2 lines" in error.message


async def test_further_folders_are_read_by_absolute_path_and_no_further_than_they_reach(tmp_path: Path) -> None:
    root, skill = tmp_path / "repo", tmp_path / "skills" / "notes"
    for folder in (root, skill):
        folder.mkdir(parents=True)
    (skill / "SKILL.md").write_text("how to")
    (tmp_path / "skills" / "private").write_text("PRIVATE")
    (skill / "link").symlink_to(tmp_path / "skills" / "private")
    attempts = (f"{skill}/../private", f"{skill}/link", f"{skill.parent}/private", "../skills/notes/SKILL.md")

    async def read_with(readable: Path, path: str) -> Any:
        made = read_file_tool(Workspace.at(root), [Workspace.at(readable)])
        return await made.invoke(RunContext(None), {"path": path, "numbered": False})

    assert await read_with(skill, str(skill / "SKILL.md")) == "how to"
    for path in attempts:
        with pytest.raises(ToolReported):
            await read_with(skill, path)
    assert await read_with(skill.parent, attempts[0]) == "PRIVATE", "with a wider folder it would have been read"
