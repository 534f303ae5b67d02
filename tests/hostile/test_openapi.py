"""The whole description of the interface, tried by somebody else's program: schemathesis, a few examples a route.

WAKEFUL_SCHEMA_EXAMPLES=100 tries more.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.surfaces.served_home import HomeClient, served
from kit.surfaces.served_tokens import make_token
from wakeful.service.operations.routes import ROUTES

EXAMPLES = os.environ.get("WAKEFUL_SCHEMA_EXAMPLES", "3")
PHASES = "coverage,fuzzing" if "WAKEFUL_SCHEMA_EXAMPLES" in os.environ else "fuzzing"
NOT_ASKED = "positive_data_acceptance,unsupported_method,missing_required_header"
"""What a schema cannot say is refused with 422 (a name that is not there); a token is looked at before the method."""


@pytest.mark.slow
def test_every_route_keeps_what_its_description_says(tmp_path: Path) -> None:
    with served(tmp_path / "home") as home:
        token = make_token(home.folder, "examiner", ("operate", "reveal"))
        done = subprocess.run(
            [
                str(Path(sys.executable).parent / "schemathesis"), "run",
                f"http://127.0.0.1:{home.port}/openapi.json",
                "--header", f"Authorization: Bearer {token}",
                "--max-examples", EXAMPLES, "--phases", PHASES,
                "--exclude-path", "/control/runtime/shutdown", "--exclude-checks", NOT_ASKED,
                "--seed", "1", "--generation-deterministic", "--no-color",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-6_000:]
        described = HomeClient(home.port, token).get("/openapi.json").body["paths"]
        assert {route.path for route in ROUTES} <= set(described), "nothing is left out"
        assert "Traceback" not in home.said.read_text()
