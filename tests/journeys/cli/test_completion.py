"""`wakeful completion`: the script for bash is run by bash; those for zsh and fish by theirs, where they are there."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from wakeful.surfaces.cli.command_table import COMMANDS


def completed(script: Path, *words: str) -> set[str]:
    typed = " ".join(f"'{word}'" for word in ("wakeful", *words))
    line = f". {script}; COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _wakeful; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.journey("completion")
def test_bash_completes_commands_options_and_names_of_agents(folder: Path, wakeful: Wakeful) -> None:
    script = folder / "completion.bash"
    script.write_text(wakeful("completion", "bash").out)
    agents = folder / "home" / "agents"
    (agents / "ops").mkdir(parents=True)
    (agents / "ops.yaml").write_text("")
    (agents / "shop.yml").write_text("")
    (agents / "ops.AGENTS.md").write_text("its instructions, and no agent")
    (agents / "ops.yaml.old").write_text("")
    assert {name.partition(" ")[0] for name in COMMANDS} <= completed(script, "")
    assert completed(script, "bac") == {"backup"}
    assert completed(script, "daemon", "st") == {"start", "stop", "status"}
    assert completed(script, "agent", "new", "--w") == {"--workspace"}
    assert completed(script, "run", "--mo") == {"--model"}
    assert completed(script, "send", "") == {"ops", "shop"}
    assert completed(script, "why", "o") == {"ops"}
    assert completed(script, "agent", "show", "sh") == {"shop"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_theirs(folder: Path, wakeful: Wakeful, shell: str) -> None:
    done = wakeful("completion", shell)
    assert done.code == 0
    assert "backup" in done.out
    if shutil.which(shell) is not None:
        script = folder / "script"
        script.write_text(done.out)
        subprocess.run([shell, "-n", str(script)], check=True, timeout=60)


def test_another_shell_is_refused_with_those_there_are(wakeful: Wakeful) -> None:
    done = wakeful("completion", "tcsh")
    assert done.code == 2
    assert "bash" in done.err
