"""Memory through `Runtime`: what an agent finds again, what its turns begin with, and what a person corrects."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, Principal, Runtime, run
from wakeful.ports import ModelRequest
from wakeful.testing import FixedClock, scripted

AGENT = "ada"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the agent of the runtime in `rt`."""
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "installation"))
    folder = tmp_path / "rt" / "agents" / AGENT
    (folder / "memory").mkdir(parents=True)
    return folder


class Mind:
    """A model that does what `say` makes of the newest message and of the results since then; it keeps its requests."""

    def __init__(self, say: Callable[[str, list[Any]], Any]) -> None:
        self.say = say
        self.requests: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> Any:
        self.requests.append(request)
        heard = [item for item in request.history if item.role == "user" and item.origin == "person"]
        results: list[Any] = []
        for item in request.history:
            if item.role == "user" and item is heard[-1]:
                results = []
            elif item.role == "tool":
                results.append(json.loads(item.text))
        return self.say(heard[-1].text, results)

    def agent(self, **options: Any) -> Agent[None, str]:
        return Agent(AGENT, scripted(self), memory=True, **options)


def searching(text: str, results: list[Any]) -> Any:
    """`find WORDS` searches, `get REF` reads; anything else is answered."""
    verb, _, words = text.partition(" ")
    if results or verb not in ("find", "get"):
        return json.dumps(results[-1]) if results else f"Noted: {text}"
    if verb == "find":
        return calls(("memory_search", {"query": words}))
    return calls(("memory_get", {"source_ref": words}))


async def ask(rt: Runtime, text: str, **how: Any) -> Any:
    result = await rt.answer(await rt.send(AGENT, text, **how))
    try:
        return json.loads(result.output)
    except ValueError:
        return result.output


@pytest.mark.spec("HOL-IDX-01", "HOL-IDX-02", "HOL-IDX-06", "HOL-IDX-07")
async def test_an_agent_finds_what_it_said_and_what_is_written_in_its_home(tmp_path: Path, home: Path) -> None:
    (home / "memory" / "self.md").write_text("# Deploys\nDeploys happen on Tuesdays.\n\n# Tone\nBe brief.\n")
    async with Runtime(tmp_path / "rt", agents=[Mind(searching).agent()], clock=FixedClock()) as rt:
        assert await ask(rt, "the staging password rotates weekly") == "Noted: the staging password rotates weekly"
        (found,) = (await ask(rt, "find Tuesdays"))["results"]
        assert (found["kind"], found["title"], found["source_path"]) == ("self", "Deploys", "memory/self.md")
        assert (found["scope_kind"], found["workspace_id"], found["agent_id"]) == ("agent", None, AGENT)
        assert found["snippet"] == "# Deploys Deploys happen on Tuesdays."
        assert set(found) >= {"score", "updated_at", "metadata", "source_ref"}
        got = await ask(rt, f"get {found['source_ref']}")
        assert (got["content"], got["truncated"]) == ("# Deploys\nDeploys happen on Tuesdays.", False)
        assert set(found) - {"snippet", "score"} <= set(got)
        (said,) = [each for each in (await ask(rt, "find staging"))["results"] if "weekly" in each["snippet"]][:1]
        assert said["kind"] == "brief"


@pytest.mark.spec("HOL-IDX-03", "HOL-IDX-08")
async def test_a_handle_is_opaque_and_an_entry_is_shown_within_bounds(tmp_path: Path, home: Path) -> None:
    (home / "memory" / "self.md").write_text("# Long\n" + "abc " * 20_000)
    asked: dict[str, Any] = {}

    def say(text: str, results: list[Any]) -> Any:
        return json.dumps(results[-1]) if results else calls(("memory_get", asked))

    async with Runtime(tmp_path / "rt", agents=[Mind(say).agent()], clock=FixedClock()) as rt:
        (entry,) = await rt.memory(AGENT).list()
        for made_up in ("memory/self.md", "self:Long", str(home / "memory" / "self.md"), "mem_0"):
            asked = {"source_ref": made_up}
            assert (await ask(rt, made_up))["kind"] == "memory_entry_not_found"
        asked = {"source_ref": entry.source_ref}
        got = await ask(rt, "as it is")
        assert (len(got["content"]), got["truncated"]) == (12_000, True)
        asked = {"source_ref": entry.source_ref, "max_chars": 3}
        assert (await ask(rt, "three"))["content"] == "# L"
        for wrong in (0, 50_001):
            asked = {"source_ref": entry.source_ref, "max_chars": wrong}
            assert (await ask(rt, str(wrong)))["kind"] == "invalid_parameters"


