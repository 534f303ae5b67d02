"""A page of another site in a real browser on this machine tries everything that a page can: nothing comes of it.

The browser is started once. It is Chromium; where there is none, this is skipped.
"""

import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome, served
from kit.surfaces.served_tokens import make_token

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
    "--host-resolver-rules=MAP rebound.example 127.0.0.1",
)
"""The last makes the name of another site an address of this machine, as an attacker's name server would."""
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

PAGE = Path(__file__).with_name("cross_site_page.html")


class OtherSite(ThreadingHTTPServer):
    """Serves the page, and takes what it tells."""

    def __init__(self, page: str) -> None:
        super().__init__(("127.0.0.1", 0), Pages)
        self.page = page.encode()
        self.told: queue.Queue[dict[str, str]] = queue.Queue()


class Pages(BaseHTTPRequestHandler):
    server: OtherSite

    def do_GET(self) -> None:
        self._answer(self.server.page)

    def do_POST(self) -> None:
        self.server.told.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self._answer(b"thanks")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *words: object) -> None:
        pass


@contextmanager
def browsed(page: str, profile: Path) -> Iterator[dict[str, str]]:
    """The page in a browser, and what became of each of its attempts."""
    site = OtherSite(page)
    threading.Thread(target=site.serve_forever).start()
    line = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", f"http://127.0.0.1:{site.server_port}/"]
    with (profile.parent / "browser.txt").open("wb") as said:
        browser = subprocess.Popen(line, stdout=said, stderr=said, stdin=subprocess.DEVNULL)
        try:
            yield site.told.get(timeout=240)
        finally:
            browser.terminate()
            browser.wait()
            site.shutdown()
            site.server_close()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    with served(tmp_path_factory.mktemp("home")) as found:
        yield found


@needs_chromium
def test_a_page_of_another_site_reads_nothing_and_changes_nothing(home: ServedHome, tmp_path: Path) -> None:
    token = make_token(home.folder, "operator", ("operate",))
    before = home.client.get("/agents/clerk/state").body["event_seq"], home.client.get("/agents").body
    page = PAGE.read_text().replace("PORT", str(home.port)).replace("TOKEN", token, 1)
    with browsed(page, tmp_path / "browser") as told:
        pass
    opened = {name: words for name, words in told.items() if not is_refused(words)}
    sent = {"beacon", "beacon of json", "form urlencoded", "form plain", "form multipart"}
    assert set(opened) <= sent, opened
    assert sum(words.startswith("refused") for words in told.values()) >= 10, told
    after = home.client.get("/agents/clerk/state").body["event_seq"], home.client.get("/agents").body
    assert after == before, "nothing of it is in the log, and all agents are as they were"
    refused = home.client.get("/control/runtime/status").body["refused"]
    assert refused["foreign_origin"] + refused.get("cross_site", 0) >= 10, refused
    assert refused["foreign_host"] >= 1, refused


def test_inversion_a_program_with_the_same_token_is_served(home: ServedHome) -> None:
    """It is the page that is refused, not the token."""
    operator = HomeClient(home.port, make_token(home.folder, "program", ("operate",)))
    assert operator.post("/agents/clerk/messages", {"text": "from a program"}).status == 200


def is_refused(words: str) -> bool:
    """The page was told nothing: an error, or an answer whose inside it cannot see."""
    return words.startswith("refused") or words.strip() == "opaque 0"
