"""`wakeful demo wake`: an agent sleeps, is woken by a webhook, reports, and sleeps again; across a kill."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from wakeful.surfaces.cli.demo_stage import KeepOption, Stage, staged
from wakeful.surfaces.cli.problems import NeedsPerson

REPLIES, HOOK = "replies.yaml", "webhook.py"
SECONDS = 30.0


def command(keep: KeepOption = True) -> None:
    """Wake a sleeping agent by a webhook, read its report, kill the daemon, and wake the agent again.

    Offline: a daemon of its own on this machine, a scripted model, a temporary folder. No key, no question.
    """
    with staged(keep=keep) as stage:
        _prepare(stage)
        with _daemon(stage):
            stage.title("1. The daemon runs, and the agent sleeps: it makes no call to a model")
            stage.run(["wakeful", "why", "ops"])
            stage.title(
                "2. A program outside posts to the agent's secret address; the agent wakes, reports, and sleeps"
            )
            address = _address(stage)
            _delivered(stage, address, 17, reports=1)
            stage.run(["wakeful", "why", "ops"])
            stage.title("3. The daemon is killed (signal 9) and started again; the next webhook wakes the agent")
            _kill(stage)
            stage.run(["wakeful", "daemon", "start", "--port", "0"])
            _delivered(stage, _address(stage), 18, reports=2)
            stage.run(["wakeful", "trigger", "list", "ops"])
            stage.say("Two webhooks, two reports. A delivery is stored before its sender gets an answer.", "green")
        stage.what_next(
            (
                f"export WAKEFUL_HOME={stage.home}",
                "wakeful daemon start --port 0",
                'wakeful agent new nightly --at "weekdays 07:00" --say "Check the backups."',
                "wakeful timer run nightly && wakeful tail nightly",
            )
        )


def _prepare(stage: Stage) -> None:
    (stage.folder / REPLIES).write_text(stage.program("wake.txt"))
    (stage.folder / HOOK).write_text(stage.program("webhook.txt"))
    agents = stage.home / "agents"
    agents.mkdir(parents=True)
    (agents / "ops.yaml").write_text(
        f"name: ops\nmodel: scripted:{stage.folder / REPLIES}\ninstructions: Look after the builds.\n"
        'wake: [{trigger: ci, say: "A build reported in."}]\n'
    )
    stage.say(f"An agent that a webhook wakes, as a file:\n  {agents / 'ops.yaml'}")
    stage.say(f"$ export WAKEFUL_HOME={stage.home}", "bold cyan")


@contextmanager
def _daemon(stage: Stage) -> Iterator[None]:
    stage.run(["wakeful", "daemon", "start", "--port", "0"])
    try:
        yield
    finally:
        stage.done(["wakeful", "daemon", "stop"])


def _status(stage: Stage) -> dict[str, object]:
    found: dict[str, object] = json.loads(stage.done(["wakeful", "daemon", "status", "--json"]).stdout)
    return found


def _address(stage: Stage) -> str:
    base = f"http://{_status(stage)['http_addr']}"
    told = json.loads(stage.done(["wakeful", "trigger", "url", "ops/ci", "--base", base, "--json"]).stdout)
    return str(told["trigger_url"])


def _delivered(stage: Stage, address: str, build: int, *, reports: int) -> None:
    stage.run(["python", HOOK, address, str(build)])
    until = time.monotonic() + SECONDS
    while stage.done(["wakeful", "tail", "ops"]).stdout.count("The build") < reports:
        if time.monotonic() > until:
            raise NeedsPerson("the agent did not report", f"look into {stage.folder}")
    said = stage.run(["wakeful", "tail", "ops"])
    if said.count("The build") != reports:
        raise NeedsPerson(f"{reports} deliveries came to another number of reports", f"look into {stage.folder}")


def _kill(stage: Stage) -> None:
    process = _status(stage)["pid"]
    stage.say(f"$ kill -9 {process}", "bold cyan")
    if isinstance(process, int):
        os.kill(process, signal.SIGKILL)
