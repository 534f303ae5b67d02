"""`--tools module:name`: the person who types says what is imported, and is told when that is not there."""

import json
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful


@pytest.mark.parametrize("named", ["shop:look_up", "shop:both", "shop:everything", "shop:clerk", "shop:weigh"])
def test_a_tool_a_list_an_agent_and_a_function_can_be_named(wakeful: Wakeful, named: str) -> None:
    assert wakeful("run", "hello", "--tools", named).code == 0


def test_a_plain_function_counts_as_irreversible_and_that_is_said(wakeful: Wakeful) -> None:
    done = wakeful("run", "hello", "--tools", "shop:weigh", "--json")
    assert 'weigh is a plain function, so it is treated as effect="irreversible"' in done.err
    assert json.loads(done.out)["status"] == "completed"


@pytest.mark.parametrize(
    ("named", "complaint", "hint"),
    [
        ("shp:both", "there is no module 'shp'", "did you mean --tools shop:both?"),
        ("nowhere.near:x", "there is no module 'nowhere'", "looked in "),
        ("shop:refnd", "the module 'shop' has no 'refnd'", "did you mean --tools shop:refund"),
        ("shop:price", "shop:price is not a tool but of type int", "name a function"),
        ("shop", "--tools shop is not MODULE:NAME", "--tools shop:refund"),
        ("shop.py:refund", "takes a module, not the file shop.py", "write --tools shop:refund"),
        ("broken:x", "the module broken cannot be imported: ZeroDivisionError", "broken.py:1"),
        ("needy:x", "the module needy cannot be imported: ModuleNotFoundError: No module named 'nothere'", "needy.py"),
    ],
)
def test_what_is_not_there_is_told_with_what_was_probably_meant(
    wakeful: Wakeful, folder: Path, named: str, complaint: str, hint: str
) -> None:
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "needy.py").write_text("import nothere\n")
    done = wakeful("run", "hello", "--tools", named)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err
    assert hint in done.err
    assert "Traceback" not in done.err
