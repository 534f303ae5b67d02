"""What a line of the composer means: a message, or a command that begins with `/`; and commands about one agent."""

from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

from wakeful.contracts.errors import InvalidRequest
from wakeful.surfaces.tui.home_client import HomeClient

NO_AGENT = "no agent yet; make one: wakeful agent create NAME --model PROVIDER:MODEL"
HOME = "agent_home"


class SlashCommand(NamedTuple):
    """A command of the composer."""

    usage: str
    says: str
    key: str = ""


COMMANDS: Final = {
    "help": SlashCommand("/help", "keys and commands", "F1"),
    "agents": SlashCommand("/agents", "all agents; a row chooses one", "F2"),
    "transcript": SlashCommand("/transcript", "what was said, in full", "F3"),
    "tasks": SlashCommand("/tasks", "tasks and work items", "F4"),
    "events": SlashCommand("/events", "raw events of the log", "F5"),
    "approvals": SlashCommand("/approvals", "what waits for you", "F6"),
    "actions": SlashCommand("/actions", "pause, workspace, debug prompt", "F7"),
    "cost": SlashCommand("/cost", "what was spent today, and what limits it", "F8"),
    "now": SlashCommand("/now TEXT", "say it to the turn that runs, at its next step"),
    "output": SlashCommand("/output TASK", "what a task has put out (o in F4)"),
    "agent": SlashCommand("/agent NAME", "talk to this agent", "Tab"),
    "display": SlashCommand("/display MODE", "info (3), verbose (4), debug (5)"),
    "why": SlashCommand("/why", "why it does not go on"),
    "prompt": SlashCommand("/prompt", "the system prompt of the newest turn"),
    "pause": SlashCommand("/pause", "pause the agent"),
    "resume": SlashCommand("/resume", "resume it"),
    "stop": SlashCommand("/stop", "stop the agent"),
    "attach": SlashCommand("/attach PATH", "let it work in a folder"),
    "use": SlashCommand("/use PATH|ID", "work there from now on"),
    "exit": SlashCommand("/exit", "back to its own home"),
    "detach": SlashCommand("/detach ID", "detach a folder"),
    "quit": SlashCommand("/quit", "leave; agents go on", "Ctrl+Q"),
}
WITH_WORDS: Final = frozenset(("agent", "display", "attach", "use", "detach", "now", "output"))


class TypedLine(NamedTuple):
    """A command with its words, or a message: then the command is blank."""

    command: str
    words: str


def read_line(line: str) -> TypedLine:
    """`//` begins a message with one slash. Raises InvalidRequest for a command that is none."""
    if line.startswith("//"):
        return TypedLine("", line[1:])
    if not line.startswith("/"):
        return TypedLine("", line)
    name, _, words = line[1:].strip().partition(" ")
    words = words.strip()
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
        hint = f"Did you mean /{near[0]}?" if near else "/help shows all. A message that begins with / is typed //."
        raise InvalidRequest(f"there is no command /{name}", hint)
    if name in WITH_WORDS and not words:
        raise InvalidRequest(f"/{name} needs more arguments", COMMANDS[name].usage)
    if name not in WITH_WORDS and words:
        raise InvalidRequest(f"/{name} takes no arguments", f"A message that begins with / is typed //{name} {words}")
    return TypedLine(name, words)


class ActionReport(NamedTuple):
    """What came of it: a line, or with a heading a text to be read."""

    words: str
    heading: str = ""


def _from_here(path: str) -> str:
    """A folder by its whole name: the daemon works in another folder than the person who types."""
    return str(Path(path).expanduser().absolute())


async def act(client: HomeClient, agent: str, name: str, words: str) -> ActionReport:
    """Carry out a command. Raises what the client raises."""
    match name:
        case "pause" | "resume" | "stop":
            await client.control(agent, name)
            return ActionReport(f"{agent}: {name} was accepted")
        case "attach":
            await client.attach(agent, _from_here(words))
            return ActionReport(f"{agent} may work in {words}")
        case "use":
            is_path = "/" in words or words.startswith(("~", "."))
            await client.use(agent, **({"path": _from_here(words)} if is_path else {"workspace_id": words}))
            return ActionReport(f"{agent} works in {words} from its next turn on")
        case "exit":
            await client.use(agent, workspace_id=HOME)
            return ActionReport(f"{agent} works in its own home from its next turn on")
        case "detach":
            await client.detach(agent, words)
            return ActionReport(f"{words} is detached from {agent}")
        case "why":
            return ActionReport(str((await client.why(agent))["sentence"]), f"Why: {agent}")
        case _:
            turn = await client.newest_turn(agent)
            if turn is None:
                return ActionReport(f"{agent} had no turn yet")
            found = await client.prompt(turn["turn_id"])
            return ActionReport(str(found["system_prompt"]), f"Prompt: {agent}, {turn['turn_id']}")
