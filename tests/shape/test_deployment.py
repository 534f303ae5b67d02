"""Files for containers and for the site, checked as text: no container engine runs here."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from wakeful.contracts.owner_settings import DRAIN_SECONDS
from wakeful.service.serving.options import END_SECONDS

SECURITY = {"seccomp=./seccomp.json", "systempaths=unconfined", "no-new-privileges:true"}
NEEDED_BY_BUBBLEWRAP = ("clone", "clone3", "unshare", "setns", "mount", "umount2", "pivot_root", "prctl", "seccomp")


@pytest.fixture
def service(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((root / "deploy" / "compose.yaml").read_text())["services"]["wakeful"]
    return found


def test_the_image_runs_one_fixed_user_with_its_home_as_volume(root: Path, service: dict[str, Any]) -> None:
    lines = (root / "deploy" / "Dockerfile").read_text()
    assert "USER 10001:10001" in lines and service["user"] == "10001:10001"
    home = re.search(r"WAKEFUL_HOME=(\S+)", lines)
    assert home is not None and f"VOLUME {home[1]}" in lines and f"home:{home[1]}" in service["volumes"]
    assert "install --yes --no-install-recommends bubblewrap" in lines
    assert lines.index("USER 10001") > lines.index("pip install"), "nothing is installed by the user of the agents"
    for copied in re.findall(r"^COPY (.+) \S+$", lines, re.M):
        assert all((root / name).exists() for name in copied.split())


def test_the_container_is_given_time_to_drain_an_init_and_a_health_check(root: Path, service: dict[str, Any]) -> None:
    assert service["init"] is True
    assert int(service["stop_grace_period"].removesuffix("s")) > DRAIN_SECONDS + END_SECONDS
    lines = (root / "deploy" / "Dockerfile").read_text()
    assert "STOPSIGNAL SIGTERM" in lines and "wakeful daemon status --json" in lines.partition("HEALTHCHECK")[2]
    assert 'ENTRYPOINT ["wakeful"]' in lines and 'CMD ["serve", "--access", "lan"]' in lines
    assert service["ports"] == ["127.0.0.1:7717:7717"], "no port is open to other machines"


def test_the_profile_leaves_bubblewrap_what_it_needs_and_takes_calls_about_the_kernel(
    root: Path, service: dict[str, Any]
) -> None:
    profile = json.loads((root / "deploy" / "seccomp.json").read_text())
    refused = {name for rule in profile["syscalls"] for name in rule["names"] if rule["action"] == "SCMP_ACT_ERRNO"}
    assert profile["defaultAction"] == "SCMP_ACT_ALLOW" and not refused & set(NEEDED_BY_BUBBLEWRAP)
    assert {"bpf", "init_module", "kexec_load", "keyctl", "io_uring_setup", "settimeofday"} <= refused
    assert {"seccomp=./seccomp.json", "systempaths=unconfined", "no-new-privileges:true"} == set(
        service["security_opt"]
    )
    assert service["cap_drop"] == ["ALL"] and "privileged" not in service
    said = (root / "docs" / "guides" / "containers.md").read_text()
    assert "where no container engine is: they read these files" in said


@pytest.mark.spec("HOL-TROUBLE-01", "HOL-TROUBLE-04")
def test_troubleshooting_is_told_in_its_order(root: Path) -> None:
    page = (root / "docs" / "guides" / "troubleshooting.md").read_text()
    steps = re.findall(r"^## \d\. .*?: `(.+)`$", page, re.M)
    assert [step.split("`")[0] for step in steps] == [
        "wakeful run --json",
        "wakeful daemon status",
        "wakeful daemon logs",
        "wakeful status",
        "wakeful tui",
        "wakeful serve",
    ]
    assert "Once the daemon is known to be healthy" in page.partition("wakeful tui")[2]


def test_every_page_has_its_place_on_the_site(root: Path) -> None:
    config = tomllib.loads((root / "zensical.toml").read_text())["project"]
    listed = re.findall(r'= "([^"]+\.md)"', (root / "zensical.toml").read_text())
    pages = {page.relative_to(root / "docs").as_posix() for page in (root / "docs").rglob("*.md")}
    decisions = {page for page in pages if page.startswith("explain/decisions/0")}
    assert sorted(listed) == sorted(pages - decisions) and config["docs_dir"] == "docs"
    pinned = tomllib.loads((root / "pyproject.toml").read_text())["dependency-groups"]["site"]
    assert len(pinned) == 1 and pinned[0].startswith("zensical==")
