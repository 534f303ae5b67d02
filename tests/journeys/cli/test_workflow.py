"""`wakeful workflow`: a graph from a file, validated, saved, shown, forgotten."""

import json
import shutil
from pathlib import Path

import pytest

from command_line import Wakeful
from workflow_graphs import data

CODE = ("--tools", "refund_workflow:code")


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
    assert f"refund is saved as {saved['workflow_id']}, revision 2" in again.out
    assert "refund" in wakeful("workflow").out and wakeful("workflow").out == wakeful("workflow", "list").out

    shown = wakeful("workflow", "show", "refund").out
    assert f"refund  {saved['workflow_id']}  revision 2" in shown
    assert "    cents <- look_up.result.cents" in shown
    assert "revision 1" in wakeful("workflow", "show", saved["workflow_id"], "--revision", "1").out
    assert wakeful("workflow", "show", "refund", "--mermaid").out.startswith("flowchart TD\n")
    as_json = json.loads(wakeful("workflow", "show", "refund", "--json").out)
    assert as_json["id"] == saved["workflow_id"]
    example.write_text(json.dumps(as_json))
    assert "revision 3" in wakeful("workflow", "save", str(example), *CODE).out

    assert "is deleted, with 3 revisions" in wakeful("workflow", "delete", "refund").out
    gone = wakeful("workflow", "show", "refund")
    assert (gone.code, gone.out) == (2, "")
    assert "there is no workflow 'refund'" in gone.err
    assert "no workflow is saved here" in wakeful("workflow", "list").out


def test_a_graph_with_problems_is_told_all_of_them_and_not_saved(wakeful: Wakeful, folder: Path) -> None:
    (folder / "wrong.json").write_text(json.dumps(data()))
    done = wakeful("workflow", "save", "wrong.json", "--tools", "shop:everything")
    assert (done.code, done.out) == (2, "")
    assert "unknown_ref at nodes[1].ref: there is no tool 'search'" in done.err
    assert "unknown_ref at nodes[2].ref: there is no agent 'writer'; there are: none" in done.err
    assert "no workflow is saved here" in wakeful("workflow", "list").out
    told = wakeful("workflow", "validate", "wrong.json", "--json")
    assert told.code == 2
    answer = json.loads(told.out)
    assert answer["valid"] is False
    assert {problem["code"] for problem in answer["problems"]} == {"unknown_ref"}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"{", "not JSON"), (b"\xff\xfe", "is no text"), (b"[]", "a workflow is an object"), (None, "cannot be read")],
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