@pytest.mark.spec("HOL-IDX-10", "HOL-IDX-11", "HOL-IDX-12")
@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("服务器每周二部署到生产环境。", "部署"),
        ("服务器每周二部署到生产环境。", "生产环境"),
        ("バックアップは毎朝七時に確認する。", "毎朝"),
        ("バックアップは毎朝七時に確認する。", "バックアップ"),
        ("백업은 매일 아침에 확인한다.", "백업"),
        ("GPT模型 is used for 翻译 tasks.", "GPT 翻译"),
        ("GPT模型 is used for 翻译 tasks.", "模型"),
        ("Die Übergabe ist am Montag.", "ubergabe"),
        ("ＡＰＩの鍵は金庫にある。", "API"),
        ("ｻｰﾊﾞｰは停止中。", "サーバー"),
        ("백업은 매일 아침에 확인한다.", "\u1107\u1162\u11a8\u110b\u1165\u11b8"),
        ("数据库迁移在周五。", "请帮我查看一下昨天我们讨论过的关于数据库迁移的计划"),
        ("The vault is in the cellar.", " ".join(f"so word{number}" for number in range(90)) + " and the vault?"),
    ],
)
async def test_every_script_is_found_and_shown_as_it_was_written(
    tmp_path: Path, home: Path, text: str, query: str
) -> None:
    (home / "memory" / "operator.md").write_text(f"{text}\n\n# Other\n完全不同的东西 全く別 전혀 다른 something else\n")
    async with Runtime(tmp_path / "rt", agents=[Mind(searching).agent()], clock=FixedClock()) as rt:
        (found,) = (await ask(rt, f"find {query}"))["results"]
        assert (found["kind"], found["snippet"]) == ("operator", text)
        assert (await ask(rt, f"get {found['source_ref']}"))["content"] == text


async def test_work_that_changes_after_the_clock_was_set_back_is_found_as_it_is(tmp_path: Path, home: Path) -> None:
    def say(text: str, results: list[Any]) -> Any:
        item = text.split()[-1]
        return "Noted." if results else calls(("update_work_item", {"work_item_id": item, "objective": "Belugas."}))

    clock = FixedClock()
    async with Runtime(tmp_path / "rt", agents=[Mind(say).agent(work_items=True)], clock=clock) as rt:
        await rt.pause(AGENT)
        item = await rt.enqueue(AGENT, "Orcas.")
        assert [each.text for each in await rt.memory(AGENT).list("orcas")] == ["Orcas."]
        clock.skip(-3600)
        await rt.resume(AGENT)
        await rt.answer(await rt.send(AGENT, item.id))
        found = await rt.memory(AGENT).list()
        assert [each.text for each in found if each.kind == "work_item"] == ["Belugas."]


