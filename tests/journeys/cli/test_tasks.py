"""`wakeful task`, `targets` and `package`: work is handed over, followed and stopped; agents come in bundles."""

import json
from pathlib import Path

from command_line import Wakeful

BUNDLE = {
    "agent": {"agent_slug": "clerk", "model": "scripted:refund.yaml", "tools": ["look_up", "refund"]},
    "package_slug": "shop",
    "package_version": "2.0",
}
CODE = ("--tools", "shop:both")


def written(folder: Path, **more: object) -> str:
    (folder / "clerk.json").write_text(json.dumps({**BUNDLE, **more}))
    return "clerk.json"


def test_an_agent_is_imported_and_does_a_task(wakeful: Wakeful, folder: Path) -> None:
    file = written(folder)
    assert "nobody takes tasks here" in wakeful("targets").out
    assert "nothing has been run here yet" in wakeful("task").err, "looking has made no store"
    missing = wakeful("package", "import", file)
    assert missing.code == 1 and "runtime_bundle_register_failed" in missing.err and "look_up" in missing.err
    assert wakeful("package", "import", file, *CODE) == (0, "clerk registered\n", "")
    assert wakeful("package", "import", file, *CODE, "--on-conflict", "skip").out == "clerk skipped\n"
    there = wakeful("package", "import", file, *CODE, "--on-conflict", "error")
    assert there.code == 1 and "runtime_bundle_agent_exists" in there.err
    wrong = wakeful("package", "import", file, *CODE, "--on-conflict", "replace")
    assert wrong.code == 1 and "runtime_bundle_spec_invalid" in wrong.err
    assert "local  runtime  tasks.run" in wakeful("targets").out

    done = wakeful("task", "run", "Refund it.", "--input", "order=A17", "--run-id", "r1", *CODE)
    assert (done.code, done.out.startswith("Done")) == (0, True)
    assert "r1 succeeded; wakeful task show r1" in done.err
    again = wakeful("task", "run", "Refund it.", "--run-id", "r1", *CODE)
    assert again.code == 2 and "task_run_already_started" in again.err
    assert "r1" in wakeful("task", "list").out and wakeful("task").out == wakeful("task", "list").out
    shown = wakeful("task", "show", "r1").out
    assert shown.startswith("r1  succeeded\n") and "task_run_started" in shown and "task_run_succeeded" in shown
    as_json = json.loads(wakeful("task", "show", "r1", "--json").out)
    assert (as_json["schema"], as_json["executor_id"]) == ("wakeful/task-result/v1", "local")
    assert wakeful("task", "cancel", "r1").out == "r1 is over already: succeeded\n"
    gone = wakeful("task", "show", "r9")
    assert gone.code == 2 and "task_run_not_found" in gone.err


def test_a_task_that_was_killed_is_gone_on_with(wakeful: Wakeful, process: Wakeful, folder: Path) -> None:
    wakeful("package", "import", written(folder), *CODE)
    killed = process("task", "run", "Refund it.", "--run-id", "r1", *CODE, crash=True)
    assert killed.code == -9
    assert "r1" in wakeful("task", "list").out
    assert "to go on: wakeful task resume r1" in wakeful("task", "show", "r1").out
    done = wakeful("task", "resume", "r1", *CODE)
    assert (done.code, done.out.startswith("Done")) == (0, True)
    assert wakeful("task", "show", "r1").out.startswith("r1  succeeded\n")


def test_a_preferred_target_that_is_not_there_is_told(wakeful: Wakeful, folder: Path) -> None:
    done = wakeful("task", "run", "Hello.", "--target", "moon", "--tools", "shop:other")
    assert done.code == 0
    assert "moon was not chosen: there is no such target; local was" in done.err
    only = wakeful("task", "run", "Hello.", "--allow", "moon", "--tools", "shop:other")
    assert only.code == 2 and "task_no_handler" in only.err


def test_a_package_needs_somebody_who_runs_it(wakeful: Wakeful, folder: Path) -> None:
    (folder / "request.json").write_text(json.dumps({"package": {"slug": "shop"}, "workflow": {"id": "refund"}}))
    done = wakeful("package", "run", "request.json")
    assert done.code == 2 and "runtime_package_run_no_handler" in done.err
    (folder / "request.json").write_text("{}")
    assert "runtime_package_run_missing_package" in wakeful("package", "run", "request.json").err
    assert "cannot be read" in wakeful("package", "run", "nothing.json").err
