"""`wakeful demo crash`: a real process, killed for real at the worst moment, and the same line run again."""

import json

from wakeful.surfaces.cli.demo_stage import KeepOption, Stage, staged
from wakeful.surfaces.cli.problems import NeedsPerson

PROGRAM, ONCE = "refund.py", "once.py"
BANK, STORE, ONCE_STORE, ONCE_BANK = "bank.txt", "runs.db", "once.db", "once.txt"


def command(keep: KeepOption = True) -> None:
    """Kill a run in the middle of a payment, run the same command again, and see that it paid once.

    Offline: a scripted model, a file for a bank, a temporary folder. No key, no question, a few seconds.
    """
    with staged(keep=keep) as stage:
        program = stage.program("refund.txt")
        (stage.folder / PROGRAM).write_text(program)
        other = program.replace('effect="keyed"', 'effect="irreversible"')
        (stage.folder / ONCE).write_text(other.replace(STORE, ONCE_STORE).replace(BANK, ONCE_BANK))
        stage.say(f"A support agent refunds an order. Its program:\n  {stage.folder / PROGRAM}")
        _killed_and_finished(stage)
        _from_the_log(stage)
        _unknown_outcome(stage)
        stage.what_next(
            (
                f"wakeful events --store {STORE}",
                f"wakeful replay --store {STORE}          # recompute all decisions from the log",
                f"wakeful doctor --store {STORE}",
                "wakeful demo approve                    # the same, with an approval",
                'wakeful run "hello"                     # a run of your own, with a scripted model',
            )
        )


def _killed_and_finished(stage: Stage) -> None:
    stage.title("1. Killed at the worst moment: the bank has paid, the log does not know it yet")
    stage.run(["python", PROGRAM], crash=True)
    stage.show_payments(BANK)
    stage.title("2. The same command again")
    stage.run(["python", PROGRAM])
    stage.show_payments(BANK)
    stage.say("The run continued inside the refund, with the same idempotency key: one payment.", "green")


def _from_the_log(stage: Stage) -> None:
    stage.title("3. Once more: the answer comes from the log; no model and no tool runs")
    before = _events(stage)
    stage.run(["python", PROGRAM])
    after = _events(stage)
    if before != after:
        raise NeedsPerson(f"the log grew from {before} to {after} events", f"look into {stage.folder}")
    stage.say(f"The log had {before} events before and has {after} now.", "green")


def _unknown_outcome(stage: Stage) -> None:
    stage.title('4. The same program with effect="irreversible": a bank without idempotency keys')
    stage.run(["python", ONCE], crash=True)
    stage.run(["python", ONCE])
    stage.show_payments(ONCE_BANK)
    stage.say("It did not pay again. A person has to check, and records the outcome:", "green")
    stage.run(["wakeful", "unknown", "--store", ONCE_STORE])
    stage.run(["wakeful", "resolve", "call_2_1", "--happened", "refunded 4200", "--store", ONCE_STORE])


def _events(stage: Stage) -> int:
    listed = stage.done(["wakeful", "events", "--json", "--store", STORE])
    turn = json.loads(listed.stdout.splitlines()[0])["turn_id"]
    return len(stage.done(["wakeful", "events", turn, "--json", "--store", STORE]).stdout.splitlines())
