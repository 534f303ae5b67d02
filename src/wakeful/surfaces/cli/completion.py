"""`wakeful completion`: a script for a shell that completes commands, options and names of agents.

All of it is in the script: pressing Tab starts no process. Names of agents are those of files and folders in `agents/`
of the home.
"""

import shlex
from typing import Annotated, Literal

import typer

from wakeful.surfaces.cli.command_table import COMMANDS
from wakeful.surfaces.cli.main import app_of
from wakeful.surfaces.cli.shown_values import out

Shell = Literal["bash", "zsh", "fish"]
_HOME = '"${WAKEFUL_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/wakeful}"'
_FISH_AGENTS = (
    "(path basename -- (set -q WAKEFUL_HOME; and echo $WAKEFUL_HOME; or echo ~/.local/share/wakeful)/agents/* "
    "| path change-extension '')"
)
_BASH = """# wakeful, completed by bash. Put it into force: eval "$(wakeful completion bash)"
_wakeful_agents() {
    local each
    for each in HOME_FOLDER/agents/*; do
        each=${each##*/}; each=${each%.yaml}; each=${each%.yml}; each=${each%.json}
        [ "$each" = "*" ] || printf '%s\\n' "$each"
    done
}
_wakeful() {
    local cur=${COMP_WORDS[COMP_CWORD]} one=${COMP_WORDS[1]} two=${COMP_WORDS[2]} words="" name
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="FIRST_WORDS"
    else
        name=$one
        case "$one $two" in
            TWO_WORDS) name="$one $two" ;;
        esac
        case "$cur" in
        -*)
            case "$name" in
OPTIONS
            esac ;;
        *)
            if [ "$COMP_CWORD" -eq 2 ]; then
                case "$one" in
SECONDS
                esac
            fi
            case "$name" in
                TAKES_AGENT) words="$words $(_wakeful_agents)" ;;
            esac ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o bashdefault -o default -F _wakeful wakeful
"""


def command(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell to complete commands in.")],
) -> None:
    """Print a script that completes commands, options and names of agents.

    bash: eval "$(wakeful completion bash)" in ~/.bashrc. zsh: the same with zsh in ~/.zshrc. fish: wakeful completion
    fish > ~/.config/fish/completions/wakeful.fish
    """
    out((_fish() if shell == "fish" else _bash(shell)).rstrip("\n"))


def options_of(name: str) -> list[str]:
    """The long options of a command, as it takes them."""
    found = typer.main.get_command(app_of(name))
    words = [word for each in found.params for word in (*each.opts, *each.secondary_opts)]
    return sorted({word for word in words if word.startswith("--")} | {"--help"})


def takes_agent(name: str) -> bool:
    """Is the first argument an agent's name?"""
    rest = COMMANDS[name].usage.removeprefix(name).strip(" []")
    return rest.startswith(("AGENT", "X", "TIMER|AGENT"))


def _seconds() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in COMMANDS:
        first, _, second = name.partition(" ")
        if second:
            found.setdefault(first, []).append(second)
    return found


def _bash(shell: Shell) -> str:
    def lines(cases: dict[str, str]) -> str:
        return "\n".join(f"{'':16}{shlex.quote(name)}) words={shlex.quote(words)} ;;" for name, words in cases.items())

    first = list(dict.fromkeys(name.partition(" ")[0] for name in COMMANDS))
    quoted = [shlex.quote(name) for name in COMMANDS if " " in name]
    text = (
        _BASH.replace("HOME_FOLDER", _HOME)
        .replace("FIRST_WORDS", " ".join([*first, "help", "--version"]))
        .replace("TWO_WORDS", " | ".join(quoted))
        .replace("OPTIONS", lines({name: " ".join(options_of(name)) for name in COMMANDS}))
        .replace("SECONDS", lines({name: " ".join(words) for name, words in _seconds().items()}))
        .replace("TAKES_AGENT", " | ".join(shlex.quote(name) for name in COMMANDS if takes_agent(name)))
    )
    if shell == "zsh":
        head = "# wakeful, completed by zsh, which reads completions of bash.\n"
        return head + "autoload -U +X bashcompinit && bashcompinit\n" + text.partition("\n")[2]
    return text


def _fish() -> str:
    lines = ["# wakeful, completed by fish.", "complete -c wakeful -f"]
    firsts = dict.fromkeys(name.partition(" ")[0] for name in COMMANDS)
    for first in firsts:
        says = COMMANDS[first].says if first in COMMANDS else "more commands"
        lines.append(f"complete -c wakeful -n __fish_use_subcommand -a {first} -d {shlex.quote(says)}")
    for name in COMMANDS:
        first, _, second = name.partition(" ")
        seen = f"__fish_seen_subcommand_from {first}"
        if second:
            says = shlex.quote(COMMANDS[name].says)
            lines.append(f"complete -c wakeful -n {shlex.quote(seen)} -a {second} -d {says}")
            seen += f"; and __fish_seen_subcommand_from {second}"
        here = f"complete -c wakeful -n {shlex.quote(seen)}"
        lines += [f"{here} -l {option.removeprefix('--')}" for option in options_of(name)]
        if takes_agent(name):
            lines.append(f"{here} -a {shlex.quote(_FISH_AGENTS)}")
    return "\n".join(lines) + "\n"
