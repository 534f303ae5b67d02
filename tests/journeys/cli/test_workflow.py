"""`wakeful workflow`: a graph from a file, validated, saved, shown, forgotten."""

import json
import shutil
from pathlib import Path

import pytest

from kit.runs.workflow_graphs import data
from kit.surfaces.command_line import Wakeful
from wakeful.surfaces.cli.screen import short

CODE = ("--tools", "refund_workflow:code")
OUTPUTS = {
    "letter": "Dear Ada, we are sorry. Your money is on its way back.",
    "receipt": "42.00 for A17 paid back",
}


@pytest.fixture
def example(root: Path, folder: Path) -> Path:
    """The example, copied to where the user is."""
    for name in ("refund.workflow.json", "refund_workflow.py"):
        shutil.copy(root / "examples" / name, folder / name)
    return folder / "refund.workflow.json"


def test_the_example_is_validated_saved_shown_and_deleted(wakeful: Wakeful, example: Path) -> None:
    done = wakeful("workflow", "validate", str(example), *CODE)
    assert done == (0, "refund is valid: 4 nodes, 6 edges\n", "")
    saved = json.loads(wakeful("workflow", "save", str(example), *CODE, "--json").out)
    assert saved == {
        "workflow_id": saved["workflow_id"], "revision": 1, "name": "refund", "node_count": 4, "edge_count": 6,
    }  # fmt: skip
    again = wakeful("workflow", "save", str(example), *CODE)
    assert f"saved refund as {short(saved['workflow_id'])}, revision 2" in again.out
    assert "refund" in wakeful("workflow").out and wakeful("workflow").out == wakeful("workflow", "list").out

    shown = wakeful("workflow", "show", "refund").out
    assert f"refund  {short(saved['workflow_id'])}  revision 2" in shown
    assert "    cents <- look_up.result.cents" in shown
    assert "revision 1" in wakeful("workflow", "show", saved["workflow_id"], "--revision", "1").out
    assert wakeful("workflow", "show", "refund", "--mermaid").out.startswith("flowchart TD\n")
    as_json = json.loads(wakeful("workflow", "show", "refund", "--json").out)
    assert as_json["id"] == saved["workflow_id"]
    example.write_text(json.dumps(as_json))
    assert "revision 3" in wakeful("workflow", "save", str(example), *CODE).out

    assert wakeful("workflow", "delete", "refund").out.endswith(", 3 revisions\n")
    gone = wakeful("workflow", "show", "refund")
    assert (gone.code, gone.out) == (2, "")
    assert "there is no workflow 'refund'" in gone.err
    assert "no saved workflows" in wakeful("workflow", "list").out


