"""The web app of the guide about approvals, as it is printed: a request ends while its run waits, and HTTP decides."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "approvals.md"


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module `app.py` that the page says to save."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "home"))
    (program,) = [each for each in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S) if "FastAPI" in each]
    (tmp_path / "app.py").write_text(program)
    spec = importlib.util.spec_from_file_location("guide_app", tmp_path / "app.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app


def test_a_run_waits_while_no_request_is_open_and_http_decides_it_once(app: Any) -> None:
    with TestClient(app) as client:
        waiting = client.post("/messages/t1", params={"text": "A17 is broken"}).json()
        assert waiting["status"] == "approval_required"
        (approval,) = client.get("/approvals").json()
        assert (approval["tool"], approval["arguments"]["cents"]) == ("refund", 4200)
        decision = {"approve": True, "by": "ann"}
        decided = client.post(f"/approvals/{approval['approval_id']}", params=decision).json()
        assert (decided["status"], decided["decided_by"]) == ("approved", "app:ann")
        again = client.post(f"/approvals/{approval['approval_id']}", params={**decision, "by": "ben"})
        assert again.status_code == 409 and "already by app:ann" in again.json()["detail"]
        assert client.get("/approvals").json() == []
    with TestClient(app) as client:  # the server was restarted meanwhile
        done = client.post("/messages/t1", params={"text": "A17 is broken"}).json()
        assert done == {"status": "completed", "answer": "Done."}
