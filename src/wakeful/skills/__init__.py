"""Skills on this machine: folders with a `SKILL.md`, found by scope.

Here live where skills are looked for and the reading of what a catalogue says about them. Not here: when a skill is
used (`decisions.skills`), and what a prompt says of it (`decisions.prompt_words`). The body of a `SKILL.md` is never
kept: a model opens the file itself.
"""

from wakeful.skills.discovery import SkillCatalogue, discover, read_skill

__all__ = ["SkillCatalogue", "discover", "read_skill"]