@pytest.mark.spec("HOL-IDX-05", "HOL-IDX-13", "HOL-IDX-14", "HOL-IDX-16")
async def test_the_index_follows_records_and_files_and_is_made_again_from_them(tmp_path: Path, home: Path) -> None:
    (home / "notes.md").write_text("The zebra is in a note of the workspace.")
    (home / "memory" / "other.md").write_text("The zebra is in a file that is no memory.")

    def say(text: str, results: list[Any]) -> Any:
        if text == "work":
            return "Open." if results else calls(("create_work_item", {"objective": "Feed the zebra daily."}))
        return searching(text, results)

    async def kinds(rt: Runtime) -> list[str]:
        return sorted({each["kind"] for each in (await ask(rt, "find zebra"))["results"]})

    store = tmp_path / "rt" / "wakeful.db"
    async with Runtime(tmp_path / "rt", agents=[Mind(say).agent(work_items=True)], clock=FixedClock()) as rt:
        assert await kinds(rt) == [], "neither notes nor other files are memory"
        await ask(rt, "work")
        assert "work_item" in await kinds(rt)
        (home / "memory" / "self.md").write_text("I like the zebra.\n")
        assert await kinds(rt) == ["brief", "self", "work_item"], "an editor changed the file"
        (home / "memory" / "self.md").write_text("I like the gnu.\n")
        assert await kinds(rt) == ["brief", "work_item"]
        (index,) = Path(f"{store}.memory").glob("*.sqlite3")
        for harm in ("missing", "damaged", "another version", "cut off"):
            if harm == "missing":
                index.unlink()
            elif harm == "damaged":
                index.write_bytes(b"no database at all, and long enough to be looked at as one " * 100)
            elif harm == "another version":
                with apsw_open(index) as connection:
                    connection.execute("PRAGMA user_version = 99")
            else:
                data = index.read_bytes()
                index.write_bytes(data[: len(data) // 2])
            told = await ask(rt, "find zebra")
            assert {each["kind"] for each in told["results"]} == {"brief", "work_item"}, harm
            assert ("made again" in told.get("index", "")) == (harm != "missing"), harm
        index.unlink()
        for beside in index.parent.iterdir():
            beside.unlink()
        index.parent.rmdir()
        index.parent.write_text("a file where the folder should be")
        told = await ask(rt, "find zebra")
        assert {each["kind"] for each in told["results"]} == {"brief", "work_item"}
        assert "is in memory" in told["index"], "an index that cannot be had stops no agent"


def apsw_open(path: Path) -> Any:
    import contextlib

    import apsw

    return contextlib.closing(apsw.Connection(str(path)))


async def chat(rt: Runtime, text: str, user: str) -> Any:
    """A message of somebody's own chat with the agent, in a thread of theirs."""
    result = await run(rt_agent(rt), text, store=rt_store(rt), thread=f"chat-{user}", principal=Principal(id=user))
    try:
        return json.loads(result.output)
    except ValueError:
        return result.output


def rt_agent(rt: Runtime) -> Agent[Any, Any]:
    return rt._agents[0]


def rt_store(rt: Runtime) -> Any:
    return rt._here.engine.store


@pytest.mark.spec("HOL-IDX-09", "HOL-IDX-15")
async def test_a_chat_finds_what_is_its_own_and_main_finds_all(tmp_path: Path, home: Path) -> None:
    (home / "memory" / "operator.md").write_text("The unicorn is the operator's secret.\n")
    (home / "memory" / "self.md").write_text("I once saw a unicorn.\n")
    workspace = tmp_path / "work"
    workspace.mkdir()
    async with Runtime(tmp_path / "rt", agents=[Mind(searching).agent()], clock=FixedClock()) as rt:
        await chat(rt, "Ann keeps a unicorn in the shed", "ann")
        await chat(rt, "Bob sells unicorn food", "bob")

        def who(told: Any) -> set[str]:
            return {each["snippet"].split()[1] if each["kind"] == "brief" else each["kind"] for each in told["results"]}

        assert who(await chat(rt, "find unicorn", "ann")) == {"self", "Ann"}
        assert who(await chat(rt, "find unicorn", "bob")) == {"self", "Bob"}
        assert who(await ask(rt, "find unicorn")) >= {"self", "operator", "Ann", "Bob"}
        of_bob = next(each for each in await rt.memory(AGENT).list() if each.principal == "bob")
        assert (await chat(rt, f"get {of_bob.source_ref}", "ann"))["kind"] == "memory_entry_not_found"
    async with Runtime(
        tmp_path / "rt", agents=[Mind(searching).agent(workspace=workspace, profile="chat")], clock=FixedClock()
    ) as rt:
        await ask(rt, "the dragon lives here")
        (here,) = (await ask(rt, "find dragon"))["results"]
        assert here["scope_kind"] == "workspace" and here["workspace_id"].startswith("ws_")
    async with Runtime(tmp_path / "rt", agents=[Mind(everywhere).agent()], clock=FixedClock()) as rt:
        assert (await ask(rt, "find dragon"))["results"] == [], "it works elsewhere now"
        found = (await ask(rt, "all dragon"))["results"]
        assert {each["workspace_id"] for each in found} == {here["workspace_id"]}
        assert (await ask(rt, "find unicorn"))["results"], "what is the agent's own is found wherever it works"


async def test_a_strangers_message_finds_what_is_the_agents_own_and_nothing_of_its_people(
    tmp_path: Path, home: Path
) -> None:
    """W34: also what follows from it, and what the runtime shows without being asked."""
    (home / "memory" / "operator.md").write_text("The unicorn is the operator's secret.\n")
    (home / "memory" / "self.md").write_text("I once saw a unicorn.\n")
    mind = Mind(lambda text, results: searching(text.rpartition("\n")[2], results))  # its header says who wrote
    async with Runtime(tmp_path / "rt", agents=[mind.agent(work_items=True)], clock=FixedClock()) as rt:
        await ask(rt, "my unicorn is called Zed")
        await chat(rt, "Ann keeps a unicorn in the shed", "ann")

        async def hears(**how: Any) -> set[str]:
            answered = await rt.answer(await rt.receive(AGENT, "find unicorn", **how))
            shown = " ".join(
                [mind.requests[-1].frame.system_prompt, *(each.text for each in mind.requests[-1].history)]
            )
            assert "Zed" not in shown and "shed" not in shown, "working memory is cut, too"
            return {each["kind"] for each in json.loads(answered.output)["results"]}

        assert await hears(channel="mail", sender="eve@example.org", thread="mail") == {"self"}
        assert await hears(webhook="ci", verified=True, thread="ci") >= {"self"}
        (of_operator,) = [each for each in await rt.memory(AGENT).list("Zed") if each.kind == "brief"]
        assert of_operator.principal == "operator"
        get = await rt.answer(await rt.receive(AGENT, f"get {of_operator.source_ref}", channel="mail", thread="mail"))
        assert json.loads(get.output)["kind"] == "memory_entry_not_found"
        inversion = (await ask(rt, "find unicorn"))["results"]
        assert {each["kind"] for each in inversion} >= {"self", "operator", "brief"}, "the operator finds all"
        assert {"Zed" in each["snippet"] for each in inversion} == {True, False}


def everywhere(text: str, results: list[Any]) -> Any:
    if text.startswith("all ") and not results:
        return calls(("memory_search", {"query": text[4:], "include_all_workspaces": True}))
    return searching(text, results)
