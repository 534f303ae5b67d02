"""What a line of the composer means: a message, or a command that begins with `/`. Pure."""

from difflib import get_close_matches
from typing import Final, NamedTuple

from wakeful.contracts.errors import InvalidRequest


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
    "agent": SlashCommand("/agent NAME", "talk to this agent", "Tab"),
    "display": SlashCommand("/display MODE", "info (3), verbose (4), debug (5)"),
    "why": SlashCommand("/why", "why it does not go on"),
    "prompt": SlashCommand("/prompt", "the system prompt of the newest turn"),
    "pause": SlashCommand("/pause", "pause the agent"),
    "resume": SlashCommand("/resume", "let it go on"),
    "stop": SlashCommand("/stop", "stop the agent"),
    "attach": SlashCommand("/attach PATH", "let it work in a folder"),
    "use": SlashCommand("/use PATH|ID", "work there from now on"),
    "exit": SlashCommand("/exit", "back to its own home"),
    "detach": SlashCommand("/detach ID", "take a folder away"),
    "quit": SlashCommand("/quit", "leave; agents go on", "Ctrl+Q"),
}
WITH_WORDS: Final = frozenset(("agent", "display", "attach", "use", "detach"))


class Typed(NamedTuple):
    """A command with its words, or a message: then the command is blank."""

    command: str
    words: str


def read_line(line: str) -> Typed:
    """`//` begins a message with one slash. Raises InvalidRequest for a command that is none."""
    if line.startswith("//"):
        return Typed("", line[1:])
    if not line.startswith("/"):
        return Typed("", line)
    name, _, words = line[1:].strip().partition(" ")
    words = words.strip()
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
        hint = f"Did you mean /{near[0]}?" if near else "/help shows all. A message that begins with / is typed //."
        raise InvalidRequest(f"there is no command /{name}", hint)
    if name in WITH_WORDS and not words:
        raise InvalidRequest(f"/{name} needs more words", COMMANDS[name].usage)
    if name not in WITH_WORDS and words:
        raise InvalidRequest(f"/{name} takes no words", f"A message that begins with / is typed //{name} {words}")
    return Typed(name, words)
