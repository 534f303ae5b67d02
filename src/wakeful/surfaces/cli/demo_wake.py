"""`wakeful demo wake`: an agent sleeps until a timer wakes it, across a kill."""

from wakeful.surfaces.cli.demo_stage import KeepOption, staged
from wakeful.surfaces.cli.problems import NeedsPerson

PROGRAM, STORE = "backups.py", "home/wakeful.db"


def command(keep: KeepOption = True) -> None:
    """Let a timer wake an agent, kill the process while it works, and see the next one finish, once.

    Offline: a scripted model, a temporary folder. No key, no question, a few seconds.
    """
    with staged(keep=keep) as stage:
        (stage.folder / PROGRAM).write_text(stage.program("wake.txt"))
        stage.say(
            f"An agent sleeps until a timer is due, then looks at backups. The program:\n  {stage.folder / PROGRAM}"
        )
        stage.title("1. The timer wakes the agent, and the process is killed while it works")
        stage.run(["python", PROGRAM], crash=True)
        stage.title("2. The store knows where it stands")
        stage.run(["wakeful", "why", "ops", "--store", STORE])
        stage.title("3. The same program again: it finishes the work that was cut off")
        stage.run(["python", PROGRAM])
        stage.title("4. The timer fired once")
        timers = stage.run(["wakeful", "timer", "list", "ops", "--store", STORE])
        if timers.count("fired") != 1:
            raise NeedsPerson("the timer did not fire exactly once", f"look into {stage.folder}")
        stage.run(["wakeful", "why", "ops", "--store", STORE])
        stage.what_next(
            (
                f"wakeful events --store {STORE}          # the turn that was cut off",
                f'wakeful send ops "And now?" --store {STORE}',
                f"wakeful pause --all --store {STORE}",
            )
        )
