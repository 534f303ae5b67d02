"""The file of the documentation's site: every page has its place, in the order of the list that names it."""

import json
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
HEAD = """\
# The site of the documentation: `make site` builds it into site/. This file is generated.
[project]
site_name = "wakeful"
site_description = "A durable runtime for AI agents."
docs_dir = "docs"
site_dir = "site"
"""
OPERATE = ("daemon.md", "operations.md", "troubleshooting.md", "backup.md", "telemetry.md", "containers.md")
"""Guides of whoever runs a daemon, in the order in which they are needed."""
_LINK = re.compile(r"\]\(([\w-]+\.md)\)")


def site_config() -> str:
    """`zensical.toml`."""
    guides, operate = _pages("guides"), [DOCS / "guides" / name for name in OPERATE]
    sections = {
        "Guides": [page for page in guides if page not in operate],
        "Operate": operate,
        "Explanations": [*_pages("explain"), DOCS / "explain" / "decisions" / "README.md"],
        "Reference": _pages("reference"),
        "More": sorted(page for page in DOCS.glob("*.md") if page.name != "index.md"),
    }
    lines = ['  { "Home" = "index.md" },']
    for name, pages in sections.items():
        lines += [f"  {{ {json.dumps(name)} = [", *map(_entry, pages), "  ] },"]
    return HEAD + "nav = [\n" + "\n".join(lines) + "\n]\n"


def _pages(folder: str) -> list[Path]:
    """The list of a folder, the pages it names in its order, and the rest."""
    listing = DOCS / folder / "README.md"
    named = [DOCS / folder / name for name in _LINK.findall(listing.read_text("utf-8"))]
    found = [listing, *(page for page in named if page.exists()), *sorted((DOCS / folder).glob("*.md"))]
    return list(dict.fromkeys(found))


def _entry(page: Path) -> str:
    title = next(line[2:].strip() for line in page.read_text("utf-8").splitlines() if line.startswith("# "))
    return f"    {{ {json.dumps(title)} = {json.dumps(page.relative_to(DOCS).as_posix())} }},"