def test_a_graph_with_problems_is_told_all_of_them_and_not_saved(wakeful: Wakeful, folder: Path) -> None:
    (folder / "wrong.json").write_text(json.dumps(data()))
    done = wakeful("workflow", "save", "wrong.json", "--tools", "shop:everything")
    assert (done.code, done.out) == (2, "")
    assert "unknown_ref at nodes[1].ref: there is no tool 'search'" in done.err
    assert "unknown_ref at nodes[2].ref: there is no agent 'writer'; there are: none" in done.err
    assert "no saved workflows" in wakeful("workflow", "list").out
    told = wakeful("workflow", "validate", "wrong.json", "--json")
    assert told.code == 2
    answer = json.loads(told.out)
    assert answer["valid"] is False
    assert {problem["code"] for problem in answer["problems"]} == {"unknown_ref"}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "is not a text file"),
        (b"[]", "a workflow is an object"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_graph_is_told_without_a_traceback(
    wakeful: Wakeful, folder: Path, content: bytes | None, complaint: str
) -> None:
    if content is not None:
        (folder / "graph.json").write_bytes(content)
    for verb in ("validate", "save"):
        done = wakeful("workflow", verb, "graph.json")
        assert (done.code, done.out) == (2, "")
        assert complaint in done.err and "Traceback" not in done.err


def test_two_forms_at_once_are_refused(wakeful: Wakeful, example: Path) -> None:
    wakeful("workflow", "save", str(example), *CODE)
    assert wakeful("workflow", "show", "refund", "--json", "--mermaid").code == 2


def test_the_example_runs_waits_for_a_person_and_goes_on_in_another_process(
    wakeful: Wakeful, process: Wakeful, example: Path
) -> None:
    wakeful("workflow", "save", str(example), *CODE)
    done = process("workflow", "run", "refund", "--input", "order=A17", *CODE, "--no-input")
    assert (done.code, done.out) == (3, "")
    assert "Pay this order back?" in done.err
    waiting = json.loads(wakeful("approvals", "--json").out)
    question = waiting[0]["approval_id"]
    assert f"wakeful approvals reject {short(question)}" in done.err
    assert "'no' is not one of the choices" in wakeful("approvals", "answer", question, "no").err
    assert wakeful("approvals", "answer", question, "yes").code == 0
    # The saved workflow may be gone: the run has its own copy.
    wakeful("workflow", "delete", "refund")
    resumed = process("resume", waiting[0]["turn_id"], *CODE)
    assert resumed.code == 0, resumed.err
    assert json.loads(resumed.out) == OUTPUTS
    assert wakeful("replay", waiting[0]["turn_id"]).code == 0


def test_the_example_pays_nothing_when_the_person_refuses(wakeful: Wakeful, example: Path) -> None:
    wakeful("workflow", "save", str(example), *CODE)
    wakeful("workflow", "run", "refund", "--input", "order=A17", *CODE, "--no-input")
    (waiting,) = json.loads(wakeful("approvals", "--json").out)
    assert wakeful("approvals", "reject", waiting["approval_id"], "not this one").code == 0
    done = wakeful("resume", waiting["turn_id"], *CODE)
    assert (done.code, done.out) == (1, "")
    shown = wakeful("tree", waiting["turn_id"]).out
    assert "letter" in shown and "paid back" not in shown


@pytest.mark.journey("workflow run", "workflow run --json", "workflow run --store")
def test_a_run_prints_its_outputs_and_a_key_gives_them_again(wakeful: Wakeful, example: Path) -> None:
    graph = json.loads(example.read_text())
    graph["nodes"] = [node for node in graph["nodes"] if node["id"] != "agreed"]
    graph["edges"] = [edge for edge in graph["edges"] if "agreed" not in (edge["source"], edge["target"])]
    graph["nodes"][-1]["inputs"]["agreed"] = "always"
    example.write_text(json.dumps(graph))
    wakeful("workflow", "save", str(example), *CODE)
    run = ("workflow", "run", "refund", "-i", "order=A17", *CODE, "--key", "a17")
    done = wakeful(*run)
    assert done.code == 0, done.err
    assert json.loads(done.out) == OUTPUTS
    assert wakeful(*run).out == done.out
    document = json.loads(wakeful(*run, "--json").out)
    assert document["result"]["status"] == "succeeded" and document["run"]["status"] == "completed"
    assert wakeful(*run, "--store", "home/wakeful.db").out == done.out


def test_a_run_that_fails_says_which_node_and_ends_with_1(wakeful: Wakeful, example: Path) -> None:
    wakeful("workflow", "save", str(example), *CODE)
    done = wakeful("workflow", "run", "refund", "--input", "order=B2", *CODE, "--no-input")
    assert (done.code, done.out) == (1, "")
    assert "look_up failed" in done.err and "refund skipped" in done.err


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ((), "invalid_workflow_input: order: is required"),
        (("--input", "order"), "--input order is not NAME=VALUE"),
        (("--input", "order=1", "--input", "order=2"), "--input order is given twice"),
        (("--input", "order=1", "--input", "day=2"), "the workflow has no such input"),
        (("--input", "order=1", "--revision", "9"), "has no revision 9"),
    ],
)
def test_wrong_inputs_are_refused_and_nothing_runs(
    wakeful: Wakeful, example: Path, given: tuple[str, ...], complaint: str
) -> None:
    wakeful("workflow", "save", str(example), *CODE)
    done = wakeful("workflow", "run", "refund", *given, *CODE)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err
    assert wakeful("resume", "--list").out == "no unfinished turns\n"
