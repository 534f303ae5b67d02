"""Failed turns over HTTP: which there are, and trying one again."""

from pathlib import Path

from kit.surfaces.served_home import served
from wakeful.service.serving.options import ServeOptions


def test_a_failed_turn_is_listed_with_its_cause_and_goes_on_in_the_daemon(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with served(home, ServeOptions(port=0, tools=("kit.surfaces.flaky_shop:clerk",))) as found:
        client = found.client
        sent = client.post("/agents/clerk/messages", {"text": "Pay."}).body
        where = f"/messages/{sent['message_id']}/answer?seconds=60"
        failed = client.get(where).body["result"]
        turn = failed["turn_id"]
        assert failed["status"] == "failed"
        (listed,) = client.get("/failed-turns").body
        assert (listed["turn_id"], listed["cause"], listed["retryable"]) == (turn, "invalid_response", True)
        assert client.get(f"/turns/{turn}/replacement").body["text"].startswith("Pay.")
        (home / "mended").touch()
        opened = client.post(f"/turns/{turn}/retry", {})
        assert opened.status == 200 and opened.body["accepted"] and opened.body["state"] != "failed", opened
        done = client.get(where).body["result"]
        assert (done["status"], done["turn_id"]) == ("completed", turn)
        assert (home / "paid.txt").read_text() == "paid\n"
        again = client.post(f"/turns/{turn}/retry", {})
        assert again.status == 409 and "nothing to try again" in again.body["error"]["message"]
        assert client.get("/failed-turns").body == []
