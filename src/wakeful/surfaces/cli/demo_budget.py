"""`wakeful demo budget`: one budget for a tree of subtasks, kept across a kill."""

import re

from wakeful.surfaces.cli.demo_stage import KeepOption, Stage, staged
from wakeful.surfaces.cli.problems import NeedsPerson

PROGRAM, STORE, LIMIT = "report.py", "runs.db", 12


def command(keep: KeepOption = True) -> None:
    """Give a model that never stops a budget of twelve calls, kill it in its subtasks, and see the budget hold.

    Offline: a scripted model, a temporary folder. No key, no question, a few seconds.
    """
    with staged(keep=keep) as stage:
        (stage.folder / PROGRAM).write_text(stage.program("budget.txt"))
        stage.say(
            f"A model splits a report into three subtasks that never stop. The program:\n  {stage.folder / PROGRAM}"
        )
        stage.title(f"1. The budget is {LIMIT} model calls, subtasks included. The process is killed")
        stage.run(["python", PROGRAM, str(LIMIT)], crash=True)
        stage.title("2. The same command again: every subtask continues, and spent calls stay spent")
        _kept(stage, stage.run(["python", PROGRAM, str(LIMIT)]))
        stage.title("3. All calls, as a tree")
        stage.run(["wakeful", "tree", "--store", STORE])
        stage.what_next(
            (
                f"python {PROGRAM} 30                      # more room",
                f"wakeful cost --store {STORE} --by depth",
                f"wakeful replay --store {STORE}          # recompute all decisions from the log",
            )
        )


def _kept(stage: Stage, printed: str) -> None:
    """Check what is claimed."""
    used = re.search(r"(\d+) of (\d+) model calls", printed)
    if used is None or int(used[1]) > int(used[2]):
        raise NeedsPerson("the run used more than it was allowed", f"look into {stage.folder}")
    stage.say(f"{used[1]} of {used[2]}: one call was reserved for the final answer.", "green")
