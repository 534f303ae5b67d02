"""Every link of README and docs leads somewhere: to a file that is there, and to a heading that it has."""

import re
from pathlib import Path

_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


def links(page: str) -> list[str]:
    """The targets of a page's links, without those of its code."""
    return _LINK.findall(_CODE.sub("`code`", _FENCED.sub("", page)))


def anchors(page: str) -> set[str]:
    """The names of a page's headings, as a link spells them."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCED.sub("", page)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        name = _NOT_IN_ANCHORS.sub("", words.lower()).strip().replace(" ", "-")
        found.add(name if name not in found else f"{name}-1")
    return found


def broken(page: Path) -> list[str]:
    wrong = []
    for link in links(page.read_text("utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            wrong.append(f"{link}: there is no such file")
        elif anchor and anchor not in anchors(target.read_text("utf-8")):
            wrong.append(f"{link}: {target.name} has no such heading")
    return wrong


def test_every_link_leads_to_a_file_and_a_heading(root: Path) -> None:
    pages = [
        *root.glob("*.md"),
        *(root / "docs").rglob("*.md"),
        *(root / "examples").rglob("*.md"),
        root / "tests/pins/README.md",
    ]
    found = {page.relative_to(root).as_posix(): wrong for page in pages if (wrong := broken(page))}
    assert found == {}


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A `Heading`, of words\n")
    page = tmp_path / "page.md"
    page.write_text("[a](there.md#a-heading-of-words) [b](gone.md) [c](there.md#gone) [d](#x)\n\n`[e](code)`\n\n# X\n")
    assert broken(page) == ["gone.md: there is no such file", "there.md#gone: there.md has no such heading"]


def test_every_guide_is_two_clicks_from_the_readme(root: Path) -> None:
    first = {(root / link.partition("#")[0]).resolve() for link in links((root / "README.md").read_text())}
    index = root / "docs/guides/README.md"
    assert index.resolve() in first
    second = {(index.parent / link.partition("#")[0]).resolve() for link in links(index.read_text())}
    guides = {page.resolve() for page in index.parent.glob("*.md")} - {index.resolve()}
    assert guides <= first | second
