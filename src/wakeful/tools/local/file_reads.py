"""`read_file`: as much of a file as a model can use at once, and how to read on.

Text comes with line numbers unless they are not wanted; a picture comes as a picture; anything else that is not text is
refused by name.
"""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Annotated, Any

from pydantic import Field

from wakeful.contracts.content import Image, Text
from wakeful.contracts.errors import ToolReported
from wakeful.tools.local.declarations import FileTool, given
from wakeful.tools.local.text_lines import is_binary
from wakeful.workspaces import Workspace
from wakeful.workspaces.refusals import refused

MAX_LINES = 2_000
MAX_SHOWN_BYTES = 20_000
"""Less than what one result may show (`tools.results`): a notice fits as well."""
MAX_LINE_CHARS = 4_000
MAX_PICTURE_BYTES = 5_000_000
MAX_ENTRIES = 50

_PICTURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


def read_file_tool(workspace: Workspace | None, readable: Sequence[Workspace] = ()) -> FileTool:
    """The tool, for one workspace, and for further folders that are named by absolute path."""

    def read_file(
        path: str,
        start_line: Annotated[int, Field(ge=1)] = 1,
        limit: Annotated[int, Field(ge=1, le=MAX_LINES)] = MAX_LINES,
        numbered: bool = True,
    ) -> Any:
        """Read a file of the workspace. Long files come in parts; the end of each part says how to read on.

        Args:
            path: The file, relative to the workspace root.
            start_line: The first line to show, from 1.
            limit: How many lines to show at most.
            numbered: Show a line number and a tab before each line; they are not part of the file.
        """
        root = next((folder for folder in readable if _is_in(path, folder)), None) or given(workspace)
        try:
            data = root.read(path).data
        except ToolReported as report:
            raise _with_entries(root, path, report) from None
        media_type = picture_type(data)
        if media_type is not None:
            return _picture(path, data, media_type)
        if is_binary(data):
            raise refused(
                "binary_file",
                f"{path!r} is a binary file of {len(data):,} bytes",
                "Only text and pictures can be read. Use a command that understands the format.",
                path=path,
                size=len(data),
            )
        return shown(path, data, start_line, limit, numbered)

    return FileTool(read_file, workspace, access="read", effect="pure")


def _is_in(path: str, folder: Workspace) -> bool:
    """Does the path begin there? Whether it stays there is seen to when it is opened."""
    return path.startswith("/") and any(PurePath(path).is_relative_to(each) for each in (folder.named, folder.root))


def shown(path: str, data: bytes, start_line: int, limit: int, numbered: bool) -> str:
    """A part of a text, with a last line that says what is missing. Pure."""
    if not data:
        return "(the file is empty)"
    text = data.decode("utf-8", "replace")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if start_line > len(lines):
        raise refused(
            "invalid_parameters",
            f"{path!r} has {len(lines):,} lines, and start_line is {start_line:,}",
            f"Give a start_line from 1 to {len(lines)}.",
            field="start_line",
            path=path,
            lines=len(lines),
        )
    pieces: list[str] = []
    size = 0
    for number, line in enumerate(lines[start_line - 1 : start_line - 1 + limit], start_line):
        words = line.removesuffix("\r")
        if len(words) > MAX_LINE_CHARS:
            words = f"{words[:MAX_LINE_CHARS]} [cut: this line has {len(words):,} characters]"
        piece = f"{number:>6}\t{words}" if numbered else words
        size += len(piece.encode("utf-8", "replace")) + 1
        if pieces and size > MAX_SHOWN_BYTES:
            break
        pieces.append(piece)
    last = start_line + len(pieces) - 1
    notes = []
    if last < len(lines):
        notes.append(
            f"[lines {start_line:,} to {last:,} of {len(lines):,} are shown; read on with start_line={last + 1}]"
        )
    if "\ufffd" in text and b"\xef\xbf\xbd" not in data:
        notes.append("[the file is not UTF-8: bytes that cannot be read are shown as \ufffd]")
    return "\n".join([*pieces, *notes])


def picture_type(data: bytes) -> str | None:
    """The media type of a picture that models take, by its first bytes."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for magic, media_type in _PICTURES if data.startswith(magic)), None)


def _picture(path: str, data: bytes, media_type: str) -> list[Text | Image]:
    if len(data) > MAX_PICTURE_BYTES:
        raise refused(
            "too_large",
            f"{path!r} is a picture of {len(data):,} bytes; at most {MAX_PICTURE_BYTES:,} can be shown",
            "Make a smaller copy of it first.",
            path=path,
            size=len(data),
            limit=MAX_PICTURE_BYTES,
        )
    return [Text(f"{path}: {media_type}, {len(data):,} bytes"), Image(data=data, media_type=media_type)]


def _with_entries(workspace: Workspace, path: str, report: ToolReported) -> ToolReported:
    """To somebody who tried to read a directory, say what is in it."""
    if report.error.kind != "is_a_directory":
        return report
    entries = workspace.list(path)
    names = [f"{entry.path}/" if entry.kind == "directory" else entry.path for entry in entries[:MAX_ENTRIES]]
    details = {**(report.error.details or {}), "entries": names, "count": len(entries)}
    hint = "Read one of its files; `entries` lists them."
    return ToolReported(report.error.model_copy(update={"details": details, "recovery_hint": hint}))
