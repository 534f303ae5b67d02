"""`wakeful demo replay`: every decision of a run recomputed from its log, and one bit that somebody changed."""

import shutil

from wakeful.surfaces.cli.demo_stage import KeepOption, staged
from wakeful.surfaces.cli.exit_codes import FAILED

PROGRAM, TAMPER, STORE, CHANGED = "refund.py", "tamper.py", "runs.db", "changed.db"


def command(keep: KeepOption = True) -> None:
    """Run an agent across a kill, recompute all its decisions from the log, then change one bit of the log.

    Offline: a scripted model, a file for a bank, a temporary folder. No key, no question, a few seconds.
    """
    with staged(keep=keep) as stage:
        (stage.folder / PROGRAM).write_text(stage.program("refund.txt"))
        (stage.folder / TAMPER).write_text(stage.program("tamper.txt"))
        stage.say(f"A refund that is killed and continued. The program:\n  {stage.folder / PROGRAM}")
        stage.title("1. The run: killed in the middle of the payment, then continued")
        stage.run(["python", PROGRAM], crash=True)
        stage.run(["python", PROGRAM])
        stage.title("2. Every decision again, from the log alone: no model, no tool, no program")
        stage.run(["wakeful", "replay", "ticket-981", "--store", STORE])
        stage.title("3. A copy, in which somebody changes one bit")
        shutil.copyfile(stage.folder / STORE, stage.folder / CHANGED)
        stage.run(["python", TAMPER])
        stage.run(["wakeful", "store", "verify", "--store", CHANGED], ends=FAILED)
        stage.say("Each row is hashed with the one before it: a log cannot be changed unseen.", "green")
        stage.run(["wakeful", "store", "verify", "--store", STORE])
        stage.what_next(
            (
                f"wakeful events ticket-981 --store {STORE}",
                f"wakeful context ticket-981 --step 1 --store {STORE}   # the messages of the first request",
                f"wakeful debug latency ticket-981 --store {STORE}",
            )
        )
