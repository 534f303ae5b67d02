"""`wakeful demo approve`: a call waits for a person; the process is killed, a second one decides, a third goes on."""

import re

from wakeful.surfaces.cli.demo_stage import KeepOption, Stage, staged
from wakeful.surfaces.cli.exit_codes import FAILED
from wakeful.surfaces.cli.problems import NeedsPerson

PROGRAM, STORE, BANK = "refund.py", "runs.db", "bank.txt"


def command(keep: KeepOption = True) -> None:
    """Kill a run while it waits for a person, approve from another process, and see it paid as approved, once.

    Offline: a scripted model, a file for a bank, a temporary folder. No key, no question, a few seconds.
    """
    with staged(keep=keep) as stage:
        (stage.folder / PROGRAM).write_text(stage.program("approve.txt"))
        stage.say(f"Refunds over 10.00 need approval. The program:\n  {stage.folder / PROGRAM}")
        approval = _asked_and_killed(stage)
        _decided_elsewhere(stage, approval)
        _goes_on(stage)
        _decided_once(stage, approval)
        stage.what_next(
            (
                f"wakeful approvals --all --store {STORE}",
                f"wakeful events --store {STORE}",
                f"wakeful replay --store {STORE}          # recompute all decisions from the log",
            )
        )


def _asked_and_killed(stage: Stage) -> str:
    stage.title("1. A refund of 42.00 needs approval. The process is killed while it waits")
    stage.run(["python", PROGRAM], crash=True)
    if (stage.folder / BANK).exists():
        raise NeedsPerson("the bank paid before the refund was approved", f"look into {stage.folder}")
    stage.title("2. Another process lists what is pending")
    listed = stage.run(["wakeful", "approvals", "--store", STORE])
    found = re.search(r"appr_\w+", listed)
    if found is None:
        raise NeedsPerson("no approval is pending, and one refund should be", f"look into {stage.folder}")
    return found[0]


def _decided_elsewhere(stage: Stage, approval: str) -> None:
    stage.title("3. A person approves. This does not need the code of the tool")
    stage.run(["wakeful", "approvals", "approve", approval, "--note", "checked", "--store", STORE])


def _goes_on(stage: Stage) -> None:
    stage.title("4. A third process continues the run: the same command as at the start")
    stage.run(["python", PROGRAM])
    stage.show_payments(BANK)
    stage.say("The refund ran once, with the approved arguments. The log says why:", "green")
    stage.run(["wakeful", "why", "call_2_1", "--store", STORE])


def _decided_once(stage: Stage, approval: str) -> None:
    stage.title("5. A second decision changes nothing")
    stage.run(["wakeful", "approvals", "reject", approval, "too late", "--store", STORE], ends=FAILED)
    stage.show_payments(BANK)
