"""`[telemetry]` and `[log]` of the owner's file: what is wrong is told with its line; what is off loads nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from wakeful.bootstrap.homes import check_home
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.telemetry import DaemonLog, Telemetry
from wakeful.settings.telemetry import endpoint_headers, owner_log, owner_telemetry, place_of


def test_the_tables_are_read_and_without_them_everything_is_off(tmp_path: Path) -> None:
    environ = {"WAKEFUL_HOME": str(tmp_path)}
    assert owner_telemetry(environ) == Telemetry() and not Telemetry().is_on
    assert owner_log(environ) == DaemonLog(format="text", level="info")
    (tmp_path / "wakeful.toml").write_text(
        '[telemetry]\nendpoint = "https://otel.example.org/a"\ntimeout_seconds = 3\n[log]\nformat = "json"\n'
    )
    assert owner_telemetry(environ) == Telemetry(endpoint="https://otel.example.org/a", timeout_seconds=3)
    assert owner_log(environ) == DaemonLog(format="json")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[telemetry]\nendpont = "http://a"', 2, "[telemetry] has no setting 'endpont'"),
        ('[telemetry]\nendpoint = "collector:4318"', 2, "[telemetry] endpoint cannot be its value"),
        ('[telemetry]\nendpoint = "http://a"\ntraces = "no"', 3, "[telemetry] traces cannot be 'no'"),
        ("[telemetry]\ncontent = true", 2, "[telemetry] content has no effect without an endpoint"),
        (
            '[telemetry]\nendpoint = "http://a"\ntraces = false\ncontent = true',
            4,
            "has no effect without traces",
        ),
        ('[telemetry]\nendpoint = "http://a"\ntraces = false\nmetrics = false', 4, "endpoint has no effect"),
        ('[telemetry]\nendpoint = "http://a"\ntimeout_seconds = 0', 3, "[telemetry] timeout_seconds cannot be 0"),
        ('[log]\nformat = "xml"', 2, "[log] format cannot be 'xml'"),
        ("log = 3", 1, "log is 3"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "wakeful.toml").write_text(text)
    report = check_home(tmp_path)
    (problem,) = [each for each in report.problems if each.level == "error"]
    assert not report.valid and problem.line == line and message in problem.message and problem.hint


def test_a_password_in_an_address_and_a_header_is_not_shown() -> None:
    assert place_of("https://me:secret@otel.example.org:4318/key-in-the-path") == "https://otel.example.org:4318"
    wanted = Telemetry(endpoint="http://a", headers_env="OTLP_HEADERS")
    assert endpoint_headers(wanted, {"OTLP_HEADERS": "Authorization=Bearer x=,b=2"}) == {
        "authorization": "Bearer x=",
        "b": "2",
    }
    with pytest.raises(InvalidConfig, match="OTLP_HEADERS, which is not set"):
        endpoint_headers(wanted, {})
    with pytest.raises(InvalidConfig, match="does not hold headers") as told:
        endpoint_headers(wanted, {"OTLP_HEADERS": "the-secret"})
    assert "the-secret" not in str(told.value)


WITHOUT = """
import asyncio, sys
sys.modules["opentelemetry"] = sys.modules["prometheus_client"] = None
from pathlib import Path
from wakeful import Agent, Runtime
from wakeful.bootstrap.homes import check_home
from wakeful.contracts.errors import InvalidConfig
from wakeful.testing import scripted
home = Path(sys.argv[1])

async def once():
    async with Runtime(home, agents=[Agent("a", scripted(["yes"]))]) as rt:
        sent = await rt.send("a", "hello")
        return (await rt.answer(sent.message_id)).output

print(asyncio.run(once()))
(home / "wakeful.toml").write_text("[telemetry]\\nmetrics_route = true\\n")
(problem,) = check_home(None).problems
print(problem.line, problem.message, "|", problem.hint)
try:
    asyncio.run(once())
except InvalidConfig as error:
    print(error.hint)
"""


def test_without_the_packages_a_runtime_runs_and_telemetry_names_what_to_install(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path)],
        env={"WAKEFUL_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    install = "pip install 'wakeful[telemetry]'"
    told = f"[telemetry] needs the package opentelemetry.sdk, which is not installed | {install}"
    assert done.stdout.splitlines() == ["yes", f"None {told}", install]
