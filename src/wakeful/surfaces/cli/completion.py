"""`wakeful completion`: a script for a shell that completes commands, options and names of agents.

All of it is in the script: pressing Tab starts no process. Names of agents are those of folders and of files that
define one in `agents/` of the home; what stands beside them (instructions, `*.old`) is none.
"""

import shlex
import sys
from typing import Annotated, Literal

import typer

from wakeful.surfaces.cli.command_table import COMMANDS
from wakeful.surfaces.cli.main import app_of
from wakeful.surfaces.cli.shown_values import out

Shell = Literal["bash", "zsh", "fish"]
_ON_MAC = "$HOME/Library/Application Support"
"""Where that system keeps a user's data, as `settings.home` has it."""
_FISH_AGENTS = (
    "(set -l home HOME_FOLDER; path filter -d -- $home/agents/* | path basename; "
    "path filter -f -- $home/agents/*.yaml $home/agents/*.yml $home/agents/*.json "
    "| path basename | path change-extension '')"
)
_BASH = """# wakeful, completed by bash. Put it into force: eval "$(wakeful completion bash)"
_wakeful_agents() {
    local each
    for each in HOME_FOLDER/agents/*; do
        case "$each" in
            *.yaml | *.yml | *.json) each=${each%.*} ;;
            *) [ -d "$each" ] || continue ;;
        esac
        printf '%s\\n' "${each##*/}"
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
    data = "${XDG_DATA_HOME:-$HOME/.local/share}"
    text = (
        _BASH.replace("HOME_FOLDER", f'"${{WAKEFUL_HOME:-{_ON_MAC if is_mac() else data}/wakeful}}"')
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


def is_mac() -> bool:
    return sys.platform == "darwin"


def _fish() -> str:
    data = "set -q XDG_DATA_HOME; and echo $XDG_DATA_HOME; or echo $HOME/.local/share"
    base = f'"{_ON_MAC}"' if is_mac() else f"({data})"
    home = f"(set -q WAKEFUL_HOME; and echo $WAKEFUL_HOME; or echo {base}/wakeful)"
    agents = _FISH_AGENTS.replace("HOME_FOLDER", home)
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
            lines.append(f"{here} -a {shlex.quote(agents)}")
    return "\n".join(lines) + "\n"
