"""The tools of all worlds, over one folder: documents to read, and a list of what was done.

The same functions are declared as tools of a program (`declared`), offered by an MCP server (`server.py`), and handed
over without any declaration (`undeclared`), for comparison.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wakeful import Tool, from_mcp, tool
from wakeful.tools.mcp.source import McpSource

FOLDER = "INJECTIONS_FOLDER"
PRIVATE = ("read_balance", "read_passport", "read_customers", "read_contract", "read_notes")
"""Read what is the owner's, written by the owner."""
UNTRUSTED = ("read_invoice", "read_reviews", "read_ticket", "read_comments", "read_page")
"""Read what anybody may have written. `read_inbox` does both."""
FREE_TEXT = {
    "send_mail": ("subject", "body"),
    "pay": ("reference",),
    "book": ("wishes",),
    "post_reply": ("text",),
    "share_file": ("note",),
}


def put(folder: Path, document: str, secret: str) -> None:
    """Lay out what a task has to read."""
    (folder / "document").write_text(document)
    (folder / "secret").write_text(secret)
    (folder / "done").write_text("")


def done(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """What was done."""
    return [tuple(json.loads(line)) for line in (folder / "done").read_text().splitlines()]


class Functions:
    """The functions behind the tools."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @property
    def folder(self) -> Path:
        return self._folder if self._folder is not None else Path(os.environ[FOLDER])

    def document(self) -> str:
        return (self.folder / "document").read_text()

    def secret(self) -> str:
        return (self.folder / "secret").read_text()

    def inbox(self) -> str:
        return f"{self.secret()}\n{self.document()}"

    def note(self, name: str, **arguments: Any) -> str:
        given = {key: value for key, value in arguments.items() if value is not None}
        with (self.folder / "done").open("a") as file:
            file.write(json.dumps([name, given]) + "\n")
        return "done"

    def send_mail(self, to: str, subject: str, body: str, also: list[str] | None = None) -> str:
        """Send a letter."""
        return self.note("send_mail", to=to, subject=subject, body=body, also=also)

    def pay(self, account: str, amount: int, reference: str, also: list[str] | None = None) -> str:
        """Pay somebody."""
        return self.note("pay", account=account, amount=amount, reference=reference, also=also)

    def book(self, hotel: str, nights: int, wishes: str, also: list[str] | None = None) -> str:
        """Book rooms."""
        return self.note("book", hotel=hotel, nights=nights, wishes=wishes, also=also)

    def post_reply(self, ticket: str, text: str, also: list[str] | None = None) -> str:
        """Answer a ticket in public."""
        return self.note("post_reply", ticket=ticket, text=text, also=also)

    def share_file(self, person: str, file: str, note: str, also: list[str] | None = None) -> str:
        """Give somebody a file."""
        return self.note("share_file", person=person, file=file, note=note, also=also)

    def fetch(self, url: str, also: list[str] | None = None) -> str:
        """Get a page. What stands in the address leaves the machine."""
        return self.note("fetch", url=url, also=also)

    @property
    def acting(self) -> list[Callable[..., str]]:
        return [self.send_mail, self.pay, self.book, self.post_reply, self.share_file]


def declared(folder: Path) -> list[Tool[Any]]:
    """Tools that say what they are."""
    of = Functions(folder)
    return [
        tool(of.inbox, name="read_inbox", effect="pure", reads_private=True, untrusted=True),
        *(tool(of.secret, name=name, effect="pure", reads_private=True) for name in PRIVATE),
        *(tool(of.document, name=name, effect="pure", untrusted=True) for name in UNTRUSTED),
        *(tool(each, content=FREE_TEXT[each.__name__]) for each in of.acting),
        tool(of.fetch, effect="pure", leaves_machine=True),
    ]


def undeclared(folder: Path) -> list[Tool[Any]]:
    """The same functions, of which nobody says anything."""
    of = Functions(folder)
    return [
        tool(of.inbox, name="read_inbox"),
        *(tool(of.secret, name=name) for name in PRIVATE),
        *(tool(of.document, name=name) for name in UNTRUSTED),
        *(tool(each) for each in (*of.acting, of.fetch)),
    ]


def served(folder: Path, python: str) -> McpSource:
    """The same tools from an MCP server: its annotations, and the owner's word on free text."""
    return from_mcp(
        "office",
        command=[python, str(Path(__file__).with_name("server.py"))],
        env={FOLDER: str(folder), "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2])])},
        classes={"*": "network"},
        content=FREE_TEXT,
        pins=folder / "pins.json",
    )
