"""`wakeful demo budget`: one budget for a tree of subtasks, held over a kill, and a run that stops well."""

import re

from wakeful.surfaces.cli.demo_stage import KeepOption, Stage, staged
from wakeful.surfaces.cli.problems import NeedsPerson

PROGRAM, STORE, LIMIT = "report.py", "runs.db", 12


def command(keep: KeepOption = True) -> None:
    """Give a model that would read for ever twelve replies, kill it among its subtasks, and see it keep to twelve.

    Offline: a scripted model, a temporary folder. No key, no question, a few seconds.
    """
    with staged(keep=keep) as stage:
        (stage.folder / PROGRAM).write_text(stage.program("budget.txt"))
        stage.say(f"A model splits a report into three subtasks that read for ever: {stage.folder / PROGRAM}.")
        stage.title(f"1. It may make {LIMIT} model calls, all subtasks together. In the middle it is killed")
        stage.run(["python", PROGRAM, str(LIMIT)], crash=True)
        stage.title("2. The same line again: every branch goes on where it was, and what was spent stays spent")
        _kept(stage, stage.run(["python", PROGRAM, str(LIMIT)]))
        stage.title("3. What it did, call inside call")
        stage.run(["wakeful", "tree", "--store", STORE])
        stage.what_next(
            (
                f"python {PROGRAM} 30                      # more room",
                f"wakeful cost --store {STORE} --by depth",
                f"wakeful replay --store {STORE}          # decide everything again, from the log alone",
            )
        )


def _kept(stage: Stage, printed: str) -> None:
    """What is claimed is checked."""
    used = re.search(r"(\d+) of (\d+) model calls", printed)
    if used is None or int(used[1]) > int(used[2]):
        raise NeedsPerson("the run used more than it was allowed", f"look into {stage.folder}")
    stage.say(f"{used[1]} of {used[2]}: the last one was kept for an answer.", "green")
