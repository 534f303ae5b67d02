"""The number of a row of the last list, or the beginning of an id, wherever a command takes one: through a daemon, and
on the file of the same store."""

import json
from collections.abc import Iterator, Mapping
from os.path import commonprefix
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kit.surfaces.command_line import Done, Wakeful
from kit.surfaces.served_home import ServedHome
from kit.surfaces.verb_stage import Stage, home_of_verbs
from wakeful.surfaces.cli.command_table import ROWS


class Row(NamedTuple):
    """What the stage makes, the list that shows it, and what stands behind its number."""

    made: str
    listing: str
    after: tuple[str, ...] = ()
    field: str = ""
    """Where the rows are in the answer of the list; empty: it is the rows."""
    named: bool = False
    """Its rows have names and no ids: a beginning means nothing."""


TURN, WAITING = Row("turn", "events"), Row("waiting", "events")
APPROVAL, REQUEST = Row("approval", "approvals"), Row("request", "requests")
WORKSPACE = Row("workspace", "workspace list", field="attached_workspaces")
REVISION = Row("revision", "agent history")
MEMORY = Row("remembered", "memory list")
CHANNEL = Row("channel", "channel list", named=True)
CASES: Mapping[str, Row] = {
    **dict.fromkeys(("approve", "reject", "approvals show", "approvals approve", "approvals reject"), APPROVAL),
    "approvals edit": APPROVAL._replace(after=("cents=7",)),
    "approvals answer": APPROVAL._replace(after=("paid", "back")),
    "approvals always": APPROVAL._replace(after=("--for", "1h")),
    "approvals reask": Row("expired", "approvals --all"),
    "approvals revoke": Row("rule", "approvals rules"),
    **dict.fromkeys(("events", "tree", "replay", "context", "debug context", "debug latency", "artifacts"), TURN),
    **dict.fromkeys(("cancel", "pause"), WAITING),
    "interject": WAITING._replace(after=("hurry",)),
    "why": Row("notice", "notices"),
    "artifacts show": Row("artifact", "artifacts"),
    "resolve": Row("unknown", "unknown", ("--did-not-happen",)),
    **dict.fromkeys(("requests show", "requests timeout", "requests cancel"), REQUEST),
    "requests submit": REQUEST._replace(after=('{"file": "a.txt"}',)),
    **dict.fromkeys(("task show", "task output", "task stop"), Row("task", "task list")),
    **dict.fromkeys(("timer run", "timer cancel"), Row("timer", "timer list")),
    **dict.fromkeys(("trigger url", "trigger rotate", "trigger revoke"), Row("trigger_id", "trigger list")),
    **dict.fromkeys(("dispatch show", "dispatch cancel"), Row("dispatched", "dispatch list")),
    **dict.fromkeys(("workflow runs", "workflow cancel"), Row("workflow_run", "workflow runs")),
    **dict.fromkeys(("workflow show", "workflow delete"), Row("workflow_id", "workflow list")),
    **dict.fromkeys(("memory show", "memory forget"), MEMORY),
    "memory edit": MEMORY._replace(after=("It is beluga.",)),
    **dict.fromkeys(("workspace use", "workspace detach"), WORKSPACE),
    "workspace clean": Row("worktree", "workspace list", field="worktrees"),
    "agent diff": REVISION,
    "skills show": Row("skill", "skills", named=True),
    "template show": Row("template_id", "template list", named=True),
    **dict.fromkeys(("channel pair", "channel remove"), CHANNEL),
    "token revoke": Row("token", "token list", named=True),
}
OPTIONS = ("approvals", "approvals list", "requests", "requests list", "tools", "debug prompt", "cost")
"""Commands with `--turn`."""
ELSEWHERE = ("agent create", "channel test", "resume", "retry", "dispatch resume", "workflow run")
"""They need code, a phone, or a process of their own; that they have those parameters is seen in test_last_list.py."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    folder = tmp_path_factory.mktemp("rows") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder.parent))  # templates are kept there
        with home_of_verbs(folder) as found:
            yield found


@pytest.fixture
def stage(home: ServedHome, folder: Path, wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("WAKEFUL_HOME", str(home.folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    return Stage(home, folder, wakeful)


def rows(done: Done, field: str = "") -> list[Any]:
    """What a list shows to a program: one document, or one a line."""
    assert done.code == 0, done
    try:
        shown = json.loads(done.out)
    except ValueError:
        return [json.loads(line) for line in done.out.splitlines()]
    return list(shown[field]) if field else shown if isinstance(shown, list) else [shown]


def number_of(wanted: str, shown: list[Any]) -> str:
    """The number of the row about it."""
    ids = [{*map(str, row.values()), f"{row.get('turn_id')}/{row.get('call_id')}"} for row in shown]
    return str(next(number for number, known in enumerate(ids, 1) if wanted in known))


def test_every_command_that_takes_a_row_is_tried_with_one() -> None:
    assert {*CASES, *OPTIONS, *ELSEWHERE} == set(ROWS)


@pytest.mark.parametrize("name", CASES)
def test_a_number_and_a_beginning_mean_the_row_that_was_shown(stage: Stage, name: str) -> None:
    case = CASES[name]
    ways: list[tuple[str, ...]] = [()] if case.listing in ("template list", "token list") else [(), stage.file]
    for way in ways:
        for by_number in (True, False)[: 1 if case.named else 2]:
            made = getattr(stage, case.made)()
            *before, wanted = made if isinstance(made, tuple) else (made,)
            shown = rows(stage.wakeful(*case.listing.split(), *before, "--json", *way), case.field)
            word = number_of(wanted, shown) if by_number else wanted[:-2]
            done = stage.wakeful(*name.split(), *before, word, *case.after, *way)
            assert (done.code, done.err) == (0, ""), done


def test_why_means_the_list_that_was_shown_last(stage: Stage) -> None:
    for made, listing, kind in (
        ("timer", "timer list", "timer"),
        ("notice", "notices", "notice"),
        ("turn", "events", "turn"),
    ):
        wanted = getattr(stage, made)()
        number = number_of(wanted, rows(stage.wakeful(*listing.split(), "--json")))
        told = stage.told("why", number)
        assert (told["kind"], told["id"]) == (kind, wanted)
    call = stage.unknown()
    assert stage.told("why", number_of(call, rows(stage.wakeful("unknown", "--json"))))["call_id"] == call.split("/")[1]


@pytest.mark.parametrize("name", OPTIONS)
def test_a_turn_in_an_option_may_be_a_row(stage: Stage, name: str) -> None:
    turn = stage.turn()
    number = number_of(turn, rows(stage.wakeful("events", "--json")))
    by_row, by_id = (stage.wakeful(*name.split(), "--turn", word, "--json") for word in (number, turn))
    assert by_row.code == 0 and by_row.out == by_id.out


def test_numbers_in_other_places_stay_what_they_are(stage: Stage) -> None:
    turn, approval = stage.turn(), stage.approval()
    shown = rows(stage.wakeful("events", "--json"))
    assert shown[0]["turn_id"] != turn
    assert stage.wakeful("context", "--step", "1", number_of(turn, shown)).code == 0
    assert stage.wakeful("events", "--after", "2", turn).out == stage.wakeful("events", turn, "--after", "2").out != ""
    assert stage.wakeful("events", "--after", "2").code == 2, "the newest turns have no sequence"
    assert stage.wakeful("context", "--step", "1").code == 0, "the newest turn"
    stage.workflow_run(), stage.workflow_run()
    assert len(rows(stage.wakeful("workflow", "runs", "--limit", "1", "--json"))) == 1
    number = number_of(approval, rows(stage.wakeful("approvals", "--json")))
    decided = stage.told("approve", "--note", "1", number)["approval"]
    assert (decided["approval_id"], decided["note"]) == (approval, "1")


def test_rows_of_one_place_are_not_used_at_another(stage: Stage, folder: Path) -> None:
    approval = stage.approval()
    socket = str(stage.home.socket)
    number = number_of(approval, rows(stage.wakeful("approvals", "--json")))
    for words in (("approve", "--connect", socket, number), ("approve", number, "--store", "other.db")):
        assert stage.wakeful("run", "hello", "--model", "scripted:demo", "--store", "other.db").code == 0
        refused = stage.wakeful(*words)
        assert refused.code == 2 and f"row {number} of which list? No list was shown yet" in refused.err
    number = number_of(approval, rows(stage.wakeful("approvals", "--connect", socket, "--json")))
    assert stage.told("approvals", "show", "--connect", socket, number)["approval_id"] == approval
    assert stage.told("approve", f"--connect={socket}", number)["approval"]["approval_id"] == approval


@pytest.mark.parametrize("listing", ["memory list", "workspace list"])
def test_rows_of_one_agent_are_not_used_for_another(stage: Stage, listing: str) -> None:
    stage.memory()
    other = stage.agent()
    assert stage.wakeful(*listing.split(), "archivist").code == 0
    verb = "show" if listing == "memory list" else "use"
    refused = stage.wakeful(listing.split()[0], verb, other, "1")
    assert refused.code == 2 and "The last one was about agent archivist" in refused.err
    assert f"wakeful {listing} {other}" in refused.err


@pytest.mark.parametrize(("verb", "made", "field"), [("task show", "task", ""), ("timer cancel", "timer", "timer_id")])
def test_a_beginning_that_fits_several_is_told_with_them(stage: Stage, verb: str, made: str, field: str) -> None:
    def another() -> str:
        found = getattr(stage, made)()
        return str(stage.told("timer", "run", found)[field]) if field else str(found)

    begins = commonprefix([another(), another()])  # noqa: RUF071 (ids begin with the time)
    for way in ((), stage.file):
        refused = stage.wakeful(*verb.split(), begins, *way)
        assert refused.code == 2 and f"'{begins}' matches " in refused.err, refused
        assert "give more of the id:" in refused.err and refused.err.count(f"  {begins}") >= 2, refused
    if made == "task":
        answer = stage.home.client.get(f"/tasks/{begins}")
        assert answer.status == 404 and f"'{begins}' matches " in str(answer.body)
