"""A home that is served for tests of commands, and what they ask it for: things that a command is then about."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from kit.runs.repositories import repository
from kit.runs.workflow_graphs import data
from kit.surfaces.command_line import Wakeful
from kit.surfaces.served_home import ServedHome, served
from wakeful.service.serving.options import ServeOptions

NEW = count()
ASK = {"id": "ask", "kind": "approval", "inputs": {"question": "Go on?"}}
OWNER = "[budget]\nper_day = {usd = 5}\n"


@contextmanager
def home_of_verbs(folder: Path) -> Iterator[ServedHome]:
    """A process that runs the agents of `verb_agents`, one that works on items, and one that remembers much."""
    folder.mkdir()
    (folder / "wakeful.toml").write_text(OWNER)
    notes = folder / "agents" / "archivist" / "memory"
    notes.mkdir(parents=True)
    (notes / "self.md").write_text("".join(f"# Server {number}\nServer {number} is orca.\n\n" for number in range(8)))
    with served(folder, ServeOptions(port=0, tools=("kit.surfaces.verb_agents:agents",))) as found:
        found.client.post("/agents", {"definition": {"name": "ops", "model": "scripted:demo", "work_items": True}})
        yield found
        for task in found.client.get("/tasks").body:
            found.client.post(f"/tasks/{task['task_id']}/stop", {})
        until = time.monotonic() + 60
        while any(each["ended_at"] is None for each in found.client.get("/tasks").body) and time.monotonic() < until:
            time.sleep(0.05)


class Stage:
    """What a journey may ask for: things that the command is then about."""

    def __init__(self, home: ServedHome, folder: Path, wakeful: Wakeful) -> None:
        self.home = home
        self.folder = folder
        self.wakeful = wakeful
        self.file = ("--store", str(home.folder / "wakeful.db"))

    def told(self, *arguments: str, code: int = 0) -> Any:
        done = self.wakeful(*arguments, "--json")
        assert done.code == code, done
        return json.loads(done.out)

    def name(self, word: str) -> str:
        return f"{word}-{next(NEW)}"

    def turn(self) -> str:
        return str(self.told("run", "hello", "--agent", "clerk", "--thread", self.name("t"))["turn_id"])

    def thread(self) -> str:
        name = self.name("t")
        self.told("run", "hello", "--agent", "clerk", "--thread", name)
        return name

    def artifact(self) -> str:
        turn = self.told("run", "log 5000", "--agent", "clerk", "--thread", self.name("t"))["turn_id"]
        return str(self.told("artifacts", turn)[0]["artifact_id"])

    def waiting(self) -> str:
        """A turn that waits for an approval."""
        words = f"refund {1000 + next(NEW)}"  # a rule of another journey may allow that one
        return str(self.told("run", words, "--agent", "clerk", "--thread", self.name("t"), code=3)["turn_id"])

    def failed(self) -> str:
        """A turn that failed."""
        return str(self.told("run", "hello", "--agent", "breaker", "--thread", self.name("t"), code=1)["turn_id"])

    def approval(self) -> str:
        turn = self.waiting()
        return str(next(a["approval_id"] for a in self.told("approvals") if a["turn_id"] == turn))

    def rule(self) -> str:
        kept = self.told("approvals", "always", self.approval(), "--for", "1h")
        return str(kept["rule_id"])

    def request(self) -> str:
        turn = self.told("run", "pick", "--agent", "picker", "--thread", self.name("t"), code=3)["turn_id"]
        return str(next(r["request_id"] for r in self.told("requests") if r["turn_id"] == turn))

    def unknown(self) -> str:
        turn = self.told("run", "ship", "--agent", "shipper", "--thread", self.name("t"))["turn_id"]
        return f"{turn}/{next(each['call_id'] for each in self.told('unknown') if each['turn_id'] == turn)}"

    def agent(self, **more: Any) -> str:
        name = self.name("agent")
        made = self.home.client.post("/agents", {"definition": {"name": name, "model": "scripted:demo", **more}})
        assert made.status == 200, made
        return name

    def changed(self) -> str:
        """An agent with two revisions."""
        name = self.agent()
        assert (
            self.home.client.ask("PATCH", f"/agents/{name}", {"changes": {"instructions": "Be brief."}}).status == 200
        )
        return name

    def timer(self) -> str:
        name = self.agent(wake=[{"cron": "0 7 * * *", "say": "Check the backups."}])
        return str(self.told("timer", "list", name)[0]["timer_id"])

    def task(self) -> str:
        known = {each["task_id"] for each in self.told("task", "list")}
        self.told("run", self.name("begin b"), "--agent", "builder", "--thread", self.name("t"))
        return str(next(each["task_id"] for each in self.told("task", "list") if each["task_id"] not in known))

    def memory(self) -> str:
        """An entry of the archivist that no other journey has taken."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if entries := self.told("memory", "list", "archivist", "--find", "orca"):
                return str(entries[0]["source_ref"])
            self.told("run", "hello", "--agent", "archivist", "--thread", self.name("t"))
        raise AssertionError("nothing is remembered")

    def trigger(self) -> str:
        name = self.name("ci")
        self.told("trigger", "create", "ops", name, "--say", "A build.")
        return f"ops/{name}"

    def address(self) -> str:
        return str(self.told("trigger", "url", self.trigger())["trigger_url"])

    def workspace(self) -> tuple[str, str]:
        agent, folder = self.agent(), self.folder / self.name("shop")
        folder.mkdir()
        known = self.told("workspace", "attach", agent, str(folder))
        return agent, str(known["attached_workspaces"][-1]["workspace_id"])

    def worktree(self) -> tuple[str, str]:
        """A worktree that was kept because it has a change, which is gone since."""
        agent = self.agent()
        repo = repository(self.folder / self.name("repo"))
        self.told("workspace", "use", agent, "--path", str(repo), "--isolated")
        session = self.told("workspace", "list", agent)["worktree_session"]
        (kept := Path(session["worktree_path"], "tea.txt")).write_text("tea\n")
        self.told("workspace", "use", agent, "agent_home")
        until = time.monotonic() + 60
        while (tree := self._worktree_of(agent))["state"] != "kept" and time.monotonic() < until:
            time.sleep(0.05)
        kept.unlink()
        return agent, str(tree["worktree_id"])

    def _worktree_of(self, agent: str) -> dict[str, Any]:
        found: dict[str, Any] = self.told("workspace", "list", agent)["worktrees"][0]
        return found

    def workflow(self) -> str:
        name = self.name("flow")
        (self.folder / f"{name}.json").write_text(
            json.dumps(data(name=name, nodes=[ASK], edges=[], inputs={}, required_inputs=[], outputs={}))
        )
        assert self.wakeful("workflow", "save", f"{name}.json").code == 0
        return name

    def channel(self) -> str:
        name = self.name("phone")
        self.told("channel", "add", "ntfy", name, "--server", "http://127.0.0.1:9", "--allow-private")
        return name

    def template(self) -> str:
        folder = self.folder / self.name("desk")
        folder.mkdir()
        (folder / "AGENTS.md").write_text("Be kind.\n")
        return str(folder)

    def template_id(self) -> str:
        return str(self.told("template", "add", self.template())["template"])

    def work_item(self) -> str:
        return str(self.told("work", "add", "ops", self.name("Make the beds"))["id"])

    def servers(self) -> str:
        """A file of MCP servers. Nothing starts them."""
        file = self.folder / "servers.json"
        file.write_text(json.dumps({"mcpServers": {"github": {"command": "github-mcp"}}}))
        return str(file)

    def logs(self) -> str:
        other, file = self.name("other"), f"{self.name('logs')}.jsonl"
        assert self.wakeful("run", "hello", "--model", "scripted:demo", "--store", f"{other}.db").code == 0
        assert self.wakeful("store", "export", file, "--store", f"{other}.db").code == 0
        return file

    def notice(self) -> str:
        agent, until = self.agent(), time.monotonic() + 60
        self.told("notify", "test", agent)
        while not (found := self.told("notices", agent)) and time.monotonic() < until:
            time.sleep(0.05)
        return str(found[0]["notice_id"])

    def expired(self) -> str:
        """An approval that nobody decided in time."""
        thread, until = self.name("t"), time.monotonic() + 60
        self.wakeful("run", "refund 5", "--agent", "hasty", "--thread", thread)
        while time.monotonic() < until:
            for each in self.told("approvals", "--all"):
                if each["thread"] == thread and each["status"] == "timed_out":
                    return str(each["approval_id"])
            time.sleep(0.05)
        raise AssertionError("its time does not run out")

    def trigger_id(self) -> str:
        return str(self.told("trigger", "rotate", self.trigger())["external_trigger_id"])

    def token(self) -> str:
        return str(self.told("token", "create", self.name("phone"))["name"])

    def skill(self) -> tuple[str, str]:
        folder = self.folder / self.name("tricks")
        (folder / "tidy").mkdir(parents=True)
        (folder / "tidy" / "SKILL.md").write_text("---\nname: tidy\ndescription: Tidy up.\n---\nBegin upstairs.\n")
        return self.agent(skills=[str(folder)]), "tidy"

    def revision(self) -> tuple[str, str]:
        """An agent, and the revision that it had first."""
        name = self.changed()
        return name, str(self.told("agent", "history", name)[-1]["revision"])

    def remembered(self) -> tuple[str, str]:
        return "archivist", self.memory()

    def workflow_id(self) -> str:
        name = self.workflow()
        return str(next(each["workflow_id"] for each in self.told("workflow", "list") if each["name"] == name))

    def workflow_run(self) -> str:
        """One that waits for an answer."""
        return str(self.told("workflow", "run", self.workflow(), "--agent", "clerk", code=3)["run_id"])

    def dispatched(self) -> str:
        """A dispatched run that waits for an approval."""
        run = self.told("dispatch", "run", f"refund {1000 + next(NEW)}", "--agent", "clerk", code=3)
        return str(run["run_id"])
